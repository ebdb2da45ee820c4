/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl stop, hold, resume: what the owner of a job says about its retries. oomctl budget: the
 * site's bounds and what has been used of them. */
#include <stdio.h>

#include "agent/ctl/common.h"
#include "agent/ctl/ctl.h"
#include "agent/ctl/lineage_text.h"
#include "agent/lib/jsonget.h"

struct arguments {
    struct ctl_common common;
    const char *job;
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct arguments *a = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->common;
        return 0;
    case ARGP_KEY_ARG:
        if (a->job)
            argp_error(state, "too many arguments: \"%s\"", arg);
        a->job = arg;
        return 0;
    case ARGP_KEY_END:
        if (!a->job)
            argp_error(state, "which job? `oomctl history` lists them");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int steer(const char *verb, const char *doc, const char *done, int argc, char **argv)
{
    const struct argp argp = {NULL, parse_option, "JOBID", doc, ctl_common_options, NULL, NULL};
    struct arguments a = {0};
    struct oom_error err = {""};
    json_t *found = NULL, *reply = NULL;
    char path[256];

    if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0)
        return 2;
    if (lineage_path(a.job, path, sizeof(path), &err) < 0)
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
        printf("job %s: %s\n", a.job, done);
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
    return steer("resume", "Takes back `oomctl stop` or `oomctl hold`.", "retries go on", argc,
                 argv);
}

static void print_bound(const char *name, double bound, const char *unit)
{
    if (bound > 0)
        printf("  %-28s %g%s\n", name, bound, unit);
    else
        printf("  %-28s no bound\n", name);
}

static void print_budget(const json_t *reply)
{
    const json_t *limits = json_object_get(reply, "limits");

    printf("used in the last 24 hours\n  %-28s %lld\n  %-28s %.2f\n", "retries",
           (long long)json_get_int(reply, "retries_24h", 0), "GPU-hours of failed attempts",
           json_number_value(json_object_get(reply, "gpu_hours_24h")));
    printf("bounds of the site\n");
    print_bound("retries of a job", (double)json_get_int(limits, "max_retries", 0), "");
    print_bound("retries of a user and day",
                (double)json_get_int(limits, "attempts_per_user_day", 0), "");
    print_bound("GPU-hours of a user and day",
                json_number_value(json_object_get(limits, "gpu_hours_per_user_day")), "");
    print_bound("memory of a job", (double)json_get_int(limits, "max_mem_mib", 0) / 1024, " GiB");
}

int ctl_budget(int argc, char **argv)
{
    static const struct argp argp = {.doc = "What the site allows, and what your jobs have used of "
                                            "it in the last 24 hours.",
                                     .children = ctl_common_options};
    struct ctl_common common = {0};
    json_t *reply = NULL;

    if (argp_parse(&argp, argc, argv, 0, NULL, &common) != 0 ||
        ctl_call(&common, "budget", "GET", "/v1/budget", NULL, &reply) != 0)
        return 2;
    if (common.json)
        ctl_print_json(reply);
    else
        print_budget(reply);
    json_decref(reply);
    return 0;
}
