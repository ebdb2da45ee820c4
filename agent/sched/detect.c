/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sched/sched.h"

const struct sched *sched_detect(void)
{
    static const struct sched *const all[] = {&sched_slurm};
    char job[64], cluster[64];
    int restart;

    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (all[i]->inside(job, sizeof(job), cluster, sizeof(cluster), &restart))
            return all[i];
    return NULL;
}
