/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl ray list: the jobs of the configured clusters, and what the watcher would do with each.
 * Asks the dashboards with the rights of the caller. */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ctl/ctl.h"
#include "agent/lib/config.h"
#include "agent/lib/humanize.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/table.h"
#include "agent/sched/ray.h"

enum { KEY_JSON = 256, KEY_ALL };

static const struct argp_option option_table[] = {
    {"json", KEY_JSON, NULL, 0, "as JSON", 0},
    {"all", KEY_ALL, NULL, 0, "also jobs that have ended, and those that have not opted in", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

struct arguments {
    bool json, all;
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct arguments *a = state->input;

    (void)arg;
    if (key == KEY_JSON)
        a->json = true;
    else if (key == KEY_ALL)
        a->all = true;
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

/* What the watcher makes of the job's metadata, in a word or in words. */
static void judge(const json_t *job, const char *site_rule, char *out, size_t size, bool *watched)
{
    struct ray_wish wish;
    char why[160];

    ray_wish_read(job, site_rule, &wish);
    *watched = wish.wanted && !ray_owned_elsewhere(job, why, sizeof(why));
    if (wish.problem[0])
        snprintf(out, size, "%s: %s", wish.wanted ? wish.policy : "no", wish.problem);
    else if (*watched)
        snprintf(out, size, "%s%s", wish.policy, wish.dry_run ? " (dry run)" : "");
    else
        snprintf(out, size, "%s", wish.wanted ? why : "no: not opted in");
}

static void add_jobs(const struct ray_options *options, const json_t *jobs, bool all, json_t *rows)
{
    json_t *job;
    size_t i;

    json_array_foreach(jobs, i, job)
    {
        const char *status = json_get_string(job, "status", "");
        char retry[320];
        bool watched;
        judge(job, options->retry, retry, sizeof(retry), &watched);
        if (!all && (!watched || ray_status_is_final(status)))
            continue;
        json_array_append_new(
            rows,
            json_pack("{s:s, s:s, s:s, s:s, s:I, s:s}", "dashboard", options->url, "job",
                      json_get_string(job, "submission_id", ""), "status", status, "retry", retry,
                      "start_ms", (json_int_t)json_get_int(job, "start_time", 0), "former",
                      json_get_string(json_object_get(job, "metadata"), "oom_former", "")));
    }
}

/* The number of dashboards that did not answer. */
static int ask_all(const struct config *config, bool all, json_t *rows)
{
    int silent = 0;

    for (size_t i = 0; i < config->ray_cluster_count; i++) {
        struct ray_options options;
        struct oom_error err = {""};
        json_t *jobs = NULL;
        struct ray_client *client = ray_options_parse(config->ray_clusters[i], &options, &err) == 0
                                        ? ray_open(&options, &err)
                                        : NULL;
        if (client && ray_list(client, &jobs, &err) == 0) {
            add_jobs(&options, jobs, all, rows);
        } else {
            fprintf(stderr, "oomctl ray list: %s\n", err.text);
            silent++;
        }
        json_decref(jobs);
        ray_close(client);
    }
    return silent;
}

static void print_rows(const json_t *rows)
{
    struct table *table = table_new("JOB\tSTATUS\tRETRY\tFORMER\tSTARTED\tDASHBOARD");
    json_t *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        char when[64];
        int64_t start_ms = json_get_int(row, "start_ms", 0);
        if (start_ms > 0)
            humanize_iso(start_ms, when, sizeof(when));
        else
            strcpy(when, "-");
        const char *former = json_get_string(row, "former", "");
        table_row(table, json_get_string(row, "job", ""), json_get_string(row, "status", ""),
                  json_get_string(row, "retry", ""), *former ? former : "-", when,
                  json_get_string(row, "dashboard", ""));
    }
    table_print(table, stdout);
    table_free(table);
}

int ctl_ray_list(int argc, char **argv)
{
    static const struct argp argp = {
        option_table, parse_option, NULL, "Jobs of the configured Ray clusters that are watched.",
        NULL,         NULL,         NULL};
    struct arguments a = {false, false};
    struct config config;
    struct oom_error err = {""};

    if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0)
        return 2;
    if (config_load(NULL, &config, &err) < 0) {
        fprintf(stderr, "oomctl ray list: %s\n", err.text);
        return 2;
    }
    if (config.ray_cluster_count == 0) {
        fputs("oomctl ray list: no ray_clusters are configured on this machine\n", stderr);
        config_free(&config);
        return 2;
    }
    json_t *rows = json_array();
    int silent = ask_all(&config, a.all, rows);
    if (a.json) {
        json_dumpf(rows, stdout, JSON_INDENT(2));
        putchar('\n');
    } else {
        print_rows(rows);
    }
    json_decref(rows);
    config_free(&config);
    return silent ? 1 : 0;
}
