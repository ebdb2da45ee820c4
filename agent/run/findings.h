/* SPDX-License-Identifier: Apache-2.0
 *
 * What a decision is made from: the policies of the lineage, which of them the job goes by, and the
 * present values of its knobs. */
#ifndef AGENT_RUN_FINDINGS_H
#define AGENT_RUN_FINDINGS_H

#include "agent/run/run.h"

struct findings {
    struct policy_set set;
    int index;                       /* of the job's policy; -1: none fits */
    const struct oom_policy *policy; /* the same, NULL also when the command cannot be read */
    struct oom_values values;
    char program[96]; /* what ran out, when it was none of the policy's; "" */
};

/* The lineage's policies, from those that were fetched before where there are any. */
int findings_policies(struct run *run, const struct attempt *attempt, struct policy_set *set,
                      struct oom_error *err);

/* The policy by which the lineage has gone, `framework`; -1: it is gone. */
int findings_resume(struct run *run, const struct policy_set *set, const struct oom_script *script,
                    const char *framework);

/* 0, or -1 when the head does not give the policies. `script` may be NULL. */
int findings_collect(struct run *run, const struct attempt *attempt, struct oom_script *script,
                     const struct oom_incident *incident, struct findings *out,
                     struct oom_error *err);
void findings_free(struct findings *findings);

#endif
