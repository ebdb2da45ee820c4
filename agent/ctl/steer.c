/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl stop, hold, resume: what the owner of a job says about its retries. oomctl budget: the
 * site's bounds and what has been used of them. */
#include <argp.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ctl/ctl.h"
#include "agent/ctl/lineage_text.h"
#include "agent/lib/api.h"
#include "agent/lib/jsonget.h"

enum { KEY_JSON = 256, KEY_DB };

struct arguments {
    const char *what;
    const char *db_path;
    bool json;
    bool needs_job;
};

static const struct argp_option option_table[] = {
    {"json", KEY_JSON, NULL, 0, "as JSON", 0},
    {"db", KEY_DB, "FILE", 0, "use this database instead of asking the head", 0},
    {NULL, 0, NULL, 0, NULL, 0},
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
        if (a->what || !a->needs_job)
            argp_error(state, "too many arguments: \"%s\"", arg);
        a->what = arg;
        return 0;
    case ARGP_KEY_END:
        if (a->needs_job && !a->what)
            argp_error(state, "which job? `oomctl history` lists them");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int fail(const char *verb, const struct oom_error *err)
{
    fprintf(stderr, "oomctl: %s: %s\n", verb, err->text);
    return 2;
}

static int steer(const char *verb, const char *doc, const char *done, int argc, char **argv)
{
    const struct argp argp = {option_table, parse_option, "JOBID", doc, NULL, NULL, NULL};
    struct arguments a = {.needs_job = true};
    struct oom_error err = {""};
    json_t *found = NULL, *reply = NULL;
    char path[256];
    int status = -1;

    if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0)
        return 2;
    struct api *api = api_open_default(a.db_path, CTL_TIMEOUT_MS, &err);
    if (api && lineage_path(a.what, path, sizeof(path), &err) == 0 &&
        api_call(api, "GET", path, NULL, &found, &err) == 200) {
        snprintf(path, sizeof(path), "/v1/lineages/%lld/%s",
                 (long long)json_get_int(json_object_get(found, "lineage"), "id", 0), verb);
        status = api_call(api, "POST", path, NULL, &reply, &err);
    }
    api_close(api);
    if (status == 200 && a.json) {
        json_dumpf(reply, stdout, JSON_INDENT(2));
        putchar('\n');
    } else if (status == 200) {
        printf("job %s: %s\n", a.what, done);
    }
    json_decref(found);
    json_decref(reply);
    return status == 200 ? 0 : fail(verb, &err);
}

int ctl_stop(int argc, char **argv)
{
    return steer("stop", "No more retries for this job; the attempt that runs goes on.",
                 "no more retries", argc, argv);
}

int ctl_hold(int argc, char **argv)
{
    return steer("hold", "Keeps the settings of this job as they are: it is not changed any more.",
                 "its settings are held", argc, argv);
}

int ctl_resume(int argc, char **argv)
{
    return steer("resume", "Takes back `oomctl stop` or `oomctl hold`.", "retries go on", argc,
                 argv);
}

static void print_bound(const char *name, double bound, const char *unit)
{
    if (bound > 0)
        printf("  %-28s %g%s\n", name, bound, unit);
    else
        printf("  %-28s no bound\n", name);
}

int ctl_budget(int argc, char **argv)
{
    static const struct argp argp = {option_table,
                                     parse_option,
                                     NULL,
                                     "What the site allows, and what your jobs have used of it in "
                                     "the last 24 hours.",
                                     NULL,
                                     NULL,
                                     NULL};
    struct arguments a = {0};
    struct oom_error err = {""};
    json_t *reply = NULL;

    if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0)
        return 2;
    struct api *api = api_open_default(a.db_path, CTL_TIMEOUT_MS, &err);
    int status = api ? api_call(api, "GET", "/v1/budget", NULL, &reply, &err) : -1;
    api_close(api);
    if (status != 200) {
        json_decref(reply);
        return fail("budget", &err);
    }
    const json_t *limits = json_object_get(reply, "limits");
    if (a.json) {
        json_dumpf(reply, stdout, JSON_INDENT(2));
        putchar('\n');
    } else {
        printf("used in the last 24 hours\n  %-28s %lld\n  %-28s %.2f\n", "retries",
               (long long)json_get_int(reply, "retries_24h", 0), "GPU-hours of failed attempts",
               json_number_value(json_object_get(reply, "gpu_hours_24h")));
        printf("bounds of the site\n");
        print_bound("retries of a job", (double)json_get_int(limits, "max_retries", 0), "");
        print_bound("retries of a user and day",
                    (double)json_get_int(limits, "attempts_per_user_day", 0), "");
        print_bound("GPU-hours of a user and day",
                    json_number_value(json_object_get(limits, "gpu_hours_per_user_day")), "");
        print_bound("memory of a job", (double)json_get_int(limits, "max_mem_mib", 0) / 1024,
                    " GiB");
    }
    json_decref(reply);
    return 0;
}
