/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals that this program must have in a way of its own. A write that cannot be made ends a
 * program, unless it says otherwise: nobody reads any more (SIGPIPE), or the file has reached the
 * size that the job's limits allow (SIGXFSZ). Neither the database nor the log is a reason for the
 * command not to run. And who was started to ignore the ends of children (SIGCHLD) is told of none.
 */
#include <signal.h>

#include "agent/run/run.h"

static const struct {
    int number;
    void (*ours)(int);
} taken[] = {{SIGPIPE, SIG_IGN}, {SIGXFSZ, SIG_IGN}, {SIGCHLD, SIG_DFL}};

_Static_assert(sizeof(taken) / sizeof(taken[0]) == SIGNALS_TAKEN, "one place for each");

void signals_take(struct run *run)
{
    for (size_t i = 0; i < SIGNALS_TAKEN; i++)
        run->signals_before[i] = signal(taken[i].number, taken[i].ours);
}

void signals_give_back(const struct run *run)
{
    for (size_t i = 0; i < SIGNALS_TAKEN; i++)
        signal(taken[i].number, run->signals_before[i]);
}
