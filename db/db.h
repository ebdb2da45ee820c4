/* SPDX-License-Identifier: Apache-2.0
 *
 * One SQLite file: opening, migrating, and the few helpers that make prepared statements short to
 * write. Everything that knows a table is in the other files of this directory. */
#ifndef DB_DB_H
#define DB_DB_H

#include <jansson.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "oomretry/error.h"

struct db {
    sqlite3 *sql;
    int depth;   /* of nested transactions */
    bool doomed; /* one of them was rolled back, so the whole is */
};

/* Opens (creating with mode 0600 when absent), switches to WAL and migrates. A database of a newer
 * program is refused. ":memory:" works. NULL and err on failure. */
struct db *db_open(const char *path, struct oom_error *err);
void db_close(struct db *db);

/* Transactions. Of nested ones the outermost begins and commits; db_end(db, false) rolls back,
 * within another one by the end of that, which then fails when it would commit. */
int db_begin(struct db *db, struct oom_error *err);
int db_end(struct db *db, bool commit, struct oom_error *err);

/* Prepares and binds. `types` has one letter a parameter: i int64_t, s const char * (NULL is
 * NULL), f double, j const json_t * (stored as compact text). NULL and err on failure. */
sqlite3_stmt *db_query(struct db *db, struct oom_error *err, const char *sql, const char *types,
                       ...);

/* 1: a row, 0: no more rows, -1: err. */
int db_step(struct db *db, sqlite3_stmt *stmt, struct oom_error *err);

/* Runs a statement that returns no rows. */
int db_run(struct db *db, struct oom_error *err, const char *sql, const char *types, ...);

/* The first column of the first row; `absent` when there is no row or it is NULL. -1 on error. */
int db_get_int(struct db *db, struct oom_error *err, int64_t absent, int64_t *out, const char *sql,
               const char *types, ...);

/* Columns of the present row. Text is never NULL (""); JSON is a new reference or NULL. */
const char *db_text(sqlite3_stmt *stmt, int column);
json_t *db_json(sqlite3_stmt *stmt, int column);

/* All rows of the statement, as an array of objects keyed by column name; finalizes it. A column
 * named "j_x" holds JSON text and becomes member "x"; NULL becomes null. NULL and err on failure.
 */
json_t *db_rows(struct db *db, sqlite3_stmt *stmt, struct oom_error *err);

/* Milliseconds since the epoch. */
int64_t db_now_ms(void);

#endif
