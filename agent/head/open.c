/* SPDX-License-Identifier: Apache-2.0
 *
 * Attempts that somebody has to look after: their supervisor has not reported an end, or has not
 * started what was decided. Several may notice (the node's agent, the epilog hook, the reconciler);
 * whoever claims one acts, for a bounded time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/head/service.h"
#include "agent/lib/acted.h"
#include "agent/lib/elapsed.h"
#include "agent/lib/jsonget.h"

enum { CLAIM_MS = 60000, TURN_MS = 15000 };

/* One agent of a cluster looks after everything, so that hundreds do not all ask the controller for
 * its whole queue: the first to ask, for as long as it goes on asking. A `blind` one, which could
 * not compare lately, leaves that to another if there is one. */
static bool take_turn(struct service *service, const char *cluster, const char *by, bool blind)
{
    struct service_turn *turn = &service->turns[0];
    int64_t now_ms = elapsed_ms(); /* a clock that is set back must not make a turn last */

    for (size_t i = 0; i < sizeof(service->turns) / sizeof(service->turns[0]); i++) {
        struct service_turn *at = &service->turns[i];
        bool same = at->by[0] && strcasecmp(at->cluster, cluster) == 0;
        if (same || at->until_ms < turn->until_ms)
            turn = at;
        if (same)
            break;
    }
    bool ours = strcmp(turn->by, by) == 0;
    if (!ours && turn->until_ms > now_ms) {
        turn->wanted_ms = now_ms;
        return false;
    }
    if (blind && turn->wanted_ms && now_ms - turn->wanted_ms < TURN_MS) {
        turn->until_ms = ours ? 0 : turn->until_ms;
        return false;
    }
    snprintf(turn->cluster, sizeof(turn->cluster), "%s", cluster);
    snprintf(turn->by, sizeof(turn->by), "%s", by);
    turn->until_ms = now_ms + TURN_MS;
    return true;
}

/* query job: only of this job; scheduler, cluster: only of this one; turn: who asks, and is given
 * all of them when it is his turn to look after them, else those of `nodes` (joined by ','). */
int attempts_open(struct service *service, const struct service_request *request,
                  const char *const *args, json_t **reply, struct oom_error *err)
{
    const char *job = json_get_string(request->query, "job", "");
    const char *scheduler = json_get_string(request->query, "scheduler", "");
    const char *cluster = json_get_string(request->query, "cluster", "");
    const char *nodes = json_get_string(request->query, "nodes", NULL);
    const char *by = json_get_string(request->query, "turn", "");
    bool blind = *json_get_string(request->query, "blind", "");
    bool all = !nodes || (request->admin && *by && take_turn(service, cluster, by, blind));

    (void)args;
    json_t *rows = db_rows(
        service->db,
        db_query(service->db, err,
                 "SELECT * FROM (SELECT a.lineage, a.number, a.state, a.restart, a.mode, a.acted, "
                 "coalesce(a.node, (SELECT node FROM attempt WHERE lineage = a.lineage "
                 "AND number = a.number - 1)) AS node, "
                 "a.started_ms, l.updated_ms, l.uid, l.scheduler, l.cluster, "
                 "json_extract(l.options, '$.dashboard') AS dashboard, "
                 "coalesce(a.job, (SELECT job FROM job WHERE lineage = l.id "
                 "ORDER BY first_ms DESC LIMIT 1)) AS job "
                 "FROM attempt a JOIN lineage l ON l.id = a.lineage "
                 "WHERE a.state IN ('running', 'intended') AND l.state IN ('running', 'waiting') "
                 "AND (?1 OR l.uid = ?2) AND (?3 = '' OR l.scheduler = ?3) "
                 "AND (?4 = '' OR EXISTS (SELECT 1 FROM job WHERE lineage = l.id AND job = ?4)) "
                 "AND (?5 = '' OR l.cluster = '' OR l.cluster = ?5 COLLATE NOCASE) "
                 "ORDER BY a.id) WHERE ?6 OR instr(',' || ?7 || ',', ',' || node || ',') "
                 "LIMIT 10000",
                 "iisssis", (int64_t)request->admin, (int64_t)request->uid, scheduler, job, cluster,
                 (int64_t)all, nodes ? nodes : ""),
        err);
    if (!rows)
        return -1;
    json_t *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        /* The deed is done; it remains to be seen that the attempt begins. */
        bool done = acted_is_done(json_get_string(row, "acted", ""));
        json_object_set_new(row, "done", json_boolean(done));
    }
    *reply = json_pack("{s:o, s:b, s:I}", "attempts", rows, "all", all, "now_ms",
                       (json_int_t)db_now_ms());
    return 200;
}

/* body: lineage, attempt, by. Reply {"granted": true|false}. It holds for the lineage: who finishes
 * an attempt also starts the next one. Who has it may claim it again, and so keeps it; "release":
 * true gives it back, and who had it stays on record. */
int attempts_claim(struct service *service, const struct service_request *request,
                   const char *const *args, json_t **reply, struct oom_error *err)
{
    const char *by = json_get_string(request->body, "by", "");
    bool release = json_get_bool(request->body, "release", false);
    int64_t now = db_now_ms();

    (void)args;
    if (!*by)
        return service_refuse(400, err, "member \"by\" is missing");
    /* A clock that was set back must not make a claim last. */
    if (db_run(service->db, err,
               "UPDATE attempt SET claimed_by = ?1, claimed_ms = iif(?8, 0, ?2) "
               "WHERE lineage = ?3 AND number = ?4 AND (claimed_by = ?1 OR (NOT ?8 "
               "AND state IN ('running', 'intended') AND NOT EXISTS (SELECT 1 FROM attempt o "
               "WHERE o.lineage = ?3 AND o.claimed_by <> ?1 "
               "AND o.claimed_ms BETWEEN ?2 - ?5 AND ?2 + ?5))) "
               "AND EXISTS (SELECT 1 FROM lineage WHERE id = ?3 AND (?6 OR uid = ?7))",
               "siiiiiii", by, now, json_get_int(request->body, "lineage", 0),
               json_get_int(request->body, "attempt", 0), (int64_t)CLAIM_MS,
               (int64_t)request->admin, (int64_t)request->uid, (int64_t)release) < 0)
        return -1;
    *reply = json_pack("{s:b}", "granted", sqlite3_changes(service->db->sql) > 0);
    return 200;
}
