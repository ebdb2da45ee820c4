/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading verbs: what happened to whose jobs. Everybody sees his own lineages, administrators all.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/head/service.h"
#include "agent/lib/jsonget.h"
#include "db/lineages.h"

static const char *query(const struct service_request *request, const char *key)
{
    return json_get_string(request->query, key, "");
}

/* One object a lineage: its row, the number of its attempts, the newest out-of-memory incident and
 * the edits that the newest attempt ran with. */
int history_list(struct service *service, const struct service_request *request,
                 const char *const *args, json_t **reply, struct oom_error *err)
{
    int64_t limit = *query(request, "limit") ? atoll(query(request, "limit")) : 50;
    bool all = request->admin && strcmp(query(request, "all"), "1") == 0;

    (void)args;
    if (limit < 1 || limit > 10000)
        limit = 10000;
    json_t *rows = db_rows(
        service->db,
        db_query(
            service->db, err,
            "SELECT l.id, l.scheduler, l.cluster, l.user, l.name, l.state, l.reason, l.advice, "
            "l.framework, l.account, l.wish, l.created_ms, l.updated_ms, "
            "(SELECT json_group_array(job) FROM (SELECT job FROM job WHERE lineage = l.id "
            "ORDER BY first_ms, job)) AS j_jobs, "
            "(SELECT count(started_ms) FROM attempt WHERE lineage = l.id) AS attempts, "
            "(SELECT incident FROM attempt WHERE lineage = l.id AND outcome = 'oom' "
            "ORDER BY number DESC LIMIT 1) AS j_incident, "
            "(SELECT total_edits FROM attempt WHERE lineage = l.id ORDER BY number DESC "
            "LIMIT 1) AS j_edits "
            "FROM lineage l WHERE (?1 OR l.uid = ?2) AND (?3 = '' OR l.user = ?3) "
            "AND (?4 = '' OR l.state = ?4) AND l.updated_ms >= ?5 "
            "ORDER BY l.updated_ms DESC, l.id DESC LIMIT ?6",
            "iissii", (int64_t)(all || (request->admin && *query(request, "user"))),
            (int64_t)request->uid, query(request, "user"), query(request, "state"),
            (int64_t)atoll(query(request, "since_ms")), limit),
        err);
    if (!rows)
        return -1;
    *reply = json_pack("{s:o}", "lineages", rows);
    return 200;
}

/* A whole number up to `end`; where it ends, NULL: it is none. */
static const char *whole_number(const char *text, char end, int64_t *out)
{
    char *rest;

    *out = strtoll(text, &rest, 10);
    return *text >= '0' && *text <= '9' && *rest == end ? rest : NULL;
}

/* "L7", a lineage, or "7.2", an attempt. Ray's users give their jobs names that only begin so. */
static bool names_lineage(const char *what, int64_t *id)
{
    int64_t attempt;
    const char *dot = whole_number(what, '.', id);

    if (dot)
        return whole_number(dot + 1, '\0', &attempt) != NULL;
    return what[0] == 'L' && whole_number(what + 1, '\0', id) != NULL;
}

/* args[0]: a job id, a lineage or an attempt. */
static int find(struct service *service, const struct service_request *request, const char *what,
                int64_t *id, struct oom_error *err)
{
    if (names_lineage(what, id))
        return 0;
    /* One's own first: others may have jobs of the same number on other clusters. */
    return db_get_int(
        service->db, err, 0, id,
        "SELECT j.lineage FROM job j JOIN lineage l ON l.id = j.lineage "
        "WHERE j.job = ?1 ORDER BY l.uid = ?2 DESC, j.first_ms DESC, j.rowid DESC LIMIT 1",
        "si", what, (int64_t)request->uid);
}

static int add_evidence(struct service *service, json_t *attempts, struct oom_error *err)
{
    json_t *attempt;
    size_t i;

    json_array_foreach(attempts, i, attempt)
    {
        json_t *rows = db_rows(service->db,
                               db_query(service->db, err,
                                        "SELECT kind, body AS j_body FROM evidence "
                                        "WHERE attempt = ?",
                                        "i", json_get_int(attempt, "id", 0)),
                               err);
        json_t *evidence = json_object(), *row;
        size_t k;

        if (!rows) {
            json_decref(evidence);
            return -1;
        }
        json_array_foreach(rows, k, row) json_object_set(evidence, json_get_string(row, "kind", ""),
                                                         json_object_get(row, "body"));
        json_decref(rows);
        json_object_set_new(attempt, "evidence", evidence);
    }
    return 0;
}

int history_show(struct service *service, const struct service_request *request,
                 const char *const *args, json_t **reply, struct oom_error *err)
{
    int64_t id = 0;

    if (find(service, request, args[0], &id, err) < 0)
        return -1;
    json_t *lineage = id > 0 ? lineage_get(service->db, id, err) : NULL;
    if (!lineage)
        return service_refuse(404, err,
                              "nothing is known of job %s: it did not run under oomretry, or "
                              "another head keeps it",
                              args[0]);
    if (!request->admin && json_get_int(lineage, "uid", -1) != (int64_t)request->uid) {
        json_decref(lineage);
        return service_refuse(403, err, "job %s belongs to somebody else", args[0]);
    }
    json_t *attempts = lineage_attempts(service->db, id, err);
    if (!attempts || add_evidence(service, attempts, err) < 0) {
        json_decref(attempts);
        json_decref(lineage);
        return -1;
    }
    *reply = json_pack("{s:o, s:o}", "lineage", lineage, "attempts", attempts);
    return 200;
}
