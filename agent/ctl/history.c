/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl history: one line a lineage; with a job id, its whole tree. */
#include <stdlib.h>
#include <string.h>

#include "agent/ctl/common.h"
#include "agent/ctl/ctl.h"
#include "agent/ctl/lineage_text.h"
#include "agent/ctl/since.h"
#include "agent/ctl/story.h"
#include "agent/lib/humanize.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/table.h"
#include "agent/lib/urlquery.h"
#include "db/db.h"

enum { KEY_ALL = 'a', KEY_USER = 'u', KEY_SINCE = 256, KEY_STATE, KEY_LIMIT };
enum { SHOWN_COLUMNS = 60 };

static const struct argp_option option_table[] = {
    {"user", KEY_USER, "USER", 0, "lineages of this user (administrators)", 0},
    {"all", KEY_ALL, NULL, 0, "lineages of all users (administrators)", 0},
    {"since", KEY_SINCE, "T", 0, "not older than: 2h, 3d, or a date 2026-11-29", 0},
    {"state", KEY_STATE, "S", 0, "running, waiting, completed, failed, stopped, held, cancelled",
     0},
    {"limit", KEY_LIMIT, "N", 0, "at most N lineages (default 50)", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

struct arguments {
    struct ctl_common common;
    char path[1024];
    const char *job;
};

static bool is_state(const char *word)
{
    static const char *const states[] = {"running", "waiting", "completed", "failed",
                                         "stopped", "held",    "cancelled"};

    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (strcmp(word, states[i]) == 0)
            return true;
    return false;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct arguments *a = state->input;
    char number[32];

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->common;
        return 0;
    case KEY_ALL:
        return urlquery_add(a->path, sizeof(a->path), "all", "1") ? EINVAL : 0;
    case KEY_USER:
        return urlquery_add(a->path, sizeof(a->path), "user", arg) ? EINVAL : 0;
    case KEY_STATE:
        if (!is_state(arg))
            argp_error(state, "--state is running, waiting, completed, failed, stopped, held or "
                              "cancelled");
        return urlquery_add(a->path, sizeof(a->path), "state", arg) ? EINVAL : 0;
    case KEY_LIMIT:
        return urlquery_add(a->path, sizeof(a->path), "limit", arg) ? EINVAL : 0;
    case KEY_SINCE:
        snprintf(number, sizeof(number), "%lld", (long long)since_parse(state, arg));
        return urlquery_add(a->path, sizeof(a->path), "since_ms", number) ? EINVAL : 0;
    case ARGP_KEY_ARG:
        if (a->job)
            argp_error(state, "one job at a time");
        a->job = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The list is for a glance; `oomctl history JOBID` has the rest. */
static void shorten(char *text, size_t columns)
{
    size_t end = columns;

    if (strlen(text) <= columns)
        return;
    /* Not in the middle of a character. */
    while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
        end--;
    strcpy(text + end, "…");
}

static void print_list(const json_t *lineages)
{
    struct table *table =
        table_new("JOB\tNAME\tUSER\tSTATE\tATTEMPTS\tLAST FAILURE\tCHANGED\tWHEN");
    json_t *lineage;
    size_t i;

    json_array_foreach(lineages, i, lineage)
    {
        char job[64], failure[128], changed[600], when[64], attempts[16], shown[40];
        const char *state = json_get_string(lineage, "state", "");
        lineage_job(lineage, job, sizeof(job));
        lineage_state(lineage, shown, sizeof(shown));
        lineage_failure(json_object_get(lineage, "incident"), failure, sizeof(failure));
        lineage_changed(json_object_get(lineage, "edits"), changed, sizeof(changed));
        if (strcmp(state, "stopped") == 0)
            snprintf(changed, sizeof(changed), "%s", json_get_string(lineage, "reason", ""));
        shorten(changed, SHOWN_COLUMNS);
        humanize_when(json_get_int(lineage, "updated_ms", 0), db_now_ms(), when, sizeof(when));
        snprintf(attempts, sizeof(attempts), "%lld",
                 (long long)json_get_int(lineage, "attempts", 0));
        table_row(table, job, json_get_string(lineage, "name", ""),
                  json_get_string(lineage, "user", ""), shown, attempts, failure, changed, when);
    }
    table_print(table, stdout);
    table_free(table);
}

static void print_tree(const json_t *reply)
{
    const json_t *lineage = json_object_get(reply, "lineage");
    json_t *attempt;
    size_t i;
    char job[64], state[40];

    lineage_job(lineage, job, sizeof(job));
    lineage_state(lineage, state, sizeof(state));
    printf("%s  %s  %s  %s\n", job, json_get_string(lineage, "name", ""),
           json_get_string(lineage, "user", ""), state);
    json_array_foreach(json_object_get(reply, "attempts"), i, attempt) lineage_print_attempt(
        lineage, attempt, i + 1 == json_array_size(json_object_get(reply, "attempts")));
    const char *reason = json_get_string(lineage, "reason", "");
    if (*reason)
        printf("   %s\n", reason);
}

int ctl_history(int argc, char **argv)
{
    static const struct argp argp = {option_table,
                                     parse_option,
                                     "[JOBID]",
                                     "What happened to jobs: one line a lineage, newest first; "
                                     "with a job id, all its attempts.",
                                     ctl_common_options,
                                     NULL,
                                     NULL};
    struct arguments a = {.path = "/v1/history"};
    struct oom_error err = {""};
    json_t *reply = NULL;

    if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0)
        return 2;
    if (a.job && lineage_path(a.job, a.path, sizeof(a.path), &err) < 0)
        return ctl_fail("history", &err);
    int status = ctl_call(&a.common, "history", "GET", a.path, NULL, &reply);
    if (status)
        return status;
    if (a.common.json) {
        ctl_print_json(reply);
    } else if (a.job) {
        print_tree(reply);
        story_advise_back(reply);
    } else if (json_array_size(json_object_get(reply, "lineages")) == 0) {
        puts(strchr(a.path, '?') ? "No lineage is like that."
                                 : "No lineages yet: nothing has run under oomretry here.");
    } else {
        print_list(json_object_get(reply, "lineages"));
    }
    json_decref(reply);
    return 0;
}
