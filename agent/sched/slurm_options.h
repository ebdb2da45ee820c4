/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of a job as sbatch would want them again. What was asked for is known from sbatch's
 * command line where the plugin was there (slurm_submitted.h), and stands in the script's #SBATCH
 * lines, which are not repeated here; what may have been changed since is in the job's record. A
 * job of which no command line is known is described by its record alone. */
#ifndef AGENT_SCHED_SLURM_OPTIONS_H
#define AGENT_SCHED_SLURM_OPTIONS_H

#include <stddef.h>

#include "oomretry/error.h"
#include "oomretry/values.h"

struct slurm_options {
    char **items; /* NULL-terminated: "--partition=gpu", …; ":" between components */
    size_t count;
};

/* `submitted`: what the plugin has kept, or NULL. `resources` replace what the record says; `mark`
 * is appended to the comment, by which a job that was submitted before a crash is found again. What
 * is in `out` already stands before the first component's. */
int slurm_options_of(const char *job, const char *submitted, const struct oom_edits *resources,
                     const char *mark, struct slurm_options *out, struct oom_error *err);

/* The same from the text of `scontrol -o show job`. Pure. */
int slurm_options_from_text(const char *text, const char *submitted,
                            const struct oom_edits *resources, const char *mark,
                            struct slurm_options *out, struct oom_error *err);

/* Appends "--option=value", or "--option" (value NULL). -1 when out of memory or over the bound. */
int slurm_options_add(struct slurm_options *out, const char *option, const char *value);
void slurm_options_free(struct slurm_options *options);

#endif
