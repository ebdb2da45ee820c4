/* SPDX-License-Identifier: Apache-2.0
 *
 * What a lineage's stored attempts say to the pure decider. */
#ifndef AGENT_HEAD_LINEAGE_STEPS_H
#define AGENT_HEAD_LINEAGE_STEPS_H

#include <jansson.h>

#include "oomretry/decide.h"

/* One oom_step for each retry among the attempts (rows of lineage_attempts, by number). `now` is
 * the incident of the last attempt, which may not be stored yet. Free with lineage_steps_free. */
int lineage_steps(const json_t *attempts, const struct oom_incident *now, struct oom_step **out,
                  size_t *count, struct oom_error *err);
void lineage_steps_free(struct oom_step *steps, size_t count);

#endif
