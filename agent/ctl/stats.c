/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl stats: what fails and what helps. */

#include "agent/ctl/common.h"
#include "agent/ctl/ctl.h"
#include "agent/ctl/since.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/table.h"

enum { KEY_SINCE = 256 };

static void print_rows(const char *titles, const json_t *rows, const char *const *keys)
{
    struct table *table = table_new(titles);
    json_t *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        char cells[5][64] = {""};
        for (int c = 0; c < 5 && keys[c]; c++) {
            const json_t *value = json_object_get(row, keys[c]);
            if (json_is_integer(value))
                snprintf(cells[c], 64, "%lld", (long long)json_integer_value(value));
            else
                snprintf(cells[c], 64, "%s",
                         json_string_value(value) ? json_string_value(value) : "-");
        }
        table_row(table, cells[0], cells[1], cells[2], cells[3], cells[4]);
    }
    table_print(table, stdout);
    table_free(table);
}

static void print_stats(const json_t *reply)
{
    static const char *const lineage_keys[] = {"framework", "state", "count", NULL};
    static const char *const incident_keys[] = {"framework", "domain", "phase", "count", NULL};
    static const char *const rung_keys[] = {"policy", "rung", "tried", "helped", "not_applied"};
    const json_t *cost = json_object_get(reply, "cost");

    print_rows("FRAMEWORK\tSTATE\tLINEAGES", json_object_get(reply, "lineages"), lineage_keys);
    putchar('\n');
    print_rows("FRAMEWORK\tDOMAIN\tPHASE\tFAILURES", json_object_get(reply, "incidents"),
               incident_keys);
    putchar('\n');
    print_rows("POLICY\tRUNG\tTRIED\tHELPED\tNOT APPLIED", json_object_get(reply, "rungs"),
               rung_keys);
    printf("\n%lld failed attempts took %.1f GPU-hours\n",
           (long long)json_get_int(cost, "failed_attempts", 0),
           json_number_value(json_object_get(cost, "gpu_hours")));
}

struct arguments {
    struct ctl_common common;
    char path[64];
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct arguments *a = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->common;
        return 0;
    case KEY_SINCE:
        snprintf(a->path, sizeof(a->path), "/v1/stats?since_ms=%lld",
                 (long long)since_parse(state, arg));
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int ctl_stats(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"since", KEY_SINCE, "T", 0, "not older than: 2h, 3d, or a date 2026-11-29", 0},
        {NULL, 0, NULL, 0, NULL, 0},
    };
    static const struct argp argp = {.options = options,
                                     .parser = parse_option,
                                     .doc = "What fails, and which rungs help.",
                                     .children = ctl_common_options};
    struct arguments a = {.path = "/v1/stats"};
    json_t *reply = NULL;

    if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0 ||
        ctl_call(&a.common, "stats", "GET", a.path, NULL, &reply) != 0)
        return 2;
    if (a.common.json)
        ctl_print_json(reply);
    else
        print_stats(reply);
    json_decref(reply);
    return 0;
}
