/* SPDX-License-Identifier: Apache-2.0
 *
 * What nodes report about ended tasks: evidence that a supervisor on another node cannot see. */
#include <stdlib.h>
#include <string.h>

#include "agent/head/service.h"
#include "agent/lib/jsonget.h"

/* Values come as text from the plugin; an absent one is -1. */
static int64_t number(const json_t *body, const char *key)
{
    const char *text = json_get_string(body, key, NULL);

    return text && *text ? strtoll(text, NULL, 10) : -1;
}

/* Most jobs of a cluster are not ours. A step that was given another environment (srun
 * --export=NONE) does not know that its job is. */
static bool is_ours(struct service *service, const json_t *body)
{
    int64_t known = 0;

    return strcmp(json_get_string(body, "opted", ""), "1") == 0 ||
           (db_get_int(service->db, NULL, 0, &known, "SELECT 1 FROM job WHERE job = ? LIMIT 1", "s",
                       json_get_string(body, "job", "")) == 0 &&
            known);
}

int reports_add(struct service *service, const struct service_request *request,
                const char *const *args, json_t **reply, struct oom_error *err)
{
    const json_t *body = request->body;

    (void)args;
    if (!request->admin)
        return service_refuse(403, err, "only a node's agent reports ended tasks");
    *reply = json_object();
    if (strcmp(json_get_string(body, "event", ""), "task_exit") != 0 || !is_ours(service, body))
        return 200;
    /* Each is sent once: what has the same names is of another job, whose id came back. */
    if (db_run(service->db, err,
               "INSERT INTO task_exit (cluster, job, restart, step, node, task, uid, status, "
               "oom_kills, peak_bytes, limit_bytes, at_ms) "
               "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
               "uid = excluded.uid, status = excluded.status, oom_kills = excluded.oom_kills, "
               "peak_bytes = excluded.peak_bytes, limit_bytes = excluded.limit_bytes, "
               "at_ms = excluded.at_ms",
               "ssissiiiiiii", json_get_string(body, "cluster", ""),
               json_get_string(body, "job", ""), number(body, "restart"),
               json_get_string(body, "step", ""), json_get_string(body, "node", ""),
               number(body, "task"), number(body, "uid"), number(body, "status"),
               number(body, "oom_kill"), number(body, "peak_bytes"), number(body, "limit_bytes"),
               db_now_ms()) < 0)
        return -1;
    /* Evidence of jobs that nobody asks about any more. */
    return db_run(service->db, err, "DELETE FROM task_exit WHERE at_ms < ?", "i",
                  db_now_ms() - INT64_C(7) * 24 * 3600 * 1000) < 0
               ? -1
               : 200;
}

/* args[0]: the job; query lineage, attempt: only tasks that ended since that attempt began, both by
 * this machine's clock; cluster: only there. */
int reports_of_job(struct service *service, const struct service_request *request,
                   const char *const *args, json_t **reply, struct oom_error *err)
{
    json_t *rows = db_rows(
        service->db,
        db_query(service->db, err,
                 "SELECT step, node, task, restart, status, oom_kills, peak_bytes, limit_bytes, "
                 "at_ms FROM task_exit WHERE job = ?1 AND (?2 OR uid = ?3) AND at_ms >= "
                 "coalesce((SELECT started_ms FROM attempt WHERE lineage = ?4 AND number = ?5), 0) "
                 "AND (?6 = '' OR cluster = '' OR cluster = ?6 COLLATE NOCASE) "
                 "ORDER BY at_ms LIMIT 10000",
                 "siiiis", args[0], (int64_t)request->admin, (int64_t)request->uid,
                 (int64_t)atoll(json_get_string(request->query, "lineage", "0")),
                 (int64_t)atoll(json_get_string(request->query, "attempt", "0")),
                 json_get_string(request->query, "cluster", "")),
        err);

    if (!rows)
        return -1;
    *reply = json_pack("{s:o}", "tasks", rows);
    return 200;
}
