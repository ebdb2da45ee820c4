/* SPDX-License-Identifier: Apache-2.0
 *
 * The site's bounds on retries. Hitting one is a decision with a reason. */
#ifndef AGENT_HEAD_BUDGET_H
#define AGENT_HEAD_BUDGET_H

#include "agent/head/service.h"

/* 1: another retry of this lineage would go over a bound (`reason` says which), 0: none, -1: err.
 */
int budget_refuses(struct service *service, const json_t *lineage, char *reason, size_t size,
                   struct oom_error *err);

#endif
