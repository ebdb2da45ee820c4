/* SPDX-License-Identifier: Apache-2.0
 *
 * From JSON and stored policies to the pure decider and back: shared by real retries and by plans.
 */
#ifndef AGENT_HEAD_DECIDING_H
#define AGENT_HEAD_DECIDING_H

#include "agent/head/service.h"
#include "oomretry/decide.h"

struct deciding {
    const json_t *versions; /* {"relax":3, "relax:partition=small":2, …} */
    const json_t *options;  /* of the lineage: policy, max_retries, mode, allow */
    const char *framework;  /* "" when not recognised */
    const json_t *incident;
    const json_t *values;
    const json_t *refused; /* [{"rung","why"}] or NULL */
    const json_t *resume;  /* {"checkpoint","edits","frozen"} or NULL: what a checkpoint asks for */
    const struct oom_step *steps;
    size_t step_count;
    int retries_used;
};

/* What the owner's options, the policy and the site come to. */
struct deciding_terms {
    int retry_limit; /* the most changed attempts of the lineage */
    bool allow_training;
};

struct deciding_terms deciding_terms(struct service *service, const struct deciding *input);
/* The same with the policy (NULL: none) at hand. */
struct deciding_terms deciding_terms_of(const struct service *service, const json_t *options,
                                        const struct oom_policy *policy);

int deciding_run(struct service *service, const struct deciding *input,
                 struct oom_decision *decision, struct oom_error *err);

#endif
