/* SPDX-License-Identifier: Apache-2.0
 *
 * One decision in the making, between the files that choose (decide_choose.c), add a diagnosis
 * (decide_diagnose.c), say what comes of it (decide_tell.c) and put it together (decide.c). */
#ifndef POLICIES_DECIDE_MAKING_H
#define POLICIES_DECIDE_MAKING_H

#include "policies/decide_impl.h"

#define MAX_CANDIDATES 96

struct candidate {
    const struct oom_policy *policy;
    const struct rung *rung;
    struct rung_params params;
    int group;
    size_t order; /* as written */
};

/* One decision in the making. */
struct making {
    const struct oom_policy *const *policies;
    size_t policy_count;
    const struct oom_case *input;
    struct oom_edits base; /* what is undone whatever is chosen */
    struct oom_decision *out;
    struct oom_error *err;
};

struct choice {
    bool found;
    struct candidate candidate;
    struct oom_edits edits; /* all of the attempt: base and the rung's */
    double frees_bytes;
};

/* --- decide_choose.c -------------------------------------------------------------------------- */

/* Records why a rung is skipped, once. */
int making_skip(struct making *m, const char *rung, const char *why);
/* The ladders for a problem, in order; `list` has room for MAX_CANDIDATES. */
size_t making_candidates(const struct making *m, const struct oom_incident *problem,
                         struct candidate *list);
/* What the step that is taken back did: "made it worse", "was refused by the program". */
const char *making_back_why(const struct making *m);
bool making_is_diagnosis(const struct rung *rung);
int making_merge(struct oom_edits *into, const struct oom_edits *edits);
/* `resources_only` asks only what changes nothing in the program. 1 found, 0 not, -1 error. */
int making_choose(struct making *m, const struct oom_incident *problem,
                  const struct oom_edits *base, const char *being_taken_back, bool resources_only,
                  struct choice *choice);

/* --- decide_diagnose.c ------------------------------------------------------------------------ */

/* Diagnostic settings serve one attempt: what the last one had is taken away again. */
int making_undo_diagnosis(struct making *m);
/* An enabled diagnosis rides along with the remedy, once in a lineage. */
int making_add_diagnosis(struct making *m, const struct oom_incident *problem,
                         struct choice *choice, char *name, size_t size);

/* --- decide_tell.c ---------------------------------------------------------------------------- */

int making_retry(struct making *m, const struct oom_incident *problem, struct choice *choice);
int making_stop_ladder(struct making *m, const struct oom_incident *problem);
/* The same where what ran out is not the training. */
int making_stop_elsewhere(struct making *m, const struct oom_incident *problem);
int making_stop(struct making *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
