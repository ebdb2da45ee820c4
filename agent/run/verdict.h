/* SPDX-License-Identifier: Apache-2.0
 *
 * How an attempt came out. */
#ifndef AGENT_RUN_VERDICT_H
#define AGENT_RUN_VERDICT_H

#include "agent/run/run.h"

/* Over the job's own output; when that shows no memory failure, over the other logs that this
 * attempt wrote. `script` may be NULL. */
int verdict_reach(struct run *run, struct attempt *attempt, struct oom_script *script,
                  struct oom_incident *incident, struct oom_error *err);

/* Why an attempt that did not run out of memory is not retried, in words. */
void verdict_reason(const struct run *run, const struct attempt *attempt,
                    const struct oom_incident *incident, char *out, size_t size);

bool verdict_exited_well(const struct attempt *attempt);

/* The program's last words name a setting that it would not have without us. Whether that was this
 * attempt's change is for the head to say. */
bool verdict_refuses_change(const struct attempt *attempt, const struct oom_incident *incident);

/* Processes that the kernel killed for memory in the job's tasks since the attempt began, as the
 * nodes reported them; -1: no report. */
int64_t verdict_reported_kills(struct run *run, const struct attempt *attempt);

#endif
