/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl doctor: is everything in its place? Exit status 1 when something is not. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/ctl/common.h"
#include "agent/ctl/ctl.h"
#include "agent/evidence/sigset.h"
#include "agent/lib/child.h"
#include "agent/lib/config.h"
#include "agent/lib/paths.h"
#include "agent/sched/ray.h"
#include "policies/jsontext.h"

enum finding { GOOD, BAD, ABSENT /* and nothing needs it */ };

static const char *const finding_names[] = {"ok", "BAD", "-"};

/* `findings` is [{"check", "finding", "detail"}]. */
static void note(json_t *findings, enum finding finding, const char *check, const char *detail)
{
    json_array_append_new(findings,
                          json_pack("{s:o, s:s, s:o}", "check", oom_json_text(check), "finding",
                                    finding_names[finding], "detail", oom_json_text(detail)));
}

static void check_installation(json_t *findings)
{
    static const char *const files[] = {"bin/oomrun", "libexec/oomretry/oomstart",
                                        "lib/slurm/spank_oomretry.so"};
    struct oom_error err = {""};
    char path[4096];

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        bool found =
            paths_under_prefix(files[i], path, sizeof(path), &err) == 0 && access(path, R_OK) == 0;
        note(findings, found ? GOOD : BAD, files[i],
             found ? path : "not in the tree of this program");
    }
    struct oom_signatures *set = sigset_load(&err);
    note(findings, set ? GOOD : BAD, "signatures", set ? "shipped and the site's load" : err.text);
    oom_signatures_free(set);
}

static void check_head(json_t *findings, const struct ctl_common *common)
{
    struct oom_error err = {""};
    struct api *api = ctl_open(common, &err);
    json_t *reply = NULL;
    char text[2000];

    int status = api ? api_call(api, "GET", "/v1/plan/policies", NULL, &reply, &err) : -1;
    if (status == 200)
        snprintf(text, sizeof(text), "%s, %zu policies", api_where(api),
                 json_array_size(json_object_get(reply, "policies")));
    note(findings, status == 200 ? GOOD : BAD, "head", status == 200 ? text : err.text);
    json_decref(reply);
    api_close(api);
}

/* A cluster is optional: without Slurm's programs oomrun works by hand. */
static void check_slurm(json_t *findings)
{
    const char *ping[] = {"scontrol", "ping", NULL};
    const char *help[] = {"sbatch", "--help", NULL};
    struct child_result result;
    struct oom_error err = {""};
    char *out = NULL, text[sizeof(err.text) + 64];

    if (child_expect(ping, CTL_TIMEOUT_MS, &out, &err) < 0) {
        snprintf(text, sizeof(text), "%s (oomrun by hand does not need it)", err.text);
        note(findings, ABSENT, "Slurm", text);
        return;
    }
    out[strcspn(out, "\n")] = '\0';
    note(findings, GOOD, "Slurm", out);
    free(out);
    if (child_run(help, CTL_TIMEOUT_MS, &result, &err) == 0) {
        bool known = strstr(result.out, "oom-retry") != NULL;
        note(findings, known ? GOOD : BAD, "plugin",
             known ? "sbatch knows --oom-retry"
                   : "sbatch does not know --oom-retry: is the line in plugstack.conf?");
        child_result_free(&result);
    }
}

/* With the rights of the caller: the token's file may be for the head's user alone. */
static void check_ray(json_t *findings, const struct config *config)
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
        note(findings, good ? GOOD : BAD, what, good ? session : err.text);
        ray_close(client);
    }
}

static void print_findings(const json_t *findings)
{
    json_t *item;
    size_t i;

    json_array_foreach(findings, i, item)
    {
        const char *detail = json_string_value(json_object_get(item, "detail"));
        printf("%-4s %s%s%s\n", json_string_value(json_object_get(item, "finding")),
               json_string_value(json_object_get(item, "check")), *detail ? ": " : "", detail);
    }
}

static bool all_well(const json_t *findings)
{
    json_t *item;
    size_t i;

    json_array_foreach(findings, i, item)
    {
        if (strcmp(json_string_value(json_object_get(item, "finding")), finding_names[BAD]) == 0)
            return false;
    }
    return true;
}

int ctl_doctor(int argc, char **argv)
{
    static const struct argp argp = {.doc = "Looks whether everything is in its place.",
                                     .children = ctl_common_options};
    struct ctl_common common = {0};
    struct config config;
    struct oom_error err = {""};
    json_t *findings = json_array();

    if (argp_parse(&argp, argc, argv, 0, NULL, &common) != 0)
        return 2;
    bool good = config_load(NULL, &config, &err) == 0;
    note(findings, good ? GOOD : BAD, "configuration", good ? "" : err.text);
    if (good) {
        check_ray(findings, &config);
        config_free(&config);
    }
    check_installation(findings);
    check_head(findings, &common);
    check_slurm(findings);
    if (common.json)
        ctl_print_json(findings);
    else
        print_findings(findings);
    bool well = all_well(findings);
    json_decref(findings);
    return well ? 0 : 1;
}
