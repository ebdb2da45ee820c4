/* SPDX-License-Identifier: Apache-2.0
 *
 * Does the next attempt go on from a checkpoint? */
#ifndef AGENT_RUN_RESUME_H
#define AGENT_RUN_RESUME_H

#include "oomretry/policy.h"
#include "oomretry/values.h"

/* When the policy says how its framework resumes and the job's directory holds a complete
 * checkpoint that this lineage (since_ms: its beginning) wrote, or that the job loads already:
 * {"checkpoint": directory, "edits": […], "frozen": […]}; edits make the next attempt load it,
 * frozen are the knobs with which it would not load. NULL otherwise. New reference. */
json_t *resume_plan(const struct oom_policy *policy, const struct oom_values *values,
                    int64_t since_ms);

#endif
