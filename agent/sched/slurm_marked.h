/* SPDX-License-Identifier: Apache-2.0
 *
 * A submission can be repeated after a crash: its mark in the comment says that it was done. */
#ifndef AGENT_SCHED_SLURM_MARKED_H
#define AGENT_SCHED_SLURM_MARKED_H

#include <stddef.h>

#include "oomretry/error.h"

/* A job of the caller in the queue whose comment carries the mark, other than `except` (NULL: any).
 * 1 found, 0 not; -1 when that cannot be known, and submitting would risk a second job. */
int slurm_find_marked(const char *mark, const char *except, char *job, size_t size,
                      struct oom_error *err);

#endif
