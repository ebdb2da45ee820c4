/* SPDX-License-Identifier: Apache-2.0
 *
 * What follows an attempt that has just been stored as ended. */
#ifndef AGENT_HEAD_NEXT_STEP_H
#define AGENT_HEAD_NEXT_STEP_H

#include "agent/head/service.h"

/* Decides, stores the intention or the lineage's end, and makes the reply. Runs inside the
 * transaction that stored the end of the attempt: after a crash either both are there or neither.
 * `attempts` are the rows as they were before that, but for the outcome and the incident of this
 * one. Returns a status like a route. */
int next_step(struct service *service, const json_t *lineage, const json_t *attempts,
              int64_t number, const char *outcome, const json_t *body, json_t **reply,
              struct oom_error *err);

#endif
