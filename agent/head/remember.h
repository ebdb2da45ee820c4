/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory across lineages: what worked for the same script is the first guess for the next one. */
#ifndef AGENT_HEAD_REMEMBER_H
#define AGENT_HEAD_REMEMBER_H

#include "agent/head/service.h"
#include "oomretry/decide.h"

/* The rungs that decisions of this file are called. */
#define AS_BEFORE "as-before"
#define STEP_BACK "step-back"

enum remember_how {
    REMEMBER_ALL,       /* what worked last */
    REMEMBER_LESS,      /* without the step before the last: STEP_BACK */
    REMEMBER_ALL_AGAIN, /* with it, when that was too little */
};

/* When this lineage has had no retry yet, and the newest lineage of the same shape (the script
 * without its comments, its arguments, as many GPUs), user, GPU memory and wishes (policy, consent)
 * that met the same domain completed after changes: fills the decision with all its settings at
 * once, to be started as the facts of this attempt say.
 * 1: filled, 0: nothing is known, -1: err. */
int remember(struct service *service, const json_t *lineage, const struct oom_incident *incident,
             const struct oom_values *facts, bool allow_training, enum remember_how how,
             struct oom_decision *decision, struct oom_error *err);

#endif
