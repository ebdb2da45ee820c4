/* SPDX-License-Identifier: Apache-2.0
 *
 * A job's memory, which is asked for by node, by CPU (also where only the site's default counts) or
 * by GPU: each has its field in the job's record, its option of sbatch and its knob. */
#ifndef AGENT_SCHED_SLURM_MEMORY_H
#define AGENT_SCHED_SLURM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "oomretry/values.h"

struct slurm_memory {
    const char *knob, *field, *option;
    bool by_update; /* scontrol update can change it */
};

/* How the job (component) of this record asks for memory, and how much; NULL: it does not. */
const struct slurm_memory *slurm_memory_of(const char *record, int64_t *mib);

/* The edit of such a knob among `edits`, and which; NULL: there is none. */
const struct oom_edit *slurm_memory_edit(const struct oom_edits *edits,
                                         const struct slurm_memory **memory);

/* It asks for as much already, or for more: its owner may have raised it meanwhile. */
bool slurm_memory_suffices(const char *record, const struct slurm_memory *memory,
                           const struct oom_edit *wanted);

/* "--mem=0": all that a node has. */
bool slurm_memory_is_all(const char *record);

/* The knobs, and "slurm.mem_mib": what the job has on each node. */
void slurm_memory_facts(const char *record, struct oom_values *facts);

/* "gres:gpu:a100:2" -> "a100:2" */
const char *slurm_of_gpus(const char *value);

#endif
