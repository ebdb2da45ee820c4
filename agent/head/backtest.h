/* SPDX-License-Identifier: Apache-2.0
 *
 * What a policy would have decided: stored incidents against a draft. */
#ifndef AGENT_HEAD_BACKTEST_H
#define AGENT_HEAD_BACKTEST_H

#include "agent/head/service.h"

/* Replays the newest stored incidents (the caller's own, or for administrators all) that this
 * policy has a say in, once with the active version and once with the body's "document" (without
 * one: the active one again). Stores nothing. Replies with
 * {"incidents":N, "same":N, "changed":[{lineage, attempt, incident, was, would_be}]}; returns a
 * status. */
int backtest_run(struct service *service, const struct service_request *request, const char *name,
                 json_t **reply, struct oom_error *err);

#endif
