/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_RUN_AFTER_H
#define AGENT_RUN_AFTER_H

#include "agent/run/run.h"

struct after_options {
    int64_t lineage, attempt;
    const char *job;
    int batch_status; /* wait status of the batch script that has just ended; -1: not known */
};

/* `oomrun --after`: finishes what a lost supervisor left. run->api and run->signatures are open.
 * Returns the exit status. */
int after_main(struct run *run, const struct after_options *options);

#endif
