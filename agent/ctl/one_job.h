/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of a verb that is about one job. */
#ifndef AGENT_CTL_ONE_JOB_H
#define AGENT_CTL_ONE_JOB_H

#include "agent/ctl/common.h"

struct one_job {
    struct ctl_common common;
    const char *what; /* as the user calls it */
};

/* `names` is what usage calls the job: "JOBID|ATTEMPT". Complains and ends the program when the
 * command line is wrong. */
void one_job_read(const char *names, const char *doc, int argc, char **argv, struct one_job *out);

#endif
