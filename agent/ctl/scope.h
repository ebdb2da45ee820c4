/* SPDX-License-Identifier: Apache-2.0
 *
 * "user=alice,partition=small": for whom a policy is looked at. */
#ifndef AGENT_CTL_SCOPE_H
#define AGENT_CTL_SCOPE_H

#include <jansson.h>

#include "oomretry/error.h"

/* {"user":"alice","partition":"small"}; NULL and err. New reference. */
json_t *ctl_scope_parse(const char *text, struct oom_error *err);

/* Appends it to a path as a query; `scope` may be NULL. -1 when it does not fit. */
int ctl_scope_add(char *path, size_t size, const json_t *scope);

#endif
