/* SPDX-License-Identifier: Apache-2.0
 *
 * A write that cannot be made ends a program, unless it says otherwise: nobody reads any more
 * (SIGPIPE), or the file has reached the size that the job's limits allow (SIGXFSZ). Neither the
 * database nor the log is a reason for the command not to run. */
#include <signal.h>

#include "agent/run/run.h"

void writes_may_fail(struct run *run)
{
    run->sigpipe = signal(SIGPIPE, SIG_IGN);
    run->sigxfsz = signal(SIGXFSZ, SIG_IGN);
}

void writes_as_before(const struct run *run)
{
    signal(SIGPIPE, run->sigpipe);
    signal(SIGXFSZ, run->sigxfsz);
}
