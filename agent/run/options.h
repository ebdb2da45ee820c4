/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of oomrun, and the variables that stand for it. */
#ifndef AGENT_RUN_OPTIONS_H
#define AGENT_RUN_OPTIONS_H

#include "agent/run/after.h"
#include "agent/run/run.h"

struct arguments {
    struct run_options options;
    struct after_options after;
    const char *hand_in;   /* a report that was left */
    int64_t look_since_ms; /* > 0: only look for what was left since then */
    char **command;
};

/* Complains and ends the program when the command line is wrong; a variable that is wrong is said
 * and ignored. In a job the variables are taken out of the environment. -1: out of memory. */
int options_read(int argc, char **argv, struct arguments *out);

#endif
