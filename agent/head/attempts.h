/* SPDX-License-Identifier: Apache-2.0
 *
 * What the reports about attempts have in common. Everything is keyed so that a repeated report
 * changes nothing. */
#ifndef AGENT_HEAD_ATTEMPTS_H
#define AGENT_HEAD_ATTEMPTS_H

#include "agent/head/service.h"

/* The lineage, if the caller may touch it: 0 with a new reference in *out, else the status. */
int attempts_own_lineage(struct service *service, const struct service_request *request, int64_t id,
                         json_t **out, struct oom_error *err);

#endif
