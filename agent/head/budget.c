/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/head/budget.h"

#include <stdio.h>

#include "agent/lib/jsonget.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)

/* Retries of this user in the last day, and what the attempts that ran out cost. A lineage is
 * updated whenever an attempt starts, so older ones need not be looked at. */
static int spent(struct service *service, int64_t uid, int64_t *retries, double *gpu_hours,
                 struct oom_error *err)
{
    int64_t since = db_now_ms() - DAY_MS, gpu_ms = 0;

    if (db_get_int(service->db, err, 0, retries,
                   "SELECT count(*) FROM attempt a JOIN lineage l ON l.id = a.lineage "
                   "WHERE l.uid = ?1 AND l.updated_ms >= ?2 AND a.decision IS NOT NULL "
                   "AND a.started_ms >= ?2",
                   "ii", uid, since) < 0 ||
        db_get_int(service->db, err, 0, &gpu_ms,
                   "SELECT sum((a.ended_ms - a.started_ms) * min(max(a.gpus, 0), 100000)) "
                   "FROM attempt a JOIN lineage l ON l.id = a.lineage WHERE l.uid = ?1 "
                   "AND l.updated_ms >= ?2 AND a.outcome = 'oom' AND a.started_ms >= ?2",
                   "ii", uid, since) < 0)
        return -1;
    *gpu_hours = (double)gpu_ms / 3600000.0;
    return 0;
}

/* The newest lineages of this framework that are over, all stopped and all within the time: the
 * policy does not help at present, whatever the reason. */
static int cooling_down(struct service *service, const char *framework, bool *yes,
                        struct oom_error *err)
{
    const struct service_limits *limits = service->limits;
    int64_t stopped = 0;

    *yes = false;
    if (limits->cooldown_failures <= 0 || !*framework)
        return 0;
    if (db_get_int(service->db, err, 0, &stopped,
                   "SELECT CASE WHEN count(*) = ?1 AND min(updated_ms) >= ?2 "
                   "THEN sum(state = 'stopped') ELSE 0 END FROM (SELECT state, updated_ms "
                   "FROM lineage WHERE framework = ?3 AND state IN ('stopped', 'completed') "
                   "ORDER BY updated_ms DESC LIMIT ?1)",
                   "iis", (int64_t)limits->cooldown_failures,
                   db_now_ms() - (int64_t)limits->cooldown_s * 1000, framework) < 0)
        return -1;
    *yes = stopped == limits->cooldown_failures;
    return 0;
}

int budget_refuses(struct service *service, const json_t *lineage, char *reason, size_t size,
                   struct oom_error *err)
{
    const struct service_limits *limits = service->limits;
    const char *framework = json_get_string(lineage, "framework", "");
    int64_t retries = 0;
    double gpu_hours = 0;
    bool cooling = false;

    if (spent(service, json_get_int(lineage, "uid", -1), &retries, &gpu_hours, err) < 0 ||
        cooling_down(service, framework, &cooling, err) < 0)
        return -1;
    if (limits->attempts_per_user_day > 0 && retries >= limits->attempts_per_user_day) {
        snprintf(reason, size,
                 "%lld retries of this user in the last 24 hours, which is the site's bound "
                 "(attempts_per_user_day)",
                 (long long)retries);
        return 1;
    }
    if (limits->gpu_hours_per_user_day > 0 && gpu_hours >= limits->gpu_hours_per_user_day) {
        snprintf(reason, size,
                 "failed attempts of this user took %.1f GPU-hours in the last 24 hours; the "
                 "site's bound is %.1f (gpu_hours_per_user_day)",
                 gpu_hours, limits->gpu_hours_per_user_day);
        return 1;
    }
    if (cooling) {
        snprintf(reason, size,
                 "the last %d lineages of %s could not be helped, so there is a pause of %d "
                 "minutes (cooldown_failures)",
                 limits->cooldown_failures, framework, limits->cooldown_s / 60);
        return 1;
    }
    return 0;
}

/* GET /v1/budget: bounds and what this user has used. */
int budget_show(struct service *service, const struct service_request *request,
                const char *const *args, json_t **reply, struct oom_error *err)
{
    const struct service_limits *limits = service->limits;
    int64_t retries = 0;
    double gpu_hours = 0;

    (void)args;
    if (spent(service, (int64_t)request->uid, &retries, &gpu_hours, err) < 0)
        return -1;
    *reply =
        json_pack("{s:I, s:f, s:{s:i, s:i, s:i, s:f, s:i, s:i, s:I}}", "retries_24h",
                  (json_int_t)retries, "gpu_hours_24h", gpu_hours, "limits", "max_retries",
                  limits->max_retries, "default_retries", limits->default_retries,
                  "attempts_per_user_day", limits->attempts_per_user_day, "gpu_hours_per_user_day",
                  limits->gpu_hours_per_user_day, "cooldown_failures", limits->cooldown_failures,
                  "cooldown_s", limits->cooldown_s, "max_mem_mib", (json_int_t)limits->max_mem_mib);
    return 200;
}
