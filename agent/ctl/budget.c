/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl budget: the site's bounds, and what has been used of them. */
#include <stdio.h>

#include "agent/ctl/common.h"
#include "agent/ctl/ctl.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/table.h"

static void print_bound(const char *name, double bound, const char *unit)
{
    if (bound > 0)
        printf("  %-30s %g%s\n", name, bound, unit);
    else
        printf("  %-30s no bound\n", name);
}

static void print_spenders(const char *titles, const char *key, const json_t *rows)
{
    struct table *table;
    const json_t *row;
    size_t i;

    if (json_array_size(rows) == 0)
        return;
    table = table_new(titles);
    json_array_foreach(rows, i, row)
    {
        char retries[24], hours[24];
        snprintf(retries, sizeof(retries), "%lld", (long long)json_get_int(row, "retries", 0));
        snprintf(hours, sizeof(hours), "%.2f",
                 json_number_value(json_object_get(row, "gpu_hours")));
        table_row(table, json_get_string(row, key, ""), retries, hours);
    }
    table_print(table, stdout);
    table_free(table);
    putchar('\n');
}

static void print_budget(const json_t *reply)
{
    const json_t *limits = json_object_get(reply, "limits");

    printf("used by you in the last 24 hours\n  %-30s %lld\n  %-30s %.2f\n\n", "retries",
           (long long)json_get_int(reply, "retries_24h", 0), "GPU-hours of failed attempts",
           json_number_value(json_object_get(reply, "gpu_hours_24h")));
    print_spenders("USER\tRETRIES\tGPU-HOURS", "user", json_object_get(reply, "users"));
    print_spenders("ACCOUNT\tRETRIES\tGPU-HOURS", "account", json_object_get(reply, "accounts"));
    printf("bounds of the site\n");
    print_bound("retries of a job", (double)json_get_int(limits, "max_retries", 0), "");
    print_bound("hours of failed attempts, a job",
                json_number_value(json_object_get(limits, "max_lineage_hours")), "");
    print_bound("memory of a job", (double)json_get_int(limits, "max_mem_mib", 0) / 1024, " GiB");
    print_bound("retries of a user and day",
                (double)json_get_int(limits, "attempts_per_user_day", 0), "");
    print_bound("GPU-hours of a user and day",
                json_number_value(json_object_get(limits, "gpu_hours_per_user_day")), "");
    print_bound("retries of an account and day",
                (double)json_get_int(limits, "attempts_per_account_day", 0), "");
    print_bound("GPU-hours of an account and day",
                json_number_value(json_object_get(limits, "gpu_hours_per_account_day")), "");
    if (json_get_int(limits, "cooldown_failures", 0) > 0)
        printf("  %-30s %lld min after %lld lineages that could not be helped\n",
               "pause of a policy", (long long)json_get_int(limits, "cooldown_s", 0) / 60,
               (long long)json_get_int(limits, "cooldown_failures", 0));
}

int ctl_budget(int argc, char **argv)
{
    static const struct argp argp = {
        .doc = "What the site allows, and what has been used of it in the last 24 hours: by you "
               "and the accounts that you use, for administrators by everybody.",
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
