/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a decision: what names mean (decide_env.c, decide_facts.c), what the lineage
 * has seen (decide_lineage.c), what one rung would do (decide_rung.c). */
#ifndef POLICIES_DECIDE_IMPL_H
#define POLICIES_DECIDE_IMPL_H

#include "oomretry/decide.h"
#include "policies/policy_impl.h"

#define NAME_SLURM_MEM "slurm:mem"

/* --- decide_env.c ----------------------------------------------------------------------------- */

/* What names in expressions stand for. Values are those of the script with `base` and then
 * `edits` on top; "old." looks below `edits`. */
struct decide_env {
    const struct oom_policy *policy;
    const struct oom_policy *framework; /* whose "colocated" the general policies see */
    const struct oom_case *input;
    const struct oom_incident *incident; /* the problem to solve, not always the input's */
    const struct oom_edits *base;        /* NULL: none */
    const struct oom_edits *edits;       /* NULL: none */
    const struct rung_params *params;    /* NULL: none */
    size_t lets;                         /* how many of the policy's lets are visible */
};

void env_init(struct decide_env *env, const struct oom_policy *policy,
              const struct oom_policy *framework, const struct oom_case *input,
              const struct oom_incident *incident);
void env_resolve(void *arg, const char *name, struct oom_expr_value *out); /* arg: the env */
/* 1 yes, 0 no, -1 unknown. */
int env_truth(struct decide_env *env, const struct oom_expr *expr);
bool env_number(struct decide_env *env, const struct oom_expr *expr, double *out);
/* The text that the program would be given for this knob; NULL: not set. `old` looks below
 * env->edits. */
const char *env_knob_text(const struct decide_env *env, const struct knob *knob, bool old);
void env_knob_value(const struct decide_env *env, const struct knob *knob, bool old,
                    struct oom_expr_value *out);

/* --- decide_facts.c -----------------------------------------------------------------------------
 */

/* "short_bytes" of the incident, a number out of its message ("message.…"), and what is known of
 * the job. NULL or unknown where nothing is. */
void facts_of_incident(const struct oom_incident *incident, const char *name,
                       struct oom_expr_value *out);
void facts_of_message(const struct decide_env *env, const char *name, struct oom_expr_value *out);
void facts_of_job(const struct decide_env *env, const char *name, struct oom_expr_value *out);

/* "64G", "65536": MiB, as Slurm reads it. */
bool facts_read_mem_mib(const char *text, double *out);

/* One of these, be it upper or lower case; NULL-terminated. */
bool facts_is_word(const char *text, const char *const *words);

/* --- decide_lineage.c ---------------------------------------------------------------------------
 */

/* How often a rung was used and stayed in force. */
int lineage_uses(const struct oom_case *input, const char *policy, const char *rung);
enum step_fate { STEP_TAKEN_BACK, STEP_REJECTED, STEP_NOT_APPLIED };
bool lineage_met(const struct oom_case *input, const char *policy, const char *rung,
                 enum step_fate fate);
const char *lineage_refused(const struct oom_case *input, const char *rung); /* why, or NULL */
/* A knob among these edits that must not change while there is a checkpoint; NULL: none. */
const char *lineage_frozen(const struct oom_case *input, const struct oom_edits *edits);
/* A knob of these edits that the program has refused before; NULL: none. Taking one away is not
 * asking for it. */
const char *lineage_rejected(const struct oom_case *input, const struct oom_edits *edits);
/* The rung was used, and just as many bytes were missing after it as before. */
bool lineage_changed_nothing(const struct oom_case *input, const char *policy, const char *rung);
/* That was so after two different rungs: the numbers are no measure of either. */
bool lineage_numbers_stand_still(const struct oom_case *input);
/* The settings after `edits` are those of an attempt that has already failed. */
bool lineage_is_repeat(const struct oom_case *input, const struct oom_edits *edits);
/* Keeps a new number on the near side of one that an earlier step moved away from: what was too
 * high in one domain and too low in another is looked for in between. */
double lineage_between(const struct oom_case *input, const char *knob, double now, double wanted);
/* Appends the edits that undo a step's edits. */
int lineage_undo(const struct oom_case *input, size_t index, struct oom_edits *out);
/* Which step made it worse, or moved the problem into another domain: its index, or -1. */
int lineage_worse_step(const struct oom_case *input, const struct oom_policy *const *policies,
                       size_t policy_count, bool *moved);
/* The rung that a step took; NULL when the policies do not know it (any more). */
const struct rung *lineage_rung(const struct oom_step *step,
                                const struct oom_policy *const *policies, size_t policy_count);

/* --- decide_rung.c ------------------------------------------------------------------------------
 */

enum rung_fit {
    RUNG_SKIP, /* not legal, or cannot help: `why` says */
    RUNG_WEAK, /* legal, but the numbers say that it frees too little */
    RUNG_GOOD,
};

struct rung_plan {
    struct oom_edits edits; /* the rung's own */
    double frees_bytes;     /* -1: not known */
    char why[256];
};

enum rung_fit rung_plan(const struct decide_env *env, const struct rung *rung,
                        const struct rung_params *params, struct rung_plan *out);
void rung_plan_free(struct rung_plan *plan);

/* "12.5 GiB" */
void decide_format_bytes(double bytes, char *out, size_t size);

#endif
