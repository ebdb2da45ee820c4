/* SPDX-License-Identifier: Apache-2.0
 *
 * The options that a job was submitted with, as the plugin has taken them from sbatch's command
 * line (plugin/spank_submitted.c): "--signal=USR1@60 --comment=two%20words : --mem=4G". */
#ifndef AGENT_SCHED_SLURM_SUBMITTED_H
#define AGENT_SCHED_SLURM_SUBMITTED_H

#include <stdbool.h>
#include <stddef.h>

struct slurm_submitted {
    char **words; /* "--signal=USR1@60", … ; those of one component after the other's */
    size_t count;
    size_t *component; /* which one each belongs to; ":" words are not among them */
    size_t components; /* at least 1 */
};

/* False: there is nothing (NULL or ""), or it is no list of options; then nothing is known. */
bool slurm_submitted_read(const char *text, struct slurm_submitted *out);
void slurm_submitted_free(struct slurm_submitted *submitted);

#endif
