/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of a job as sbatch would want them again: those that the script's #SBATCH lines do
 * not hold were given on a command line and show only in the job's record. */
#ifndef AGENT_SCHED_SLURM_OPTIONS_H
#define AGENT_SCHED_SLURM_OPTIONS_H

#include <stddef.h>

#include "oomretry/error.h"
#include "oomretry/values.h"

struct slurm_options {
    char **items; /* NULL-terminated: "--partition=gpu", … */
    size_t count;
};

/* `resources` replace what the record says; `mark` is appended to the comment, by which a job that
 * was submitted before a crash is found again. */
int slurm_options_of(const char *job, const struct oom_edits *resources, const char *mark,
                     struct slurm_options *out, struct oom_error *err);

/* The same from the text of `scontrol -o show job`. Pure. */
int slurm_options_from_text(const char *text, const struct oom_edits *resources, const char *mark,
                            struct slurm_options *out, struct oom_error *err);

/* Appends "--option=value", or "--option" (value NULL). -1 when out of memory or over the bound. */
int slurm_options_add(struct slurm_options *out, const char *option, const char *value);
void slurm_options_free(struct slurm_options *options);

#endif
