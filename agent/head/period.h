/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions about a period: the query's `since_ms` until now. Users are answered for their own
 * lineages, administrators for all. */
#ifndef AGENT_HEAD_PERIOD_H
#define AGENT_HEAD_PERIOD_H

#include "agent/head/service.h"

/* In `sql`, ?1 says whether the asker is an administrator, ?2 is his uid, ?3 the beginning. */
json_t *period_rows(struct service *service, const struct service_request *request,
                    struct oom_error *err, const char *sql);

#endif
