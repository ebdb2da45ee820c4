/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ctl/since.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "db/db.h"

int64_t since_parse(struct argp_state *state, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    struct tm day = {.tm_isdst = -1};

    if (end > text && value >= 0 && end[0] && !end[1] && strchr("smhdw", *end)) {
        static const double seconds[] = {1, 60, 3600, 86400, 604800};
        return db_now_ms() - (int64_t)(value * 1000 * seconds[strchr("smhdw", *end) - "smhdw"]);
    }
    const char *rest = strptime(text, "%Y-%m-%d", &day);
    if (!rest || (*rest && *rest != 'T'))
        argp_error(state,
                   "--since takes 90s, 30m, 2h, 3d, 1w or a date such as 2026-11-29, "
                   "not \"%s\"",
                   text);
    return (int64_t)mktime(&day) * 1000;
}

enum { KEY_SINCE = 256 };

struct arguments {
    struct ctl_common common;
    int64_t since_ms;
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct arguments *a = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->common;
        return 0;
    case KEY_SINCE:
        a->since_ms = since_parse(state, arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int since_report(const char *verb, const char *doc, int64_t since_ms, int argc, char **argv,
                 void (*print)(const json_t *reply, int64_t since_ms))
{
    static const struct argp_option options[] = {
        {"since", KEY_SINCE, "T", 0, "not older than: 2h, 3d, or a date 2026-11-29", 0},
        {NULL, 0, NULL, 0, NULL, 0},
    };
    const struct argp argp = {
        .options = options, .parser = parse_option, .doc = doc, .children = ctl_common_options};
    struct arguments a = {.since_ms = since_ms};
    json_t *reply = NULL;
    char path[64];

    if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0)
        return 2;
    snprintf(path, sizeof(path), "/v1/%s?since_ms=%lld", verb, (long long)a.since_ms);
    if (ctl_call(&a.common, verb, "GET", path, NULL, &reply) != 0)
        return 2;
    if (a.common.json)
        ctl_print_json(reply);
    else
        print(reply, a.since_ms);
    json_decref(reply);
    return 0;
}
