/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_SCHED_SLURM_REQUEUE_H
#define AGENT_SCHED_SLURM_REQUEUE_H

#include "oomretry/error.h"
#include "oomretry/values.h"

/* As struct sched says of them. */
int slurm_requeue(const char *job, int restart, const struct oom_edits *resources,
                  struct oom_error *err);
int slurm_release(const char *job, struct oom_error *err);

#endif
