/* SPDX-License-Identifier: Apache-2.0
 *
 * A step of one task a node, beside whatever holds the job's cores (--overlap is of Slurm 20.11).
 * srun takes what the job was submitted with as its own options from SLURM_* variables: tasks,
 * memory, a file for the output. This step is none of the job's, so it gets none of them. */
#include "agent/sched/slurm_nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/child.h"

enum { MAX_DROPPED = 400, MAX_WORDS = 2 * MAX_DROPPED + 32 };

static int number_of(const char *variable)
{
    const char *text = getenv(variable);

    return text ? atoi(text) : 0;
}

/* Is it an input of srun? SLURM_CONF and the like say where the controller is. */
static bool is_input(const char *variable, size_t length)
{
    static const char *const kept[] = {"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JOB_ID",
                                       "SLURM_JWT"};

    if (strncmp(variable, "SLURM_", 6) != 0 && strncmp(variable, "SRUN_", 5) != 0)
        return false;
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        if (strlen(kept[i]) == length && strncmp(variable, kept[i], length) == 0)
            return false;
    return true;
}

/* "-u NAME" for each; false when there are too many. */
static bool drop_inputs(const char **argv, int *n, char *names, size_t size)
{
    for (char **variable = environ; *variable; variable++) {
        size_t length = strcspn(*variable, "=");
        if (!is_input(*variable, length))
            continue;
        if (*n >= 2 * MAX_DROPPED || length + 1 > size)
            return false;
        memcpy(names, *variable, length);
        names[length] = '\0';
        argv[(*n)++] = "-u";
        argv[(*n)++] = names;
        names += length + 1;
        size -= length + 1;
    }
    return true;
}

int slurm_on_nodes(const char *const *argv, int timeout_ms, char **out, struct oom_error *err)
{
    const char *words[MAX_WORDS] = {"env"};
    char srun[4200], names[16384], nodes[32], tasks[32], groups[32];
    int components = number_of("SLURM_HET_SIZE"), others = number_of("SLURM_JOB_NUM_NODES") - 1;
    int n = 1;

    *out = NULL;
    if (components < 2 && others < 1)
        return 0;
    if (!drop_inputs(words, &n, names, sizeof(names)))
        return oom_errorf(err, "the job has too many SLURM_ variables");
    words[n++] = child_program("srun", srun, sizeof(srun));
    words[n++] = "--overlap";
    words[n++] = "--quiet";
    words[n++] = "--mem=0";
    words[n++] = "--ntasks-per-node=1";
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
    return child_expect(words, timeout_ms, out, err);
}
