/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ctl/ctl.h"

#include <argp.h>
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lib/standard_fds.h"

static const struct ctl_verb verbs[] = {
    {"history", ctl_history, "what happened to jobs: one line a lineage"},
    {"show", ctl_show, "what is kept of a job or one attempt"},
    {"explain", ctl_explain, "what happened to a job and why, in words"},
    {"stop", ctl_stop, "no more retries for a job"},
    {"hold", ctl_hold, "keep the settings of a job as they are"},
    {"resume", ctl_resume, "take back stop or hold"},
    {"budget", ctl_budget, "the site's bounds, and what has been used"},
    {"settle", ctl_settle, "wait until an ended job is settled (for EpilogSlurmctld)"},
    {"stats", ctl_stats, "what fails, and which rungs help"},
    {"report", ctl_report, "a period in one page: what ran out, and what to change for good"},
    {"doctor", ctl_doctor, "is everything in its place?"},
    {"plan", ctl_plan, "what would be changed next, from a script and its logs"},
    {"policy", ctl_policy, "read, edit, test and roll back what the ladders hold"},
    {"diagnose", ctl_diagnose, "what ran out, where and in which phase, from logs"},
    {"signatures", ctl_signatures, "what is recognised in logs, and how to test additions"},
    {"rewrite", ctl_rewrite, "a launch script with other settings"},
    {"ray", ctl_ray, "submit jobs to a Ray cluster"},
    {NULL, NULL, NULL},
};

/* What was said must have got there: half a script on a full disk would be submitted. */
static int say_all(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "oomctl: cannot write to the standard output: %s\n", strerror(errno));
    return 2;
}

int main(int argc, char **argv)
{
    standard_fds_open();
    setlocale(LC_CTYPE, "");
    /* argp explains at length that short options take the arguments of long ones. */
    setenv("ARGP_HELP_FMT", "no-dup-args-note", 0);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGCHLD, SIG_DFL); /* the ends of children are waited for */
    argp_err_exit_status = 2;
    return say_all(ctl_dispatch("oomctl", verbs, argc, argv));
}
