/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl show: everything that is kept of a lineage. oomctl explain: the story in words. */
#include <argp.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ctl/ctl.h"
#include "agent/ctl/lineage_text.h"
#include "agent/ctl/story.h"
#include "agent/lib/api.h"
#include "agent/lib/jsonget.h"

enum { KEY_JSON = 256, KEY_DB };

static const struct argp_option option_table[] = {
    {"json", KEY_JSON, NULL, 0, "as JSON", 0},
    {"db", KEY_DB, "FILE", 0, "read this database instead of asking the head", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

struct arguments {
    const char *what;
    const char *db_path;
    bool json;
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct arguments *a = state->input;

    switch (key) {
    case KEY_JSON:
        a->json = true;
        return 0;
    case KEY_DB:
        a->db_path = arg;
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
    const struct argp argp = {option_table, parse_option, "JOBID|ATTEMPT", doc, NULL, NULL, NULL};
    struct arguments a = {0};
    struct oom_error err = {""};
    json_t *reply = NULL;
    char path[256];
    int status = -1;

    if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0)
        return 2;
    if (lineage_path(a.what, path, sizeof(path), &err) == 0) {
        struct api *api = api_open_default(a.db_path, CTL_TIMEOUT_MS, &err);
        status = api ? api_call(api, "GET", path, NULL, &reply, &err) : -1;
        api_close(api);
    }
    if (status != 200) {
        fprintf(stderr, "oomctl: %s: %s\n", verb, err.text);
        json_decref(reply);
        return status == 404 ? 1 : 2;
    }
    if (a.json) {
        json_dumpf(reply, stdout, JSON_INDENT(2));
        putchar('\n');
    } else {
        print(reply, a.what);
    }
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
