/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /v1/stats: what fails, and what helps. */
#include "agent/head/period.h"

int stats_show(struct service *service, const struct service_request *request,
               const char *const *args, json_t **reply, struct oom_error *err)
{
    (void)args;
    json_t *lineages = period_rows(service, request, err,
                                   "SELECT framework, state, count(*) AS count FROM lineage "
                                   "WHERE (?1 OR uid = ?2) AND updated_ms >= ?3 "
                                   "GROUP BY framework, state ORDER BY framework, state");
    json_t *incidents =
        period_rows(service, request, err,
                    "SELECT l.framework, json_extract(a.incident, '$.domain') AS domain, "
                    "json_extract(a.incident, '$.phase') AS phase, count(*) AS count "
                    "FROM attempt a JOIN lineage l ON l.id = a.lineage "
                    "WHERE a.outcome = 'oom' AND (?1 OR l.uid = ?2) AND a.ended_ms >= ?3 "
                    "GROUP BY 1, 2, 3 ORDER BY count DESC");
    /* A rung helped when the attempt that it led to did not run out of memory. */
    json_t *rungs = period_rows(service, request, err,
                                "SELECT json_extract(a.decision, '$.policy') AS policy, "
                                "json_extract(a.decision, '$.rung') AS rung, count(*) AS tried, "
                                "sum(a.outcome = 'completed') AS helped, "
                                "sum(a.applied = 'no') AS not_applied "
                                "FROM attempt a JOIN lineage l ON l.id = a.lineage "
                                "WHERE a.decision IS NOT NULL AND a.state = 'ended' "
                                "AND (?1 OR l.uid = ?2) AND a.ended_ms >= ?3 "
                                "GROUP BY 1, 2 ORDER BY tried DESC");
    json_t *cost =
        period_rows(service, request, err,
                    "SELECT count(*) AS failed_attempts, "
                    "coalesce(sum((a.ended_ms - a.started_ms) / 3600000.0 * a.gpus), 0.0) "
                    "AS gpu_hours FROM attempt a JOIN lineage l ON l.id = a.lineage "
                    "WHERE a.outcome = 'oom' AND (?1 OR l.uid = ?2) AND a.ended_ms >= ?3");
    if (!lineages || !incidents || !rungs || !cost) {
        json_decref(lineages);
        json_decref(incidents);
        json_decref(rungs);
        json_decref(cost);
        return -1;
    }
    *reply = json_pack("{s:o, s:o, s:o, s:O}", "lineages", lineages, "incidents", incidents,
                       "rungs", rungs, "cost", json_array_get(cost, 0));
    json_decref(cost);
    return 200;
}
