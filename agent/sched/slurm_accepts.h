/* SPDX-License-Identifier: Apache-2.0
 *
 * Would Slurm run a job with other resources than it has? */
#ifndef AGENT_SCHED_SLURM_ACCEPTS_H
#define AGENT_SCHED_SLURM_ACCEPTS_H

#include "oomretry/error.h"
#include "oomretry/values.h"

/* Asks the controller, which submits nothing (`sbatch --test-only`). 0: it would run, or nobody can
 * tell now; -1: it would be refused or wait for good, and err has the controller's words. */
int slurm_accepts(const char *job, const struct oom_edits *resources, struct oom_error *err);

#endif
