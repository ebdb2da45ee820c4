/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /v1/report: what a period brought, for people who were not there. Users see their own
 * lineages, administrators all. */
#include "agent/head/period.h"

/* A lineage that ran out of memory in the period, with what became of it. */
#define RAN_OUT                                                                                    \
    "WITH ran_out AS (SELECT l.*, sum(a.outcome = 'oom') AS failures, "                            \
    "sum(CASE WHEN a.outcome = 'oom' THEN (a.ended_ms - a.started_ms) / 3600000.0 * a.gpus END) "  \
    "AS gpu_hours "                                                                                \
    "FROM lineage l JOIN attempt a ON a.lineage = l.id "                                           \
    "WHERE (?1 OR l.uid = ?2) AND l.updated_ms >= ?3 "                                             \
    "GROUP BY l.id HAVING failures > 0) "

int report_show(struct service *service, const struct service_request *request,
                const char *const *args, json_t **reply, struct oom_error *err)
{
    (void)args;
    json_t *totals = period_rows(
        service, request, err,
        RAN_OUT "SELECT (SELECT count(*) FROM lineage WHERE (?1 OR uid = ?2) AND updated_ms >= ?3) "
                "AS lineages, count(*) AS ran_out, "
                "coalesce(sum(state = 'completed'), 0) AS completed, "
                "coalesce(sum(state IN ('running', 'waiting', 'held')), 0) AS under_way, "
                "coalesce(sum(gpu_hours), 0.0) AS gpu_hours, "
                "(SELECT failures FROM ran_out WHERE state = 'completed' ORDER BY failures "
                "LIMIT 1 OFFSET (SELECT count(*) FROM ran_out WHERE state = 'completed') / 2) "
                "AS median_changes FROM ran_out");
    json_t *causes =
        period_rows(service, request, err,
                    "SELECT l.framework, json_extract(a.incident, '$.domain') AS domain, "
                    "json_extract(a.incident, '$.phase') AS phase, count(*) AS failures "
                    "FROM attempt a JOIN lineage l ON l.id = a.lineage "
                    "WHERE a.outcome = 'oom' AND (?1 OR l.uid = ?2) AND l.updated_ms >= ?3 "
                    "GROUP BY 1, 2, 3 ORDER BY failures DESC, 1, 2, 3 LIMIT 20");
    /* Settings that worked belong into the script: every further job would fail once more. */
    json_t *scripts = period_rows(
        service, request, err,
        RAN_OUT "SELECT user, name, lineages, failures, "
                "(SELECT total_edits FROM attempt WHERE lineage = newest "
                "ORDER BY number DESC LIMIT 1) AS j_edits "
                "FROM (SELECT user, name, count(*) AS lineages, sum(failures) AS failures, "
                "max(id) AS newest FROM ran_out WHERE state = 'completed' "
                "GROUP BY uid, name, CASE shape WHEN '' THEN id ELSE shape END) "
                "ORDER BY failures DESC, user, name LIMIT 20");
    json_t *stopped = period_rows(service, request, err,
                                  RAN_OUT "SELECT user, name, reason, advice, id, scheduler, "
                                          "(SELECT json_group_array(job) FROM (SELECT job FROM job "
                                          "WHERE lineage = r.id ORDER BY first_ms, job)) AS j_jobs "
                                          "FROM ran_out r WHERE state NOT IN "
                                          "('completed', 'running', 'waiting', 'held') "
                                          "ORDER BY updated_ms DESC LIMIT 20");

    if (!totals || !causes || !scripts || !stopped) {
        json_decref(totals);
        json_decref(causes);
        json_decref(scripts);
        json_decref(stopped);
        return -1;
    }
    *reply = json_pack("{s:O, s:o, s:o, s:o}", "totals", json_array_get(totals, 0), "causes",
                       causes, "scripts", scripts, "stopped", stopped);
    json_decref(totals);
    return 200;
}
