/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl show: everything that is kept of a lineage. oomctl explain: the story in words. */
#include <string.h>

#include "agent/ctl/common.h"
#include "agent/ctl/ctl.h"
#include "agent/ctl/lineage_text.h"
#include "agent/ctl/story.h"

struct arguments {
    struct ctl_common common;
    const char *what;
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct arguments *a = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->common;
        return 0;
    case ARGP_KEY_ARG:
        if (a->what)
            argp_error(state, "one job or attempt at a time");
        a->what = arg;
        return 0;
    case ARGP_KEY_END:
        if (!a->what)
            argp_error(state, "which job? `oomctl history` lists them");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int read_and_print(const char *verb, const char *doc, int argc, char **argv,
                          void (*print)(const json_t *reply, const char *what))
{
    const struct argp argp = {NULL, parse_option, "JOBID|ATTEMPT", doc, ctl_common_options,
                              NULL, NULL};
    struct arguments a = {0};
    struct oom_error err = {""};
    json_t *reply = NULL;
    char path[256];

    if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0)
        return 2;
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
