/* SPDX-License-Identifier: Apache-2.0
 *
 * A submission can be repeated after a crash: its mark in the comment says that it was done. */
#ifndef AGENT_SCHED_SLURM_MARKED_H
#define AGENT_SCHED_SLURM_MARKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oomretry/error.h"

/* Behind the mark of a job that is held until every dependent points to it. A controller that is
 * killed may forget the release; a job that its owner holds has no such word. */
#define SLURM_MARK_HELD ":held"

/* The word that names an attempt in a job's comment. */
void slurm_mark(int64_t lineage, int64_t number, char *mark, size_t size);

/* True when the comment says that this job is held for that attempt. */
bool slurm_mark_is_held(const char *comment, const char *mark);

/* Takes the word for the hold out of a job's comment. */
int slurm_unmark_held(const char *job, struct oom_error *err);

/* A job of the caller in the queue whose comment carries the mark, other than `except` (NULL: any).
 * 1 found, 0 not; -1 when that cannot be known, and submitting would risk a second job. */
int slurm_find_marked(const char *mark, const char *except, char *job, size_t size,
                      struct oom_error *err);

#endif
