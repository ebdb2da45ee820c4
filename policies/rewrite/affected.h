/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of several training commands is meant. */
#ifndef POLICIES_REWRITE_AFFECTED_H
#define POLICIES_REWRITE_AFFECTED_H

#include "policies/rewrite/config.h"
#include "policies/rewrite/plan.h"

/* The training command most like what was seen to run (NULL: the first one); NULL: none trains. */
const struct rw_cmd *rw_most_like(struct rw_analysis *a, const char *const *ran);
/* Leaves those training whose settings the edits were decided from; all of them, when none has
 * such settings, or when what ran has others. */
void rw_keep_affected(struct rw_analysis *a, const struct oom_policy *policy,
                      const struct oom_edits *edits, const char *const *ran);
/* The same choice in the script after an edit. */
void rw_keep_as(struct rw_analysis *a, const struct rw_analysis *like);

/* ---- present.c: a knob's present value for a command */
int rw_read_knob(struct rw_analysis *a, const struct oom_policy *policy, const struct rw_cmd *cmd,
                 struct rw_config *config, const struct oom_knob *known, struct oom_values *out);

#endif
