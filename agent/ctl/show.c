/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl show: everything that is kept of a lineage. oomctl explain: the story in words. */
#include <string.h>

#include "agent/ctl/ctl.h"
#include "agent/ctl/lineage_text.h"
#include "agent/ctl/one_job.h"
#include "agent/ctl/story.h"

static int read_and_print(const char *verb, const char *doc, int argc, char **argv,
                          void (*print)(const json_t *reply, const char *what))
{
    struct one_job a;
    struct oom_error err = {""};
    json_t *reply = NULL;
    char path[256];

    one_job_read("JOBID|ATTEMPT", doc, argc, argv, &a);
    if (lineage_path(a.what, path, sizeof(path), &err) < 0)
        return ctl_fail(verb, &err);
    int status = ctl_call(&a.common, verb, "GET", path, NULL, &reply);
    if (status)
        return status;
    if (a.common.json)
        ctl_print_json(reply);
    else
        print(reply, a.what);
    json_decref(reply);
    return 0;
}

int ctl_show(int argc, char **argv)
{
    return read_and_print("show",
                          "What is kept of a job or of one attempt (7.2): settings, numbers, "
                          "the decisive lines of the log, the diff.",
                          argc, argv, story_facts);
}

int ctl_explain(int argc, char **argv)
{
    return read_and_print("explain",
                          "What happened to a job and why, in order: what failed and how that is "
                          "known, what was tried and why that, what was skipped, what it cost, "
                          "what could be done next, and the patch that keeps what worked.",
                          argc, argv, story_explain);
}
