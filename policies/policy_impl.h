/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of a policy, for the files that parse it and the files that decide with it.
 * Strings are borrowed from the JSON document, which the policy owns. */
#ifndef POLICIES_POLICY_IMPL_H
#define POLICIES_POLICY_IMPL_H

#include "oomretry/policy.h"
#include "policies/expr.h"

enum move { MOVE_ANY, MOVE_LOWER, MOVE_RAISE };

struct knob {
    struct oom_knob info; /* first: what others see of it */
    char *id;             /* its name in expressions: "--a-b" is "a_b", "env:X" is "env.X" */
    char *default_text;   /* owns info.default_value */
    const char **aliases; /* owns info.aliases */
    const char *unit;
    struct oom_expr *floor;   /* NULL: none */
    struct oom_expr *ceiling; /* NULL: none */
    double step;              /* new values are multiples of it; 0: any */
    const json_t *choices;    /* array of strings, or NULL */
};

struct edit_spec {
    const char *knob;
    char *set_text;        /* literal; NULL when `to` or `unset` says */
    struct oom_expr *to;   /* new value */
    bool unset;            /* take it away */
    struct oom_expr *when; /* the edit is left out unless this is true; NULL: always */
    enum move move;        /* must go this way, or the rung cannot help */
    bool optional;         /* but when it cannot, the rung's other edits still may */
};

struct guard {
    struct oom_expr *require;
    const char *why; /* what to say when it does not hold */
    bool pass_when_unknown;
};

/* The numbers of a rung that an entry of a ladder may set anew. */
struct rung_params {
    double scale;  /* what a value is multiplied with to lower it */
    double factor; /* what a value is multiplied with to raise it */
    double target; /* a value to go to */
    double least;  /* how far bytes short may lower `scale` */
    double share;  /* of allocated memory, how much follows the value */
    double cost;   /* share of throughput lost; -1: unknown */
    int repeat;    /* how often at most in a lineage */
    bool enabled;
};

struct rung {
    const char *name;
    const char *kind;
    const char *about;
    const char *cost_source;
    struct edit_spec *edits;
    size_t edit_count;
    struct guard *guards;
    size_t guard_count;
    struct oom_expr *frees; /* bytes; NULL: nothing is known */
    struct rung_params params;
    bool changes_training;
    bool fit;                 /* bytes short may make `scale` smaller */
    bool restart;             /* changes nothing: the cause is outside the job's settings */
    enum oom_domain moves_to; /* where it may move the problem; NONE: nowhere */
};

struct ladder_entry {
    const char *policy; /* NULL: this one; else the rung is that policy's */
    const char *rung;
    int group;               /* entries of one group are ordered by price */
    const json_t *overrides; /* object, or NULL */
};

struct ladder {
    enum oom_domain domain;
    bool before; /* "before": asked ahead of all policies' own ladders */
    bool any_phase;
    enum oom_phase phase;
    struct ladder_entry *entries;
    size_t entry_count;
};

struct let {
    const char *name;
    struct oom_expr *expr;
};

/* A number in the text of the decisive line. */
struct capture {
    const char *name; /* "message.NAME" in expressions */
    struct oom_regex *regex;
};

struct oom_policy {
    json_t *document;
    const char *name;
    enum oom_family family;
    bool dash_alike;
    int order;
    int version;
    char overrides[OOM_OVERRIDES_ROOM]; /* "partition=small@2"; "" none */
    int max_retries;                    /* -1: the site's */
    enum oom_consent consent;
    struct knob *knobs;
    size_t knob_count;
    struct rung *rungs;
    size_t rung_count;
    struct ladder *ladders;
    size_t ladder_count;
    struct let *lets;
    size_t let_count;
    struct guard *rules; /* the framework refuses to start when one does not hold */
    size_t rule_count;
    struct capture *captures;
    size_t capture_count;
};

extern const char *const policy_fact_names[]; /* NULL-terminated */

const struct knob *policy_knob_by_id(const struct oom_policy *policy, const char *id);
const struct knob *policy_knob(const struct oom_policy *policy, const char *name);
const struct rung *policy_rung(const struct oom_policy *policy, const char *name);
/* The ladder for exactly this phase, else for "any", else for "unknown"; NULL: none. */
const struct ladder *policy_ladder(const struct oom_policy *policy, enum oom_domain domain,
                                   enum oom_phase phase);
const struct ladder *policy_before(const struct oom_policy *policy, enum oom_domain domain);
/* The rung's numbers with the entry's overrides on top. */
struct rung_params policy_entry_params(const struct rung *rung, const struct ladder_entry *entry);
/* `params` with one member set from a key of JSON; false when there is no such number. */
bool policy_param_set(struct rung_params *params, const char *key, const json_t *value);
extern const char *const policy_param_names[]; /* NULL-terminated */

/* policy_parse.c: fills the policy from its document. */
int policy_parse(struct oom_policy *policy, const char *name, struct oom_error *err);

#endif
