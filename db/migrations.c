/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbered .sql files, taken into the program as they are: PRAGMA user_version says how many
 * a database has seen. The Makefile makes this file depend on them. */
#include "db/migrations.h"

#define SQL_FILE(symbol, path)                                                                     \
    __asm__(".pushsection .rodata\n" #symbol ":\n.incbin \"" path "\"\n.byte 0\n.popsection\n");   \
    extern const char symbol[] __attribute__((visibility("hidden")))

SQL_FILE(db_sql_001, "db/migrations/001-initial.sql");
SQL_FILE(db_sql_002, "db/migrations/002-age.sql");
SQL_FILE(db_sql_003, "db/migrations/003-overrides.sql");
SQL_FILE(db_sql_004, "db/migrations/004-bounds.sql");

const char *const db_migrations[] = {db_sql_001, db_sql_002, db_sql_003, db_sql_004};
const int db_migration_count = sizeof(db_migrations) / sizeof(db_migrations[0]);
