/* SPDX-License-Identifier: Apache-2.0
 *
 * A scheduler is one struct of functions: what running, deciding and starting again need of it. Who
 * comes after a supervisor that was lost looks deeper into Slurm's records (slurm_job.h,
 * slurm_marked.h), and the watcher into Ray's (ray.h). Each call acts with the rights of the
 * calling process: whoever acts for an owner becomes him first. */
#ifndef AGENT_SCHED_SCHED_H
#define AGENT_SCHED_SCHED_H

#include <jansson.h>
#include <stdbool.h>

#include "oomretry/error.h"
#include "oomretry/values.h"

struct sched_submission {
    const char *script;         /* path of the script to submit, or an entrypoint */
    const char *const *args;    /* its arguments; NULL-terminated or NULL */
    const char *const *options; /* the scheduler's own options; NULL-terminated or NULL */
    const char *directory;
    const char *environment_file; /* NAME=VALUE, NUL-separated; NULL: this process's environment */
    bool hold;
    const json_t *record;     /* Ray: the whole request, whose entrypoint is `script` */
    const char *except;       /* Slurm: a job that carries the mark and is not meant */
    const char *mark;         /* Slurm: a word in the comment by which the job is found again */
    struct oom_error *notice; /* what a person should know although it worked; NULL: nobody asks */
};

struct sched {
    const char *name;

    /* The job that this process runs in, from its environment; false: none. */
    bool (*inside)(char *job, size_t job_size, char *cluster, size_t cluster_size, int *restart);

    /* Whose share of the cluster that job uses; "" where it is not known. NULL: nobody's. */
    void (*share)(const char **partition, const char **account);

    /* Facts for decide ("slurm.mem_mib", "slurm.time_left_s", "requeue_allowed", …) and the job's
     * state ("sched.state"). Of a job whose parts differ, those of the part that "failed.message"
     * or "failed.node" names, where `facts` have them. */
    int (*describe)(const char *job, struct oom_values *facts, struct oom_error *err);

    /* What the described job could be given at most ("slurm.mem_max_mib"). NULL: describe says. */
    int (*limits)(struct oom_values *facts, struct oom_error *err);

    /* 0: with these resources the job would run, as far as the scheduler can tell now; -1: it would
     * be refused or wait for good, and err says why. NULL: nobody can be asked. */
    int (*accepts)(const char *job, const struct oom_edits *resources, struct oom_error *err);

    /* The same job again, with changed resources (edits named "slurm:mem" and the like), from
     * inside it or from outside, running or ended. `restart` is how often it had been restarted
     * when the failed attempt ran: more than that means that this was done before. Returns when
     * the scheduler has accepted both, or -1. Safe to repeat. */
    int (*requeue)(const char *job, int restart, const struct oom_edits *resources,
                   struct oom_error *err);

    /* A new job; its id goes to new_job. */
    int (*submit)(const struct sched_submission *submission, char *new_job, size_t size,
                  struct oom_error *err);
    int (*release)(const char *job, struct oom_error *err);
    int (*cancel)(const char *job, struct oom_error *err);

    /* Dependents of old_job wait for new_job instead. Returns how many were changed, or -1. */
    int (*repoint)(const char *old_job, const char *new_job, struct oom_error *err);

    /* The error says that the scheduler does not answer at present. NULL: it cannot tell. */
    bool (*is_away)(const struct oom_error *err);

    /* Ends what the job started through the scheduler (steps), not the job. */
    int (*end_steps)(const char *job, struct oom_error *err);

    /* Runs a program on each other node of the job that this process runs in. 0 when it ended well
     * on all of them, within the time; what it wrote is in *out (NULL: there is no other node). */
    int (*on_nodes)(const char *const *argv, int timeout_ms, char **out, struct oom_error *err);
};

/* sched_ray acts on the cluster that ray_use (agent/sched/ray.h) named last, by submission ids. */
extern const struct sched sched_slurm, sched_ray;

/* The scheduler that this process runs under, or NULL. */
const struct sched *sched_detect(void);

#endif
