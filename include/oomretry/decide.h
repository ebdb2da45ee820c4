/* SPDX-License-Identifier: Apache-2.0
 *
 * Which step of which ladder comes next, or why none does. A pure function of its inputs: the
 * same code serves the cluster, `oomctl plan`, the backtest of a policy and the fuzzers. */
#ifndef OOMRETRY_DECIDE_H
#define OOMRETRY_DECIDE_H

#include "oomretry/incident.h"
#include "oomretry/policy.h"
#include "oomretry/values.h"

enum oom_mode {
    OOM_MODE_AUTO,
    OOM_MODE_INPLACE,
    OOM_MODE_REQUEUE,
    OOM_MODE_RESUBMIT,
};

const char *oom_mode_name(enum oom_mode mode);
int oom_mode_parse(const char *name, enum oom_mode *out);

/* One earlier retry of the lineage: the rung that led to an attempt, and how that attempt ended. */
struct oom_step {
    char rung[64];
    char policy[32];        /* the policy's name: "host" rungs mix with a framework's */
    struct oom_edits edits; /* what it changed */
    enum oom_domain domain; /* of the incident that it answered */
    enum oom_phase phase;
    int64_t short_before_bytes; /* OOM_UNSTATED when not known */
    int64_t short_after_bytes;  /* of the failure that followed; OOM_UNSTATED: none or not known */
    bool taken_back;
    bool not_applied;   /* the change was seen not to have arrived */
    char rejected[128]; /* the knob that the program itself refused, so that it ended; "" none */
};

/* Everything a decision may depend on. Facts that are not knobs are values too, under reserved
 * names: "slurm.mem_mib", "slurm.mem_max_mib", "slurm.nodes", "slurm.gpus", "slurm.time_left_s",
 * "ray.memory_max_bytes", "launch.processes", "attempt.seconds", "attempt.oom_kills",
 * "failed.node", "allocation" ("gone": its supervisor is), "scheduler" ("slurm", "ray", "none"),
 * "requeue_allowed", "fileroot_shared", "package.NAME" ("true", "false"). */
struct oom_case {
    const struct oom_incident *incident;
    const struct oom_values *values;
    const struct oom_step *steps; /* oldest first */
    size_t step_count;
    int max_retries;
    int retries_used;
    bool allow_training;        /* --oom-allow=training */
    enum oom_mode mode;         /* what the user asked for; AUTO decides */
    const char *const *refused; /* rungs that rewrite could not place, NULL-terminated; or NULL */
    const char *const *refused_why;
    const char *const *frozen; /* knobs with another value of which it could not go on from its
                                  checkpoint, NULL-terminated; or NULL */
    const char *checkpoint;    /* which one that is */
};

struct oom_skip {
    char rung[64];
    char why[256];
};

struct oom_decision {
    bool retry;                         /* false: stop */
    char reason[512];                   /* a sentence for the user */
    char policy[48];                    /* "relax@3" */
    char overrides[OOM_OVERRIDES_ROOM]; /* of it: "partition=small@2"; "" none */
    char rung[64];
    char kind[16];
    enum oom_mode mode;
    char mode_why[200];     /* why this one, in words */
    struct oom_edits edits; /* relative to the last attempt; taking back a rung is edits too */
    char taken_back[64];    /* the rung that this decision takes back; "" none */
    bool changes_training;
    double cost; /* share of throughput lost, 0..1; -1 unknown */
    struct oom_skip *skipped;
    size_t skipped_count;
    char advice[512]; /* when stopping: what the user could do next */
};

/* The knob among `edits` that the last words of a failed program name: its flag, key or variable,
 * or its Python name ("unrecognized arguments: --cross-entropy-loss-fusion", "max_tokens_per_gpu
 * must be ..."). NULL: none. So a change that this version of a program does not take is told from
 * a failure that has nothing to do with it. The result belongs to `edits`. */
const char *oom_edits_named(const struct oom_edits *edits, const char *line);

void oom_decision_init(struct oom_decision *decision);
void oom_decision_free(struct oom_decision *decision); /* contents only */

/* How an attempt is to be started. */
struct oom_start {
    enum oom_mode wanted;           /* the owner's wish */
    const struct oom_values *facts; /* "scheduler", "slurm.time_left_s", "attempt.seconds", … */
    enum oom_domain domain;         /* what ran out */
    bool elsewhere;                 /* the cause may be the node */
    const struct oom_edits *edits;
};

/* Never "auto", but without a "scheduler" among the facts what was wanted; `why` in words. */
enum oom_mode oom_decide_mode(const struct oom_start *start, char *why, size_t size);

/* The "action" … "skipped" members of `oomctl plan --json` and back. */
json_t *oom_decision_to_json(const struct oom_decision *decision);
int oom_decision_from_json(const json_t *json, struct oom_decision *out, struct oom_error *err);

/* `policies` in order of preference: the framework's own, then the general ones ("pytorch",
 * "host"). Edits of resources use the reserved knob names "slurm:mem" (MiB), "ray:memory". */
int oom_decide(const struct oom_policy *const *policies, size_t policy_count,
               const struct oom_case *input, struct oom_decision *out, struct oom_error *err);

#endif
