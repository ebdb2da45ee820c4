/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening the head's state, and finding a request's route in the table. */
#include "agent/head/service.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/head/sound.h"
#include "agent/lib/paths.h"
#include "db/policies.h"

enum { MAX_SEGMENTS = 8, MAX_PATH_BYTES = 512 };

enum storing {
    AS_IT_SAYS, /* nothing, one statement, or a transaction of its own */
    AS_A_WHOLE, /* all that it stores, or, when it refuses, fails or dies, nothing of it */
    FOR_TRIAL,  /* as if, to see what comes of it */
};

static const struct service_route {
    const char *method;
    const char *pattern; /* '*' matches one segment */
    service_route_f *run;
    enum storing storing;
} routes[] = {
    {"POST", "/v1/attempts/begin", attempts_begin, AS_A_WHOLE},
    {"POST", "/v1/attempts/end", attempts_end, AS_A_WHOLE},
    /* What would be decided if the attempt ended like this: the same request as for its end. */
    {"POST", "/v1/attempts/ask", attempts_end, FOR_TRIAL},
    {"POST", "/v1/attempts/note", attempts_note, AS_A_WHOLE},
    {"GET", "/v1/attempts/open", attempts_open, AS_IT_SAYS},
    {"POST", "/v1/attempts/claim", attempts_claim, AS_IT_SAYS},
    {"GET", "/v1/lineages/*/policies", attempts_policies, AS_IT_SAYS},
    {"GET", "/v1/plan/policies", plan_policies, AS_IT_SAYS},
    {"POST", "/v1/plan", plan_make, AS_IT_SAYS},
    {"GET", "/v1/policies", policies_list, AS_IT_SAYS},
    {"GET", "/v1/policies/*", policies_show, AS_IT_SAYS},
    {"POST", "/v1/policies/*", policies_store, AS_IT_SAYS},
    {"GET", "/v1/policies/*/log", policies_log, AS_IT_SAYS},
    {"POST", "/v1/policies/*/*", policies_act, AS_IT_SAYS},
    {"POST", "/v1/lineages/*/*", lineage_steer, AS_A_WHOLE},
    {"GET", "/v1/budget", budget_show, AS_IT_SAYS},
    {"GET", "/v1/stats", stats_show, AS_IT_SAYS},
    {"GET", "/v1/report", report_show, AS_IT_SAYS},
    {"POST", "/v1/reports", reports_add, AS_IT_SAYS},
    {"GET", "/v1/reports/*", reports_of_job, AS_IT_SAYS},
    {"GET", "/v1/history", history_list, AS_IT_SAYS},
    {"GET", "/v1/history/*", history_show, AS_IT_SAYS},
};

const struct service_limits service_default_limits = {
    .max_retries = 20,
    .default_retries = 6,
    .attempts_per_user_day = 500,
    .cooldown_failures = 10,
    .cooldown_s = 3600,
};

int service_open(struct service *service, const char *db_path, struct oom_error *err)
{
    char directory[4096];

    *service = (struct service){.cluster = "", .limits = &service_default_limits};
    if (paths_under_prefix("share/oomretry/frameworks", directory, sizeof(directory), err) < 0)
        return -1;
    service->db = db_open(db_path, err);
    if (!service->db)
        return -1;
    if (policies_seed(service->db, directory, err) == 0)
        return 0;
    service_close(service);
    return -1;
}

void service_close(struct service *service)
{
    db_close(service->db);
    service->db = NULL;
}

int service_refuse(int status, struct oom_error *err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (err)
        vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
    return status;
}

static int split(char *path, char **segments)
{
    int count = 0;
    char *save = NULL;

    for (char *s = strtok_r(path, "/", &save); s; s = strtok_r(NULL, "/", &save)) {
        if (count == MAX_SEGMENTS)
            return -1;
        segments[count++] = s;
    }
    return count;
}

static bool matches(const char *pattern, char *const *segments, int count, const char **args)
{
    char copy[MAX_PATH_BYTES];
    char *wanted[MAX_SEGMENTS];
    int arg = 0;

    snprintf(copy, sizeof(copy), "%s", pattern);
    if (split(copy, wanted) != count)
        return false;
    for (int i = 0; i < count; i++) {
        if (strcmp(wanted[i], "*") == 0)
            args[arg++] = segments[i];
        else if (strcmp(wanted[i], segments[i]) != 0)
            return false;
    }
    return true;
}

static int run(struct service *service, const struct service_route *route,
               const struct service_request *request, const char *const *args, json_t **reply,
               struct oom_error *err)
{
    if (route->storing == AS_IT_SAYS)
        return route->run(service, request, args, reply, err);
    if (db_begin(service->db, err) < 0)
        return -1;
    int status = route->run(service, request, args, reply, err);
    bool keep = route->storing == AS_A_WHOLE && status >= 0 && status < 400;
    return db_end(service->db, keep, keep ? err : NULL) < 0 ? -1 : status;
}

static int dispatch(struct service *service, const struct service_request *request, json_t **reply,
                    struct oom_error *err)
{
    char path[MAX_PATH_BYTES];
    char *segments[MAX_SEGMENTS];
    const char *args[MAX_SEGMENTS];
    bool known = false;

    if (!sound_body(request->body))
        return service_refuse(400, err, "the body is nested too deep or has too many members");
    int n = snprintf(path, sizeof(path), "%s", request->path);
    int count = n < 0 || (size_t)n >= sizeof(path) ? -1 : split(path, segments);
    for (size_t i = 0; count > 0 && i < sizeof(routes) / sizeof(routes[0]); i++) {
        if (!matches(routes[i].pattern, segments, count, args))
            continue;
        known = true;
        if (strcmp(routes[i].method, request->method) == 0)
            return run(service, &routes[i], request, args, reply, err);
    }
    if (known)
        return service_refuse(405, err, "%s is not for %s", request->path, request->method);
    return service_refuse(404, err, "there is nothing at this path");
}

int service_handle(struct service *service, const struct service_request *request, json_t **reply)
{
    struct oom_error err = {""};

    *reply = NULL;
    int status = dispatch(service, request, reply, &err);
    if (status < 0)
        status = 500;
    if (status >= 400 || !*reply) {
        json_decref(*reply);
        /* A message may quote bytes of a hostile body: json_string refuses what is not UTF-8. */
        json_t *text = json_string(err.text);
        *reply = status >= 400
                     ? json_pack("{s:o}", "error", text ? text : json_string("invalid request"))
                     : json_object();
        if (status < 400)
            json_decref(text);
    }
    return status;
}
