/* SPDX-License-Identifier: Apache-2.0 */
#include "db/policy_admin.h"

#include "db/lineages.h"

json_t *policy_admin_list(struct db *db, struct oom_error *err)
{
    return db_rows(
        db,
        db_query(db, err,
                 "SELECT p.name, p.version, p.enabled, p.base, v.author, v.message, "
                 "v.created_ms, (SELECT count(*) FROM policy_version w "
                 "WHERE w.name = p.name) AS versions FROM policy p JOIN policy_version v "
                 "ON v.name = p.name AND v.version = p.version ORDER BY coalesce(p.base, p.name), "
                 "p.name",
                 ""),
        err);
}

json_t *policy_admin_log(struct db *db, const char *name, struct oom_error *err)
{
    return db_rows(db,
                   db_query(db, err,
                            "SELECT v.version, v.author, v.message, v.created_ms, "
                            "v.version = p.version AS active FROM policy_version v JOIN policy p "
                            "ON p.name = v.name WHERE v.name = ? ORDER BY v.version DESC",
                            "s", name),
                   err);
}

json_t *policy_admin_show(struct db *db, const char *name, int64_t version, struct oom_error *err)
{
    json_t *rows =
        db_rows(db,
                db_query(db, err,
                         "SELECT v.name, v.version, v.author, v.message, v.created_ms, p.enabled, "
                         "v.version = p.version AS active, v.body AS j_document "
                         "FROM policy_version v JOIN policy p ON p.name = v.name "
                         "WHERE v.name = ?1 AND v.version = iif(?2 = 0, p.version, ?2)",
                         "si", name, version),
                err);
    json_t *row = rows ? json_incref(json_array_get(rows, 0)) : NULL;

    if (rows && !row) {
        if (version)
            oom_errorf(err, "policy %s has no version %lld", name, (long long)version);
        else
            oom_errorf(err, "there is no policy \"%s\" (oomctl policy list shows them)", name);
    }
    json_decref(rows);
    return row;
}

int policy_admin_enable(struct db *db, const char *name, bool enabled, const char *who,
                        struct oom_error *err)
{
    int64_t there = 0;

    if (db_begin(db, err) < 0)
        return -1;
    bool done =
        db_get_int(db, err, 0, &there, "SELECT count(*) FROM policy WHERE name = ?", "s", name) ==
            0 &&
        (!there || (db_run(db, err, "UPDATE policy SET enabled = ? WHERE name = ?", "is",
                           (int64_t)enabled, name) == 0 &&
                    audit_add(db, who, enabled ? "enable" : "disable", name, "", err) == 0));
    if (db_end(db, done, done ? err : NULL) < 0)
        return -1;
    return done ? there != 0 : -1;
}

json_t *policy_admin_incidents(struct db *db, int64_t uid, int64_t limit, struct oom_error *err)
{
    return db_rows(
        db,
        db_query(db, err,
                 "SELECT a.lineage, a.number, a.incident AS j_incident, a.values_json "
                 "AS j_values, l.framework, l.user, l.partition, l.account, "
                 "l.options AS j_options FROM attempt a JOIN lineage l ON l.id = a.lineage "
                 "WHERE a.outcome = 'oom' AND a.incident IS NOT NULL AND "
                 "a.values_json IS NOT NULL AND (?1 = -1 OR l.uid = ?1) "
                 "ORDER BY a.id DESC LIMIT ?2",
                 "ii", uid, limit),
        err);
}
