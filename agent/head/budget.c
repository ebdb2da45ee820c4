/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/head/budget.h"

#include <stdio.h>

#include "agent/lib/jsonget.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)

/* Since ?1: retries, those that are about to start among them, and what the attempts that ran out
 * took of the GPUs that were allocated to them. A lineage is updated whenever an attempt starts,
 * so that older ones need not be looked at. */
#define SPENT                                                                                      \
    "coalesce(sum(a.decision IS NOT NULL AND a.number > 1 "                                        \
    "AND (a.started_ms >= ?1 OR a.state = 'intended')), 0) AS retries, "                           \
    "coalesce(sum(CASE WHEN a.outcome = 'oom' AND a.started_ms >= ?1 "                             \
    "THEN (a.ended_ms - a.started_ms) / 3600000.0 * a.gpus END), 0) AS gpu_hours "                 \
    "FROM attempt a JOIN lineage l ON l.id = a.lineage WHERE l.updated_ms >= ?1 "

struct spent {
    int64_t retries;
    double gpu_hours;
};

static int spent_by(struct service *service, const char *sql, int64_t uid, const char *account,
                    struct spent *out, struct oom_error *err)
{
    sqlite3_stmt *stmt = db_query(service->db, err, sql, "iis", db_now_ms() - DAY_MS, uid, account);
    int rc = stmt ? db_step(service->db, stmt, err) : -1;

    if (rc > 0) {
        out->retries = sqlite3_column_int64(stmt, 0);
        out->gpu_hours = sqlite3_column_double(stmt, 1);
    }
    sqlite3_finalize(stmt);
    return rc < 0 ? -1 : 0;
}

/* 1: it is used up, and reason says which bound. */
static int over(const char *who, const char *kind, const struct spent *spent, int retries,
                double gpu_hours, char *reason, size_t size)
{
    if (retries > 0 && spent->retries >= retries) {
        snprintf(reason, size,
                 "%lld retries of this %s in the last 24 hours, which is the site's bound "
                 "(attempts_per_%s_day)",
                 (long long)spent->retries, who, kind);
        return 1;
    }
    if (gpu_hours > 0 && spent->gpu_hours >= gpu_hours) {
        snprintf(reason, size,
                 "failed attempts of this %s took %.1f GPU-hours in the last 24 hours; the site's "
                 "bound is %.1f (gpu_hours_per_%s_day)",
                 who, spent->gpu_hours, gpu_hours, kind);
        return 1;
    }
    return 0;
}

static int over_a_day(struct service *service, const json_t *lineage, char *reason, size_t size,
                      struct oom_error *err)
{
    const struct service_limits *limits = service->limits;
    const char *account = json_get_string(lineage, "account", "");
    int64_t uid = json_get_int(lineage, "uid", -1);
    struct spent user = {0}, all = {0};
    char who[160];

    if (spent_by(service, "SELECT " SPENT "AND l.uid = ?2 AND ?3 IS NOT NULL", uid, account, &user,
                 err) < 0)
        return -1;
    if (over("user", "user", &user, limits->attempts_per_user_day, limits->gpu_hours_per_user_day,
             reason, size))
        return 1;
    if (!*account)
        return 0;
    if (spent_by(service, "SELECT " SPENT "AND l.account = ?3 AND ?2 IS NOT NULL", uid, account,
                 &all, err) < 0)
        return -1;
    snprintf(who, sizeof(who), "account (%.100s)", account);
    return over(who, "account", &all, limits->attempts_per_account_day,
                limits->gpu_hours_per_account_day, reason, size);
}

/* All that this lineage's failed attempts took, by the clock. */
static int over_its_time(struct service *service, const json_t *lineage, char *reason, size_t size,
                         struct oom_error *err)
{
    double bound = service->limits->max_lineage_hours;
    int64_t ms = 0;

    if (bound <= 0)
        return 0;
    if (db_get_int(service->db, err, 0, &ms,
                   "SELECT sum(ended_ms - started_ms) FROM attempt WHERE lineage = ?1 "
                   "AND outcome = 'oom'",
                   "i", json_get_int(lineage, "id", 0)) < 0)
        return -1;
    if ((double)ms < bound * 3600000.0)
        return 0;
    snprintf(reason, size,
             "the failed attempts of this job took %.1f hours; the site's bound is %g "
             "(max_lineage_hours)",
             (double)ms / 3600000.0, bound);
    return 1;
}

/* The newest lineages that this version of the policy was used for, all of them used up without
 * help and all within the time: it does not help at present, whatever the reason. Those of one
 * user make only his own wait: nobody can hold up the others. */
#define ALIKE                                                                                      \
    "SELECT CASE WHEN count(*) = ?1 AND min(updated_ms) >= ?2 AND sum(stopped_by = 'ladder') = "   \
    "?1 "                                                                                          \
    "THEN count(DISTINCT uid) ELSE 0 END FROM (SELECT uid, state, stopped_by, updated_ms "         \
    "FROM lineage WHERE framework = ?3 AND json_extract(policies, '$.' || json_quote(?3)) = ?4 "   \
    "AND (state = 'completed' OR stopped_by = 'ladder') "

static int cooling_down(struct service *service, const json_t *lineage, bool *yes,
                        struct oom_error *err)
{
    const struct service_limits *limits = service->limits;
    const char *framework = json_get_string(lineage, "framework", "");
    int64_t version = json_get_int(json_object_get(lineage, "policies"), framework, 0);
    int64_t since = db_now_ms() - (int64_t)limits->cooldown_s * 1000, users = 0;

    *yes = false;
    if (limits->cooldown_failures <= 0 || !*framework)
        return 0;
    if (db_get_int(service->db, err, 0, &users, ALIKE "ORDER BY updated_ms DESC LIMIT ?1)", "iisi",
                   (int64_t)limits->cooldown_failures, since, framework, version) < 0)
        return -1;
    *yes = users > 1;
    if (*yes)
        return 0;
    if (db_get_int(service->db, err, 0, &users,
                   ALIKE "AND uid = ?5 ORDER BY updated_ms DESC LIMIT ?1)", "iisii",
                   (int64_t)limits->cooldown_failures, since, framework, version,
                   json_get_int(lineage, "uid", -1)) < 0)
        return -1;
    *yes = users > 0;
    return 0;
}

int budget_refuses(struct service *service, const json_t *lineage, char *reason, size_t size,
                   struct oom_error *err)
{
    const struct service_limits *limits = service->limits;
    bool cooling = false;
    int rc = over_a_day(service, lineage, reason, size, err);

    if (rc == 0)
        rc = over_its_time(service, lineage, reason, size, err);
    if (rc == 0)
        rc = cooling_down(service, lineage, &cooling, err);
    if (rc != 0 || !cooling)
        return rc;
    snprintf(reason, size,
             "the last %d lineages of %s could not be helped by this version of its policy, so "
             "there is a pause of %d minutes (cooldown_failures)",
             limits->cooldown_failures, json_get_string(lineage, "framework", ""),
             limits->cooldown_s / 60);
    return 1;
}

static json_t *limits_json(const struct service_limits *limits)
{
    return json_pack(
        "{s:i, s:i, s:i, s:f, s:i, s:f, s:i, s:i, s:I, s:f}", "max_retries", limits->max_retries,
        "default_retries", limits->default_retries, "attempts_per_user_day",
        limits->attempts_per_user_day, "gpu_hours_per_user_day", limits->gpu_hours_per_user_day,
        "attempts_per_account_day", limits->attempts_per_account_day, "gpu_hours_per_account_day",
        limits->gpu_hours_per_account_day, "cooldown_failures", limits->cooldown_failures,
        "cooldown_s", limits->cooldown_s, "max_mem_mib", (json_int_t)limits->max_mem_mib,
        "max_lineage_hours", limits->max_lineage_hours);
}

/* GET /v1/budget: bounds, and what has been used of them: by the caller and the accounts that he
 * uses; for administrators by everybody. */
int budget_show(struct service *service, const struct service_request *request,
                const char *const *args, json_t **reply, struct oom_error *err)
{
    int64_t since = db_now_ms() - DAY_MS, uid = (int64_t)request->uid;
    struct spent own = {0};

    (void)args;
    if (spent_by(service, "SELECT " SPENT "AND l.uid = ?2 AND ?3 IS NOT NULL", uid, "", &own, err) <
        0)
        return -1;
    json_t *users =
        db_rows(service->db,
                db_query(service->db, err,
                         "SELECT l.user, " SPENT "AND (?2 OR l.uid = ?3) GROUP BY l.uid, l.user "
                         "ORDER BY gpu_hours DESC, retries DESC, l.user LIMIT 1000",
                         "iii", since, (int64_t)request->admin, uid),
                err);
    json_t *accounts = db_rows(
        service->db,
        db_query(service->db, err,
                 "SELECT l.account, " SPENT "AND l.account <> '' AND (?2 OR l.account IN "
                 "(SELECT account FROM lineage WHERE uid = ?3 AND updated_ms >= ?1)) "
                 "GROUP BY l.account ORDER BY gpu_hours DESC, retries DESC, l.account LIMIT 1000",
                 "iii", since, (int64_t)request->admin, uid),
        err);
    if (!users || !accounts) {
        json_decref(users);
        json_decref(accounts);
        return -1;
    }
    *reply = json_pack("{s:I, s:f, s:o, s:o, s:o}", "retries_24h", (json_int_t)own.retries,
                       "gpu_hours_24h", own.gpu_hours, "users", users, "accounts", accounts,
                       "limits", limits_json(service->limits));
    return 200;
}
