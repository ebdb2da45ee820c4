/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl stop, hold, resume: what the owner of a job says about its retries. */
#include <stdio.h>

#include "agent/ctl/ctl.h"
#include "agent/ctl/lineage_text.h"
#include "agent/ctl/one_job.h"
#include "agent/lib/jsonget.h"

static int steer(const char *verb, const char *doc, const char *done, int argc, char **argv)
{
    struct one_job a;
    struct oom_error err = {""};
    json_t *found = NULL, *reply = NULL;
    char path[256];

    one_job_read("JOBID", doc, argc, argv, &a);
    if (lineage_path(a.what, path, sizeof(path), &err) < 0)
        return ctl_fail(verb, &err);
    if (ctl_call(&a.common, verb, "GET", path, NULL, &found) != 0)
        return 2;
    snprintf(path, sizeof(path), "/v1/lineages/%lld/%s",
             (long long)json_get_int(json_object_get(found, "lineage"), "id", 0), verb);
    json_decref(found);
    if (ctl_call(&a.common, verb, "POST", path, NULL, &reply) != 0)
        return 2;
    if (a.common.json)
        ctl_print_json(reply);
    else
        printf(
            "job %s: %s\n", a.what,
            json_get_bool(reply, "reopened", false)
                ? "it is started again with its next change within about 15 s; see oomctl history"
                : done);
    json_decref(reply);
    return 0;
}

int ctl_stop(int argc, char **argv)
{
    return steer("stop", "No more retries for this job; the attempt that runs goes on.",
                 "no more retries", argc, argv);
}

int ctl_hold(int argc, char **argv)
{
    return steer("hold", "Keeps the settings of this job as they are: it is not changed any more.",
                 "its settings are held", argc, argv);
}

int ctl_resume(int argc, char **argv)
{
    return steer(
        "resume",
        "Takes back `oomctl stop` or `oomctl hold`. A job that has ended meanwhile without the "
        "retry that it needed is started again.",
        "retries go on", argc, argv);
}
