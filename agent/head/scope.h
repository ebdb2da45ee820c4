/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose overrides of policies apply to a request. */
#ifndef AGENT_HEAD_SCOPE_H
#define AGENT_HEAD_SCOPE_H

#include "agent/head/service.h"
#include "db/overrides.h"

enum { SCOPE_USER_ROOM = 64 };

/* The name of a user, or his number. Returns buffer. */
const char *scope_user_name(uid_t uid, char *buffer, size_t size);

/* From the members "partition", "account" and "user" of a query or body; without a user it is the
 * caller, whose name goes to `user`. Borrows from `members`. */
struct policy_scope scope_of(const struct service_request *request, const json_t *members,
                             char *user, size_t size);

/* From a lineage's row. Borrows from it. */
struct policy_scope scope_of_lineage(const json_t *lineage);

#endif
