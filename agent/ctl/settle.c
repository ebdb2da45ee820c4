/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl settle: for a site's EpilogSlurmctld. While that runs the job is COMPLETING and its
 * dependents are not judged, so a job whose supervisor was killed can be queued again by the node's
 * agent without anybody having seen it fail. Returns at once for all other jobs. */
#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/ctl/ctl.h"
#include "agent/lib/api.h"
#include "agent/lib/elapsed.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/urlquery.h"

enum { KEY_TIMEOUT = 't', LOOK_MS = 100, DEFAULT_S = 10 };

struct arguments {
    const char *job;
    int timeout_s;
};

static const struct argp_option option_table[] = {
    {"timeout", KEY_TIMEOUT, "SECONDS", 0, "wait no longer than this (default 10)", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct arguments *a = state->input;

    switch (key) {
    case KEY_TIMEOUT:
        a->timeout_s = atoi(arg);
        if (a->timeout_s < 0 || a->timeout_s > 60)
            argp_error(state, "--timeout is from 0 to 60 seconds");
        return 0;
    case ARGP_KEY_ARG:
        if (a->job)
            argp_error(state, "one job at a time");
        a->job = arg;
        return 0;
    case ARGP_KEY_END:
        if (!a->job)
            argp_error(state, "which job? $SLURM_JOB_ID in EpilogSlurmctld");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* An attempt that nobody has ended, or a decision that nobody has carried out. */
static bool is_open(struct api *api, const char *path)
{
    json_t *reply = NULL, *attempt;
    bool open = false;
    size_t i;

    if (api_call(api, "GET", path, NULL, &reply, NULL) == 200)
        json_array_foreach(json_object_get(reply, "attempts"), i, attempt) open =
            open || !json_get_bool(attempt, "done", false);
    json_decref(reply);
    return open;
}

int ctl_settle(int argc, char **argv)
{
    static const struct argp argp = {option_table,
                                     parse_option,
                                     "JOBID",
                                     "Waits until a job that has ended is settled: for "
                                     "EpilogSlurmctld.",
                                     NULL,
                                     NULL,
                                     NULL};
    struct arguments a = {.timeout_s = DEFAULT_S};
    struct timespec nap = {0, LOOK_MS * 1000000L};
    struct oom_error err = {""};
    char path[256] = "/v1/attempts/open?scheduler=slurm";

    if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0 ||
        urlquery_add(path, sizeof(path), "job", a.job) < 0)
        return 2;
    struct api *api = api_open_default(NULL, 1000, &err);
    int64_t deadline_ms = elapsed_ms() + (int64_t)a.timeout_s * 1000;
    while (api && is_open(api, path) && elapsed_ms() < deadline_ms)
        nanosleep(&nap, NULL);
    api_close(api);
    return 0; /* an epilog must not fail */
}
