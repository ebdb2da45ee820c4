/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl budget: the site's bounds, and what has been used of them. */
#include <stdio.h>

#include "agent/ctl/common.h"
#include "agent/ctl/ctl.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/table.h"

enum { NAME_COLUMNS = 36 };

static void print_bound(const char *name, double bound, const char *unit)
{
    if (bound > 0)
        printf("  %-*s %g%s\n", NAME_COLUMNS, name, bound, unit);
    else
        printf("  %-*s no bound\n", NAME_COLUMNS, name);
}

/* "5 of 500"; "0.25" where there is no bound. */
static const char *used_of(char *text, size_t size, int decimals, double used, double bound)
{
    int n = snprintf(text, size, "%.*f", decimals, used);

    if (bound > 0 && n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, " of %g", bound);
    return text;
}

/* Who used what, of what each of them may. */
static void print_spenders(const char *titles, const char *key, const json_t *rows,
                           double retry_bound, double hour_bound)
{
    struct table *table;
    const json_t *row;
    size_t i;

    if (json_array_size(rows) == 0)
        return;
    table = table_new(titles);
    json_array_foreach(rows, i, row)
    {
        char retries[64], hours[64];
        table_row(table, json_get_string(row, key, ""),
                  used_of(retries, sizeof(retries), 0, (double)json_get_int(row, "retries", 0),
                          retry_bound),
                  used_of(hours, sizeof(hours), 2,
                          json_number_value(json_object_get(row, "gpu_hours")), hour_bound));
    }
    table_print(table, stdout);
    table_free(table);
    putchar('\n');
}

static void print_budget(const json_t *reply)
{
    const json_t *limits = json_object_get(reply, "limits");
    double user_retries = (double)json_get_int(limits, "attempts_per_user_day", 0);
    double user_hours = json_number_value(json_object_get(limits, "gpu_hours_per_user_day"));
    double account_retries = (double)json_get_int(limits, "attempts_per_account_day", 0);
    double account_hours = json_number_value(json_object_get(limits, "gpu_hours_per_account_day"));
    char text[64];

    printf("used by you in the last 24 hours\n  %-*s %s\n", NAME_COLUMNS, "retries",
           used_of(text, sizeof(text), 0, (double)json_get_int(reply, "retries_24h", 0),
                   user_retries));
    printf("  %-*s %s\n\n", NAME_COLUMNS, "GPU-hours of failed attempts",
           used_of(text, sizeof(text), 2,
                   json_number_value(json_object_get(reply, "gpu_hours_24h")), user_hours));
    print_spenders("USER\tRETRIES\tGPU-HOURS", "user", json_object_get(reply, "users"),
                   user_retries, user_hours);
    print_spenders("ACCOUNT\tRETRIES\tGPU-HOURS", "account", json_object_get(reply, "accounts"),
                   account_retries, account_hours);
    printf("bounds of the site\n");
    print_bound("retries of a job", (double)json_get_int(limits, "max_retries", 0), "");
    print_bound("hours of a job's failed attempts",
                json_number_value(json_object_get(limits, "max_lineage_hours")), "");
    print_bound("memory of a job, on a node", (double)json_get_int(limits, "max_mem_mib", 0) / 1024,
                " GiB");
    print_bound("retries of a user and day", user_retries, "");
    print_bound("GPU-hours of a user and day", user_hours, "");
    print_bound("retries of an account and day", account_retries, "");
    print_bound("GPU-hours of an account and day", account_hours, "");
    if (json_get_int(limits, "cooldown_failures", 0) > 0)
        printf("  %-*s %lld min after %lld lineages that could not be helped\n", NAME_COLUMNS,
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
