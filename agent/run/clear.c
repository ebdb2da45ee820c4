/* SPDX-License-Identifier: Apache-2.0
 *
 * What has to be over before an attempt begins in the allocation of the last one: its steps and
 * processes, what they left in memory, and whoever else holds memory of the job's cards. */
#include <stdlib.h>
#include <time.h>

#include "agent/lib/elapsed.h"
#include "agent/run/clear.h"
#include "agent/run/run.h"

enum { LEFTOVERS_MS = 15000, AWAY_MS = 600000, AWAY_NAP_S = 2 };

/* A controller that is being restarted, or busy, is waited for: the allocation is there, and only
 * it knows what the job has started elsewhere. */
static int end_steps(const struct run *run, struct oom_error *err)
{
    struct timespec nap = {AWAY_NAP_S, 0};
    int64_t start = elapsed_ms();
    bool told = false;

    while (run->sched->end_steps(run->job, err) < 0) {
        if (!run->sched->is_away || !run->sched->is_away(err))
            return -1;
        if (cancel_pending())
            return 0; /* which is looked at before the next attempt */
        if (elapsed_ms() - start > AWAY_MS)
            return -1;
        if (!told)
            say("  waiting for the scheduler, which does not answer (%s)", err->text);
        told = true;
        nanosleep(&nap, NULL);
    }
    return 0;
}

int clear_allocation(const struct run *run, int64_t since_ms, struct oom_error *err)
{
    if (run->sched && run->sched->end_steps && end_steps(run, err) < 0)
        return -1;
    if (!leftovers_end(LEFTOVERS_MS))
        return oom_errorf(err, "processes of the old attempt would not end");
    leftovers_shm(since_ms);
    return 0;
}

bool clear_cards(const struct run *run, int64_t since_ms, struct holder_place *holder)
{
    const char *node = getenv("SLURMD_NODENAME");

    snprintf(holder->node, sizeof(holder->node), "%s", node ? node : "");
    return gpumem_wait(run, holder->who, sizeof(holder->who)) &&
           othernodes_clear(run, since_ms, holder);
}
