/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs that wait for a job whose place another one takes. */
#ifndef AGENT_SCHED_SLURM_DEPENDENTS_H
#define AGENT_SCHED_SLURM_DEPENDENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "oomretry/error.h"

/* Who takes whose place. Ids are "12", or "12_3" for one task of an array. */
struct slurm_replacement {
    const char *old_job;
    const char *new_job;
    /* The other tasks of old_job's array that have not completed: "12_0:12_4", "" none. Who waits
     * for the whole array waits for these and for new_job. NULL: too many to be listed; then he
     * goes on waiting for the array as it is. */
    const char *others;
};

/* Rewrites a dependency as squeue's %E shows it ("afterok:12_*(failed),afterany:13(unfulfilled)").
 * `index` is the dependent's own array index, -1 for none: aftercorr goes by it. False when nothing
 * in it concerns the job; then `out` is the same dependency without states, or "" when it cannot be
 * read or does not fit. Pure. */
bool slurm_dependency_rewrite(const char *dependency, const struct slurm_replacement *replacement,
                              int index, char *out, size_t size);

/* Points all dependents to the new job, and has those who take turns with the old one
 * (slurm_singleton.h) wait for it. Returns how many, or -1. */
int slurm_dependents_repoint(const char *old_job, const char *new_job, struct oom_error *err);

#endif
