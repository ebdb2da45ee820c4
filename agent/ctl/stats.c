/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl stats: what fails and what helps. */
#include <stdio.h>

#include "agent/ctl/common.h"
#include "agent/ctl/ctl.h"
#include "agent/ctl/since.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/table.h"

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

static void print_stats(const json_t *reply, int64_t since_ms)
{
    static const char *const lineage_keys[] = {"framework", "state", "count", NULL};
    static const char *const incident_keys[] = {"framework", "domain", "phase", "count", NULL};
    static const char *const rung_keys[] = {"policy", "rung", "tried", "helped", "not_applied"};
    const json_t *cost = json_object_get(reply, "cost");

    (void)since_ms;
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

int ctl_stats(int argc, char **argv)
{
    return since_report("stats", "What fails, and which rungs help.", 0, argc, argv, print_stats);
}
