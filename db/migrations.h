/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DB_MIGRATIONS_H
#define DB_MIGRATIONS_H

/* db_migrations[i] takes a database from user_version i to i + 1. */
extern const char *const db_migrations[];
extern const int db_migration_count;

#endif
