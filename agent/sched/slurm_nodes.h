/* SPDX-License-Identifier: Apache-2.0
 *
 * The job's nodes beside the one of its batch script, from inside the job. */
#ifndef AGENT_SCHED_SLURM_NODES_H
#define AGENT_SCHED_SLURM_NODES_H

#include "oomretry/error.h"

/* What sched.h says of on_nodes. */
int slurm_on_nodes(const char *const *argv, int timeout_ms, char **out, struct oom_error *err);

#endif
