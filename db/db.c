/* SPDX-License-Identifier: Apache-2.0 */
#include "db/db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "db/migrations.h"

enum { BUSY_TIMEOUT_MS = 5000, JOURNAL_NAP_MS = 5 };

int64_t db_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int sql_error(struct db *db, struct oom_error *err, const char *what)
{
    return oom_errorf(err, "database: %s: %s", what, sqlite3_errmsg(db->sql));
}

static int exec(struct db *db, const char *sql, struct oom_error *err)
{
    if (sqlite3_exec(db->sql, sql, NULL, NULL, NULL) != SQLITE_OK)
        return sql_error(db, err, "cannot execute a statement");
    return 0;
}

/* A change of the journal's mode wants the file for itself, and does not wait for it as other
 * statements do: of many that open a new file at once, most would be refused. */
static int set_journal(struct db *db, bool shared_memory, struct oom_error *err)
{
    const char *sql = shared_memory ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE";
    struct timespec nap = {0, JOURNAL_NAP_MS * 1000 * 1000};

    for (int left_ms = BUSY_TIMEOUT_MS; left_ms > 0; left_ms -= JOURNAL_NAP_MS) {
        int rc = sqlite3_exec(db->sql, sql, NULL, NULL, NULL);
        if (rc == SQLITE_OK)
            return 0;
        if (rc != SQLITE_BUSY)
            break;
        nanosleep(&nap, NULL);
    }
    return sql_error(db, err, "cannot set up the journal");
}

static int migrate(struct db *db, struct oom_error *err)
{
    int64_t version = 0;
    char pragma[64];

    if (db_get_int(db, err, 0, &version, "PRAGMA user_version", "") < 0)
        return -1;
    if (version == db_migration_count)
        return 0;
    /* IMMEDIATE: of two programs that open a new file at once, one migrates. */
    if (exec(db, "BEGIN IMMEDIATE", err) < 0)
        return -1;
    if (db_get_int(db, err, 0, &version, "PRAGMA user_version", "") < 0)
        goto fail;
    if (version > db_migration_count) {
        oom_errorf(err,
                   "the database is of version %lld, this program knows up to %d: "
                   "install the newer oomretry that wrote it",
                   (long long)version, db_migration_count);
        goto fail;
    }
    for (; version < db_migration_count; version++)
        if (exec(db, db_migrations[version], err) < 0)
            goto fail;
    snprintf(pragma, sizeof(pragma), "PRAGMA user_version = %d", db_migration_count);
    if (exec(db, pragma, err) < 0 || exec(db, "COMMIT", err) < 0)
        goto fail;
    return 0;
fail:
    sqlite3_exec(db->sql, "ROLLBACK", NULL, NULL, NULL);
    return -1;
}

/* A write-ahead log is memory shared by all who have the database open: they must be on one
 * machine. A home directory may be on many, so other file systems than these get a journal instead.
 */
static bool is_on_this_machine(const char *path)
{
    static const unsigned long local[] = {
        0xef53,     /* ext2 to ext4 */
        0x58465342, /* XFS */
        0x9123683e, /* btrfs */
        0x2fc12fc1, /* ZFS */
        0xf2f52010, /* F2FS */
        0x794c7630, /* overlay */
        0x01021994, /* tmpfs */
    };
    struct statfs fs;

    if (statfs(path, &fs) < 0)
        return false;
    for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
        if ((unsigned long)fs.f_type == local[i])
            return true;
    return false;
}

struct db *db_open(const char *path, struct oom_error *err)
{
    struct db *db = calloc(1, sizeof(*db));

    if (!db) {
        oom_errorf(err, "out of memory");
        return NULL;
    }
    if (strcmp(path, ":memory:") != 0) {
        /* SQLite would take the umask; the file holds parts of users' logs. */
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0) {
            oom_errorf(err, "cannot open the database %s: %s", path, strerror(errno));
            goto fail;
        }
        close(fd);
    }
    if (sqlite3_open_v2(path, &db->sql, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX, NULL) !=
        SQLITE_OK) {
        oom_errorf(err, "cannot open the database %s: %s", path,
                   db->sql ? sqlite3_errmsg(db->sql) : "out of memory");
        goto fail;
    }
    sqlite3_busy_timeout(db->sql, BUSY_TIMEOUT_MS);
    if (set_journal(db, is_on_this_machine(path), err) == 0 &&
        exec(db, "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON", err) == 0 &&
        migrate(db, err) == 0)
        return db;
    oom_error_prefix(err, "%s", path);
fail:
    db_close(db);
    return NULL;
}

void db_close(struct db *db)
{
    if (!db)
        return;
    sqlite3_close_v2(db->sql);
    free(db);
}

int db_begin(struct db *db, struct oom_error *err)
{
    if (db->depth == 0 && exec(db, "BEGIN IMMEDIATE", err) < 0)
        return -1;
    db->depth++;
    return 0;
}

int db_end(struct db *db, bool commit, struct oom_error *err)
{
    db->doomed = db->doomed || !commit;
    if (--db->depth > 0)
        return 0;
    bool doomed = db->doomed;
    db->doomed = false;
    if (!doomed && exec(db, "COMMIT", err) == 0)
        return 0;
    if (doomed && commit)
        oom_errorf(err, "database: a part of the transaction was rolled back");
    sqlite3_exec(db->sql, "ROLLBACK", NULL, NULL, NULL);
    return commit ? -1 : 0;
}

static int bind_json(sqlite3_stmt *stmt, int index, const json_t *json)
{
    if (!json)
        return sqlite3_bind_null(stmt, index);
    char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
    return text ? sqlite3_bind_text(stmt, index, text, -1, free) : SQLITE_NOMEM;
}

static sqlite3_stmt *query_va(struct db *db, struct oom_error *err, const char *sql,
                              const char *types, va_list ap)
{
    sqlite3_stmt *stmt = NULL;

    if (sqlite3_prepare_v2(db->sql, sql, -1, &stmt, NULL) != SQLITE_OK) {
        sql_error(db, err, "cannot prepare a statement");
        return NULL;
    }
    for (int i = 1; types[i - 1]; i++) {
        int rc = SQLITE_MISUSE;
        switch (types[i - 1]) {
        case 'i':
            rc = sqlite3_bind_int64(stmt, i, va_arg(ap, int64_t));
            break;
        case 'f':
            rc = sqlite3_bind_double(stmt, i, va_arg(ap, double));
            break;
        case 's': {
            const char *text = va_arg(ap, const char *);
            rc = sqlite3_bind_text(stmt, i, text, -1, SQLITE_TRANSIENT);
            break;
        }
        case 'j':
            rc = bind_json(stmt, i, va_arg(ap, const json_t *));
            break;
        default:
            break;
        }
        if (rc != SQLITE_OK) {
            sql_error(db, err, "cannot bind a parameter");
            sqlite3_finalize(stmt);
            return NULL;
        }
    }
    return stmt;
}

sqlite3_stmt *db_query(struct db *db, struct oom_error *err, const char *sql, const char *types,
                       ...)
{
    va_list ap;

    va_start(ap, types);
    sqlite3_stmt *stmt = query_va(db, err, sql, types, ap);
    va_end(ap);
    return stmt;
}

int db_step(struct db *db, sqlite3_stmt *stmt, struct oom_error *err)
{
    int rc = sqlite3_step(stmt);

    if (rc == SQLITE_ROW)
        return 1;
    if (rc == SQLITE_DONE)
        return 0;
    return sql_error(db, err, "cannot execute a statement");
}

int db_run(struct db *db, struct oom_error *err, const char *sql, const char *types, ...)
{
    va_list ap;

    va_start(ap, types);
    sqlite3_stmt *stmt = query_va(db, err, sql, types, ap);
    va_end(ap);
    if (!stmt)
        return -1;
    int rc = db_step(db, stmt, err);
    sqlite3_finalize(stmt);
    return rc < 0 ? -1 : 0;
}

int db_get_int(struct db *db, struct oom_error *err, int64_t absent, int64_t *out, const char *sql,
               const char *types, ...)
{
    va_list ap;

    va_start(ap, types);
    sqlite3_stmt *stmt = query_va(db, err, sql, types, ap);
    va_end(ap);
    if (!stmt)
        return -1;
    int rc = db_step(db, stmt, err);
    bool present = rc == 1 && sqlite3_column_type(stmt, 0) != SQLITE_NULL;
    *out = present ? sqlite3_column_int64(stmt, 0) : absent;
    sqlite3_finalize(stmt);
    return rc < 0 ? -1 : 0;
}

const char *db_text(sqlite3_stmt *stmt, int column)
{
    const char *text = (const char *)sqlite3_column_text(stmt, column);

    return text ? text : "";
}

json_t *db_json(sqlite3_stmt *stmt, int column)
{
    const char *text = (const char *)sqlite3_column_text(stmt, column);

    return text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
}

static json_t *row_of(sqlite3_stmt *stmt)
{
    json_t *row = json_object();

    for (int i = 0; i < sqlite3_column_count(stmt); i++) {
        const char *name = sqlite3_column_name(stmt, i);
        json_t *value = NULL;

        if (strncmp(name, "j_", 2) == 0) {
            name += 2;
            value = db_json(stmt, i);
        } else if (sqlite3_column_type(stmt, i) == SQLITE_INTEGER) {
            value = json_integer(sqlite3_column_int64(stmt, i));
        } else if (sqlite3_column_type(stmt, i) == SQLITE_FLOAT) {
            value = json_real(sqlite3_column_double(stmt, i));
        } else if (sqlite3_column_type(stmt, i) == SQLITE_TEXT) {
            value = json_string(db_text(stmt, i));
        }
        json_object_set_new(row, name, value ? value : json_null());
    }
    return row;
}

json_t *db_rows(struct db *db, sqlite3_stmt *stmt, struct oom_error *err)
{
    json_t *rows = json_array();
    int rc = -1;

    while (stmt && (rc = db_step(db, stmt, err)) == 1)
        json_array_append_new(rows, row_of(stmt));
    sqlite3_finalize(stmt);
    if (rc == 0)
        return rows;
    json_decref(rows);
    return NULL;
}
