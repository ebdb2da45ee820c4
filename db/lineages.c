/* SPDX-License-Identifier: Apache-2.0 */
#include "db/lineages.h"

#include "agent/lib/jsonget.h"

enum { MAX_GPUS = 100000 };

int lineage_find(struct db *db, const char *scheduler, const char *cluster, const char *job,
                 int64_t uid, int64_t *out, struct oom_error *err)
{
    return db_get_int(db, err, 0, out,
                      "SELECT j.lineage FROM job j JOIN lineage l ON l.id = j.lineage "
                      "WHERE j.scheduler = ?1 AND j.cluster = ?2 AND j.job = ?3 "
                      "AND (?4 = -1 OR l.uid = ?4) ORDER BY j.first_ms DESC, j.rowid DESC LIMIT 1",
                      "sssi", scheduler, cluster, job, uid);
}

int64_t lineage_create(struct db *db, const json_t *fields, struct oom_error *err)
{
    int64_t now = db_now_ms();

    if (db_run(
            db, err,
            "INSERT INTO lineage (scheduler, cluster, uid, user, name, state, policies, options, "
            "shape, partition, account, created_ms, updated_ms) "
            "VALUES (?, ?, ?, ?, ?, 'running', ?, ?, ?, ?, ?, ?, ?)",
            "ssissjjsssii", json_get_string(fields, "scheduler", "none"),
            json_get_string(fields, "cluster", ""), json_get_int(fields, "uid", -1),
            json_get_string(fields, "user", ""), json_get_string(fields, "name", ""),
            json_object_get(fields, "policies"), json_object_get(fields, "options"),
            json_get_string(fields, "shape", ""), json_get_string(fields, "partition", ""),
            json_get_string(fields, "account", ""), now, now) < 0)
        return -1;
    return sqlite3_last_insert_rowid(db->sql);
}

int lineage_add_job(struct db *db, int64_t lineage, const char *scheduler, const char *cluster,
                    const char *job, struct oom_error *err)
{
    return db_run(db, err,
                  "INSERT INTO job (lineage, scheduler, cluster, job, first_ms) "
                  "VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                  "isssi", lineage, scheduler, cluster, job, db_now_ms());
}

json_t *lineage_get(struct db *db, int64_t lineage, struct oom_error *err)
{
    json_t *rows =
        db_rows(db,
                db_query(db, err,
                         "SELECT id, scheduler, cluster, uid, user, name, state, reason, advice, "
                         "framework, policies AS j_policies, options AS j_options, shape, "
                         "partition, account, wish, "
                         "created_ms, updated_ms, "
                         "(SELECT json_group_array(job) FROM (SELECT job FROM job "
                         "WHERE lineage = l.id ORDER BY first_ms, job)) AS j_jobs "
                         "FROM lineage l WHERE id = ?",
                         "i", lineage),
                err);
    json_t *row = json_incref(json_array_get(rows, 0));

    if (rows && !row)
        oom_errorf(err, "there is no lineage %lld", (long long)lineage);
    json_decref(rows);
    return row;
}

int lineage_set_state(struct db *db, int64_t lineage, const char *state, const char *reason,
                      const char *advice, struct oom_error *err)
{
    return db_run(db, err,
                  "UPDATE lineage SET state = ?, reason = ?, advice = ?, updated_ms = ? "
                  "WHERE id = ?",
                  "sssii", state, reason, advice, db_now_ms(), lineage);
}

json_t *lineage_attempts(struct db *db, int64_t lineage, struct oom_error *err)
{
    return db_rows(
        db,
        db_query(db, err,
                 "SELECT id, lineage, number, state, job, restart, token, node, mode, "
                 "decision AS j_decision, edits AS j_edits, total_edits AS j_total_edits, diff, "
                 "applied, proof, acted, started_ms, ended_ms, exit_code, signal, sched_state, "
                 "outcome, incident AS j_incident, values_json AS j_values, gpus "
                 "FROM attempt WHERE lineage = ? ORDER BY number",
                 "i", lineage),
        err);
}

int attempt_insert(struct db *db, int64_t lineage, int64_t number, const char *mode,
                   const json_t *decision, const json_t *edits, const json_t *total_edits,
                   struct oom_error *err)
{
    json_t *none = json_array();
    /* A decision that is taken again (a rung could not be written into the script) replaces the
     * intention, never a running attempt. */
    int rc = db_run(db, err,
                    "INSERT INTO attempt (lineage, number, state, mode, decision, edits, "
                    "total_edits) VALUES (?, ?, 'intended', ?, ?, ?, ?) "
                    "ON CONFLICT (lineage, number) DO UPDATE SET mode = excluded.mode, "
                    "decision = excluded.decision, edits = excluded.edits, "
                    "total_edits = excluded.total_edits WHERE state = 'intended'",
                    "iisjjj", lineage, number, mode, decision, edits ? edits : none,
                    total_edits ? total_edits : none);

    json_decref(none);
    return rc;
}

/* Said by its owner: no more than any machine has. */
static int64_t bounded_gpus(int64_t gpus)
{
    return gpus < 0 ? 0 : gpus > MAX_GPUS ? MAX_GPUS : gpus;
}

int attempt_set_gpus(struct db *db, int64_t lineage, int64_t number, int64_t gpus,
                     struct oom_error *err)
{
    return db_run(db, err, "UPDATE attempt SET gpus = ? WHERE lineage = ? AND number = ?", "iii",
                  bounded_gpus(gpus), lineage, number);
}

int attempt_start(struct db *db, int64_t lineage, int64_t number, const json_t *begin,
                  struct oom_error *err)
{
    int64_t now = db_now_ms(), started = json_get_int(begin, "started_ms", now);

    /* Who tells it late says when it was. */
    if (started <= 0 || started > now)
        started = now;
    if (db_run(db, err,
               "UPDATE attempt SET state = 'running', job = ?, restart = ?, token = ?, node = ?, "
               "gpus = ?, started_ms = ? WHERE lineage = ? AND number = ?",
               "sissiiii", json_get_string(begin, "job", ""), json_get_int(begin, "restart", 0),
               json_get_string(begin, "token", ""), json_get_string(begin, "node", ""),
               bounded_gpus(json_get_int(begin, "gpus", 0)), started, lineage, number) < 0)
        return -1;
    return db_run(
        db, err,
        "UPDATE lineage SET state = 'running', stopped_by = '', updated_ms = ? WHERE id = ?", "ii",
        now, lineage);
}

int evidence_put(struct db *db, int64_t lineage, int64_t number, const char *kind,
                 const json_t *body, struct oom_error *err)
{
    if (!body || json_is_null(body))
        return 0;
    return db_run(db, err,
                  "INSERT INTO evidence (attempt, kind, body) "
                  "SELECT id, ?3, ?4 FROM attempt WHERE lineage = ?1 AND number = ?2 "
                  "ON CONFLICT (attempt, kind) DO UPDATE SET body = excluded.body",
                  "iisj", lineage, number, kind, body);
}

int evidence_forget(struct db *db, int64_t before_ms, struct oom_error *err)
{
    return db_run(db, err,
                  "DELETE FROM evidence WHERE rowid IN (SELECT e.id FROM (SELECT rowid AS id, "
                  "attempt FROM evidence ORDER BY rowid LIMIT 200) e "
                  "JOIN attempt a ON a.id = e.attempt "
                  "WHERE coalesce(a.ended_ms, a.started_ms) < ?)",
                  "i", before_ms);
}

int audit_add(struct db *db, const char *who, const char *verb, const char *object,
              const char *detail, struct oom_error *err)
{
    return db_run(db, err,
                  "INSERT INTO audit (at_ms, who, verb, object, detail) VALUES (?, ?, ?, ?, ?)",
                  "issss", db_now_ms(), who, verb, object, detail);
}
