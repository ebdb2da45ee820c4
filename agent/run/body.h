/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON bodies that oomrun sends, and the facts that go with them. */
#ifndef AGENT_RUN_BODY_H
#define AGENT_RUN_BODY_H

#include "agent/run/run.h"

json_t *body_begin(const struct run *run, const struct attempt *attempt);

/* `incident`, `values`, `refused`, `reason` may be NULL. More members may be added. */
json_t *body_end(const struct run *run, const struct attempt *attempt,
                 const struct oom_incident *incident, const struct oom_values *values,
                 const json_t *refused, const char *framework, const char *reason);

/* The edits in force, on top of what the script as submitted says. */
void body_overlay(struct oom_values *values, const struct oom_edits *edits);

/* Facts for the decision that are not settings. */
void body_facts(const struct run *run, const struct attempt *attempt, struct oom_values *values);

/* Of the job: those on this node, times its nodes. */
int64_t body_gpus(void);

int body_max_attempts(const struct run *run);

#endif
