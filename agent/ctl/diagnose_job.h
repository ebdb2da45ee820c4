/* SPDX-License-Identifier: Apache-2.0
 *
 * `oomctl diagnose --job`: what Slurm knows of a job, and where its output is. */
#ifndef AGENT_CTL_DIAGNOSE_JOB_H
#define AGENT_CTL_DIAGNOSE_JOB_H

#include "oomretry/classify.h"

struct job_files {
    char **paths;
    size_t count;
};

/* Asks scontrol as the caller. `id` is a job (12), a task of an array (12_3) or a part of a
 * heterogeneous job (12+1). Fills in what exit_data does not state yet, and the files that the job
 * and the srun commands of its script write to, one for each task where the name says so. An error
 * names what to do instead. The caller frees the files in any case. */
int diagnose_job(const char *id, struct oom_exit *exit_data, struct job_files *files,
                 struct oom_error *err);
void diagnose_job_files_free(struct job_files *files);

/* The shell pattern for one of Slurm's file names: what `record` (a line of `scontrol -o show job`)
 * tells is put in, and what differs between tasks and nodes becomes a wildcard. NULL when out of
 * memory. */
char *diagnose_job_pattern(const char *name, const char *record);

#endif
