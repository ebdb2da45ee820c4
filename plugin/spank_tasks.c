/* SPDX-License-Identifier: Apache-2.0
 *
 * Task by task in slurmstepd: where each one's memory is counted is noted when it is forked and
 * read when it ended. Later, in slurm_spank_exit, the cgroup is gone. */
#include <stdlib.h>
#include <string.h>

#include "spank_plugin.h"

/* More local tasks than any node runs; beyond it reports go without counters. */
#define TASKS_MAX 4096

static struct cgroup *cgroups;
static int cgroup_count;

static int local_task(spank_t sp)
{
    int task = -1;

    return spank_get_item(sp, S_TASK_ID, &task) == ESPANK_SUCCESS && task < TASKS_MAX ? task : -1;
}

void remote_task_post_fork(spank_t sp)
{
    int task = local_task(sp);
    pid_t pid = 0;

    if (task < 0 || spank_get_item(sp, S_TASK_PID, &pid) != ESPANK_SUCCESS || pid <= 0)
        return;
    if (task >= cgroup_count) {
        struct cgroup *grown = realloc(cgroups, sizeof(*cgroups) * (size_t)(task + 1));

        if (!grown)
            return;
        memset(grown + cgroup_count, 0, sizeof(*grown) * (size_t)(task + 1 - cgroup_count));
        cgroups = grown;
        cgroup_count = task + 1;
    }
    cgroup_of_process(pid, &cgroups[task]);
}

void remote_task_exit(spank_t sp)
{
    static const struct cgroup unknown;
    int task = local_task(sp);

    report_task_exit(sp, task >= 0 && task < cgroup_count ? &cgroups[task] : &unknown);
}

void remote_exit(void)
{
    free(cgroups);
    cgroups = NULL;
    cgroup_count = 0;
}
