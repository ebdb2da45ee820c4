/* SPDX-License-Identifier: Apache-2.0
 *
 * A step of one task a node, beside whatever holds the job's cores (--overlap is of Slurm 20.11).
 * srun takes what the job was submitted with as its own options from SLURM_* variables: tasks,
 * memory, a file for the output. This step is none of the job's, so it gets none of them. */
#include "agent/sched/slurm_nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lib/child.h"

enum { MAX_WORDS = 32 };

static int number_of(const char *variable)
{
    const char *text = getenv(variable);

    return text ? atoi(text) : 0;
}

/* Is it an input of srun? SLURM_CONF and the like say where the controller is. */
static bool is_input(const char *variable)
{
    static const char *const kept[] = {
        "SLURM_CONF=", "SLURM_CONF_SERVER=", "SLURM_JOB_ID=", "SLURM_JWT="};

    if (strncmp(variable, "SLURM_", 6) != 0 && strncmp(variable, "SRUN_", 5) != 0)
        return false;
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        if (strncmp(variable, kept[i], strlen(kept[i])) == 0)
            return false;
    return true;
}

int slurm_on_nodes(const char *const *argv, int timeout_ms, char **out, struct oom_error *err)
{
    const char *words[MAX_WORDS] = {"srun", "--overlap", "--quiet", "--mem=0",
                                    "--ntasks-per-node=1"};
    char nodes[32], tasks[32], groups[32];
    int components = number_of("SLURM_HET_SIZE"), others = number_of("SLURM_JOB_NUM_NODES") - 1;
    int n = 5;

    *out = NULL;
    if (components < 2 && others < 1)
        return 0;
    if (components > 1) {
        /* All of each component: the batch script's node once more does no harm. */
        snprintf(groups, sizeof(groups), "--het-group=0-%d", components - 1);
        words[n++] = groups;
    } else {
        /* The batch script is on the first. */
        snprintf(nodes, sizeof(nodes), "--nodes=%d", others);
        snprintf(tasks, sizeof(tasks), "--ntasks=%d", others);
        words[n++] = nodes;
        words[n++] = tasks;
        words[n++] = "--relative=1";
    }
    while (*argv && n < MAX_WORDS - 1)
        words[n++] = *argv++;
    return child_expect_without(words, is_input, timeout_ms, out, err);
}
