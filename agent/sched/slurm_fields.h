/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading what scontrol and squeue print. Pure text functions. */
#ifndef AGENT_SCHED_SLURM_FIELDS_H
#define AGENT_SCHED_SLURM_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value of Key=Value in one line of `scontrol -o show`; false when the key is not there. */
bool slurm_field(const char *text, const char *key, char *out, size_t size);

/* "100M", "2G", "1.50T", "500" (MiB) -> MiB; -1 for anything else. */
int64_t slurm_mib(const char *text);

/* Rewrites a dependency as squeue's %E shows it ("afterok:12(failed),afterany:13(unfulfilled)")
 * so that old_job becomes new_job and the states in parentheses go. False when old_job is not in
 * it, or it does not fit. Array forms "12_*" and "12_3" belong to job 12. */
bool slurm_repoint(const char *dependency, const char *old_job, const char *new_job, char *out,
                   size_t size);

#endif
