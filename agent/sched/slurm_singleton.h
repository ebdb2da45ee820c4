/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs of one name that run one after the other (--dependency=singleton). Slurm has such a job wait
 * for those that were submitted before it. A job that is submitted again comes last of all, and has
 * had its turn: the others would run beside it, or before it. */
#ifndef AGENT_SCHED_SLURM_SINGLETON_H
#define AGENT_SCHED_SLURM_SINGLETON_H

#include <stdbool.h>
#include <stddef.h>

struct slurm_singleton {
    const char *old_job; /* NULL: its name is known, or nobody is to wait */
    char name[256];      /* of the old job; "": nobody is to wait */
    const char *new_job;
    bool first; /* the new job waits for none of them any more */
};

/* The turns of which that job's was one. Both names must outlive `out`. */
void slurm_singleton_of(const char *old_job, const char *new_job, struct slurm_singleton *out);

/* Makes a dependency of a pending job of the same owner, as slurm_dependency_rewrite leaves it,
 * wait for the new job as well, if that is its turn; false: it is not, or does not fit. */
bool slurm_singleton_stand_behind(struct slurm_singleton *singleton, const char *job,
                                  const char *name, char *dependency, size_t size);

/* What that function tells of, without asking anybody. */
bool slurm_singleton_is_behind(const struct slurm_singleton *singleton, const char *job,
                               const char *name, const char *dependency);

#endif
