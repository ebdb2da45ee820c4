/* SPDX-License-Identifier: Apache-2.0 */
#include "db/policies.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "oomretry/policy.h"
#include "policies/policy_override.h"

json_t *policies_load(struct db *db, const char *name, int64_t version, int64_t *found_version,
                      struct oom_error *err)
{
    json_t *body = NULL;
    sqlite3_stmt *stmt =
        db_query(db, err,
                 "SELECT v.version, v.body FROM policy_version v WHERE v.name = ?1 AND v.version = "
                 "CASE ?2 WHEN 0 THEN (SELECT version FROM policy WHERE name = ?1) ELSE ?2 END",
                 "si", name, version);

    if (!stmt)
        return NULL;
    int rc = db_step(db, stmt, err);
    if (rc == 1) {
        if (found_version)
            *found_version = sqlite3_column_int64(stmt, 0);
        body = db_json(stmt, 1);
        if (!body)
            oom_errorf(err, "policy %s: the stored body is damaged", name);
    } else if (rc == 0) {
        if (version)
            oom_errorf(err, "policy %s has no version %lld", name, (long long)version);
        else
            oom_errorf(err, "there is no policy \"%s\" (oomctl policy list shows them)", name);
    }
    sqlite3_finalize(stmt);
    return body;
}

static int refuse_stale(struct db *db, const char *name, int64_t base, int64_t active,
                        struct oom_error *err)
{
    sqlite3_stmt *stmt =
        db_query(db, err, "SELECT author FROM policy_version WHERE name = ? AND version = ?", "si",
                 name, active);

    if (!stmt)
        return -1;
    if (db_step(db, stmt, err) == 1)
        oom_errorf(err,
                   "policy %s: the edit began from version %lld, but version %lld by %s is active "
                   "now; nothing was changed. `oomctl policy diff %s %lld %lld` shows what came in "
                   "between",
                   name, (long long)base, (long long)active, db_text(stmt, 0), name,
                   (long long)base, (long long)active);
    sqlite3_finalize(stmt);
    return -1;
}

int64_t policies_add(struct db *db, const char *name, int64_t base, const json_t *body,
                     const char *author, const char *message, struct oom_error *err)
{
    int64_t active = 0, last = 0;
    struct policy_override_name is = {.scope = NULL};

    if (policy_override_is_name(name) && policy_override_parse(name, &is, err) < 0)
        return -1;
    if (db_begin(db, err) < 0)
        return -1;
    if (db_get_int(db, err, 0, &active, "SELECT version FROM policy WHERE name = ?", "s", name) <
            0 ||
        db_get_int(db, err, 0, &last, "SELECT max(version) FROM policy_version WHERE name = ?", "s",
                   name) < 0)
        goto fail;
    if (active != base) {
        refuse_stale(db, name, base, active, err);
        goto fail;
    }
    if (db_run(db, err,
               "INSERT INTO policy_version (name, version, body, author, message, created_ms) "
               "VALUES (?, ?, ?, ?, ?, ?)",
               "sijssi", name, last + 1, body, author, message, db_now_ms()) < 0 ||
        db_run(db, err,
               "INSERT INTO policy (name, version, base) VALUES (?, ?, ?) "
               "ON CONFLICT (name) DO UPDATE SET version = excluded.version",
               "sis", name, last + 1, is.scope ? is.policy : NULL) < 0 ||
        db_run(db, err,
               "INSERT INTO audit (at_ms, who, verb, object, detail) "
               "VALUES (?, ?, 'policy', ?, ?)",
               "isss", db_now_ms(), author, name, message) < 0)
        goto fail;
    return db_end(db, true, err) < 0 ? -1 : last + 1;
fail:
    db_end(db, false, NULL);
    return -1;
}

/* The shipped version that is this body, newest first; 0: the file says something new. */
static int find_shipped(struct db *db, const char *name, const json_t *body, int64_t *version,
                        struct oom_error *err)
{
    sqlite3_stmt *stmt = db_query(db, err,
                                  "SELECT version, body FROM policy_version WHERE name = ? AND "
                                  "author = ? ORDER BY version DESC",
                                  "ss", name, POLICY_AUTHOR_SHIPPED);
    int rc = stmt ? 1 : -1;

    *version = 0;
    while (rc == 1 && *version == 0 && (rc = db_step(db, stmt, err)) == 1) {
        json_t *stored = db_json(stmt, 1);
        if (json_equal(stored, body))
            *version = sqlite3_column_int64(stmt, 0);
        json_decref(stored);
    }
    sqlite3_finalize(stmt);
    return rc < 0 ? -1 : 0;
}

/* Keeps a changed shipped policy beside the administrator's active version. */
static int add_inactive(struct db *db, const char *name, const json_t *body, struct oom_error *err)
{
    return db_run(db, err,
                  "INSERT INTO policy_version (name, version, body, author, message, created_ms) "
                  "SELECT ?1, max(version) + 1, ?2, ?3, 'shipped with " OOMRETRY_VERSION "', ?4 "
                  "FROM policy_version WHERE name = ?1",
                  "sjsi", name, body, POLICY_AUTHOR_SHIPPED, db_now_ms());
}

/* What a shipped document asks of the store. */
struct seed {
    int64_t active;   /* version; 0: the name is new */
    int64_t shipped;  /* the version that is this document; 0: none */
    bool replaceable; /* the active version is not an administrator's */
};

/* 1: something is to be done, 0: nothing, -1: err. */
static int look(struct db *db, const char *name, const json_t *body, struct seed *seed,
                struct oom_error *err)
{
    int64_t replaceable = 0;

    if (find_shipped(db, name, body, &seed->shipped, err) < 0 ||
        db_get_int(db, err, 0, &seed->active, "SELECT version FROM policy WHERE name = ?", "s",
                   name) < 0 ||
        db_get_int(db, err, seed->active == 0, &replaceable,
                   "SELECT author = ?3 FROM policy_version WHERE name = ?1 AND version = ?2", "sis",
                   name, seed->active, POLICY_AUTHOR_SHIPPED) < 0)
        return -1;
    seed->replaceable = replaceable != 0;
    return !seed->shipped || (seed->shipped != seed->active && seed->replaceable);
}

/* A version that was shipped before becomes active again: installations of two releases may use one
 * database in turn, and must not store a version each time. */
static int store(struct db *db, const char *name, const json_t *body, const struct seed *seed,
                 struct oom_error *err)
{
    struct oom_policy *policy = oom_policy_from_json(body, name, err);

    oom_policy_free(policy);
    if (!policy)
        return -1;
    if (seed->shipped)
        return db_run(db, err, "UPDATE policy SET version = ? WHERE name = ?", "is", seed->shipped,
                      name);
    if (!seed->replaceable)
        return add_inactive(db, name, body, err);
    return policies_add(db, name, seed->active, body, POLICY_AUTHOR_SHIPPED,
                        "shipped with " OOMRETRY_VERSION, err) < 0
               ? -1
               : 0;
}

/* 1: it was not there as it is shipped (and is now, with `storing`), 0: it was, -1: err. */
static int seed_file(struct db *db, const char *directory, const char *file, bool storing,
                     struct oom_error *err)
{
    static const char ending[] = ".json";
    size_t length = strlen(file), tail = sizeof(ending) - 1;
    char path[4096], name[64];
    struct seed seed;
    json_error_t at;

    if (length <= tail || length - tail >= sizeof(name) ||
        strcmp(file + length - tail, ending) != 0)
        return 0;
    snprintf(path, sizeof(path), "%s/%s", directory, file);
    snprintf(name, sizeof(name), "%.*s", (int)(length - tail), file);
    json_t *body = json_load_file(path, JSON_REJECT_DUPLICATES, &at);
    if (!body)
        return oom_errorf(err, "%s:%d: %s", path, at.line, at.text);
    int rc = look(db, name, body, &seed, err);
    if (rc == 1 && storing && store(db, name, body, &seed, err) < 0)
        rc = -1;
    json_decref(body);
    return rc;
}

/* Nearly always everything is there: then no program that only reads waits for one that writes. */
int policies_seed(struct db *db, const char *directory, struct oom_error *err)
{
    struct dirent **entries = NULL;
    int count = scandir(directory, &entries, NULL, alphasort);
    int rc = 0;

    if (count < 0)
        return oom_errorf(err, "cannot read the shipped policies in %s: %s", directory,
                          strerror(errno));
    for (int i = 0; i < count && rc == 0; i++)
        rc = seed_file(db, directory, entries[i]->d_name, false, err);
    if (rc == 1) {
        rc = db_begin(db, err);
        bool begun = rc == 0;
        for (int i = 0; i < count && rc >= 0; i++)
            rc = seed_file(db, directory, entries[i]->d_name, true, err);
        if (begun && db_end(db, rc >= 0, rc >= 0 ? err : NULL) < 0)
            rc = -1;
    }
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return rc < 0 ? -1 : 0;
}
