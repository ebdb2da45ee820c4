/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl stats: what fails and what helps. oomctl doctor: is everything in its place? */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/ctl/common.h"
#include "agent/ctl/ctl.h"
#include "agent/evidence/sigset.h"
#include "agent/lib/child.h"
#include "agent/lib/config.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/paths.h"
#include "agent/lib/table.h"
#include "agent/sched/ray.h"

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

int ctl_stats(int argc, char **argv)
{
    static const struct argp argp = {.doc = "What fails, and which rungs help.",
                                     .children = ctl_common_options};
    struct ctl_common common = {0};
    json_t *reply = NULL;

    if (argp_parse(&argp, argc, argv, 0, NULL, &common) != 0 ||
        ctl_call(&common, "stats", "GET", "/v1/stats", NULL, &reply) != 0)
        return 2;
    if (common.json)
        ctl_print_json(reply);
    else
        print_stats(reply);
    json_decref(reply);
    return 0;
}

static int bad;

static void report(bool good, const char *what, const char *detail)
{
    printf("%-5s %s%s%s\n", good ? "ok" : "BAD", what, *detail ? ": " : "", detail);
    bad += !good;
}

static void check_installation(void)
{
    static const char *const files[] = {"bin/oomrun", "libexec/oomretry/oomstart",
                                        "lib/slurm/spank_oomretry.so"};
    struct oom_error err = {""};
    char path[4096];

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        bool found =
            paths_under_prefix(files[i], path, sizeof(path), &err) == 0 && access(path, R_OK) == 0;
        report(found, files[i], found ? path : "not in the tree of this program");
    }
    struct oom_signatures *set = sigset_load(&err);
    report(set != NULL, "signatures", set ? "shipped and the site's load" : err.text);
    oom_signatures_free(set);
}

static void check_head(void)
{
    struct oom_error err = {""};
    struct api *api = api_open_default(NULL, CTL_TIMEOUT_MS, &err);
    json_t *reply = NULL;
    char text[2000];

    int status = api ? api_call(api, "GET", "/v1/plan/policies", NULL, &reply, &err) : -1;
    if (status == 200)
        snprintf(text, sizeof(text), "%s, %zu policies", api_where(api),
                 json_array_size(json_object_get(reply, "policies")));
    report(status == 200, "head", status == 200 ? text : err.text);
    json_decref(reply);
    api_close(api);
}

/* A cluster is optional: without Slurm's programs oomrun works by hand. */
static void check_slurm(void)
{
    const char *ping[] = {"scontrol", "ping", NULL};
    const char *help[] = {"sbatch", "--help", NULL};
    struct child_result result;
    struct oom_error err = {""};
    char *out = NULL;

    if (child_expect(ping, CTL_TIMEOUT_MS, &out, &err) < 0) {
        printf("-     Slurm: %s (oomrun by hand does not need it)\n", err.text);
        return;
    }
    out[strcspn(out, "\n")] = '\0';
    report(true, "Slurm", out);
    free(out);
    if (child_run(help, CTL_TIMEOUT_MS, &result, &err) == 0) {
        bool known = strstr(result.out, "oom-retry") != NULL;
        report(known, "plugin",
               known ? "sbatch knows --oom-retry"
                     : "sbatch does not know --oom-retry: is the line in "
                       "plugstack.conf?");
        child_result_free(&result);
    }
}

/* With the rights of the caller: the token's file may be for the head's user alone. */
static void check_ray(const struct config *config)
{
    for (size_t i = 0; i < config->ray_cluster_count; i++) {
        struct ray_options options;
        struct oom_error err = {""};
        char what[300], session[256] = "";
        struct ray_client *client = ray_options_parse(config->ray_clusters[i], &options, &err) == 0
                                        ? ray_open(&options, &err)
                                        : NULL;
        bool good = client && ray_identify(client, session, sizeof(session), &err) == 0;
        snprintf(what, sizeof(what), "Ray at %s", options.url);
        report(good, what, good ? session : err.text);
        ray_close(client);
    }
}

int ctl_doctor(int argc, char **argv)
{
    static const struct argp argp = {NULL, NULL, NULL, "Looks whether everything is in its place.",
                                     NULL, NULL, NULL};
    struct config config;
    struct oom_error err = {""};

    if (argp_parse(&argp, argc, argv, 0, NULL, NULL) != 0)
        return 2;
    bad = 0;
    bool good = config_load(NULL, &config, &err) == 0;
    report(good, "configuration", good ? "" : err.text);
    if (good) {
        check_ray(&config);
        config_free(&config);
    }
    check_installation();
    check_head();
    check_slurm();
    return bad ? 1 : 0;
}
