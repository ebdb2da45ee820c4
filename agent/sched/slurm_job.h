/* SPDX-License-Identifier: Apache-2.0
 *
 * A job as Slurm has it, for who comes after its supervisor. */
#ifndef AGENT_SCHED_SLURM_JOB_H
#define AGENT_SCHED_SLURM_JOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "oomretry/error.h"

struct slurm_job {
    char *text;   /* one line of `scontrol -o show job`; NULL: unknown */
    bool unknown; /* to the scheduler, which answers */
    bool over;    /* its state is final */
    char state[64];
    int restarts;
};

/* -1 and err when the scheduler does not answer. `settle`: a job that is COMPLETING is waited for.
 */
int slurm_job_read(struct slurm_job *job, const char *id, bool settle, struct oom_error *err);
void slurm_job_free(struct slurm_job *job);

/* Queued again and held, as a requeue of an ended job does before it releases it. */
bool slurm_job_is_held_again(const struct slurm_job *job);

/* By somebody, whose wish outlives whatever was decided before. */
bool slurm_job_is_cancelled(const struct slurm_job *job);

/* By somebody's wish or by the machine's fault: never a question of memory. */
bool slurm_job_ended_by_others(const struct slurm_job *job);

/* A controller that was killed may give the ids that it has forgotten to other jobs. `started_ms`
 * and `restart` are the attempt's; 0: it has not started. */
bool slurm_job_is_another(const struct slurm_job *job, const json_t *lineage, int64_t started_ms,
                          int restart);

/* How long ago it ended, by its scheduler; 0 when that is not known. */
int64_t slurm_job_ended_s_ago(const struct slurm_job *job);

/* It is certain that nothing of the user's script was executed. */
bool slurm_job_never_launched(const struct slurm_job *job, bool unbegun);

#endif
