/* SPDX-License-Identifier: Apache-2.0
 *
 * Policies in SQLite: immutable versions, and which of them is active. */
#ifndef DB_POLICIES_H
#define DB_POLICIES_H

#include "db/db.h"

#define POLICY_AUTHOR_SHIPPED "oomretry"

/* Stores the shipped documents of a directory (*.json, the name is the file's). A name that is new
 * becomes version 1; a changed file becomes a new version, unless a version that was shipped before
 * is the same. It is made active only where the active version is a shipped one: what an
 * administrator edited stays. A file that does not validate is an error and changes nothing. */
int policies_seed(struct db *db, const char *directory, struct oom_error *err);

/* The body of one version; version 0 is the active one. New reference; NULL and err when there is
 * none. `found_version` may be NULL. */
json_t *policies_load(struct db *db, const char *name, int64_t version, int64_t *found_version,
                      struct oom_error *err);

/* Adds a version and makes it active, unless the active version is no longer `base` (somebody else
 * was quicker): then -1 and err says whose version is active now. base 0: the name is new.
 * The body must have been validated. Returns the new version's number. */
int64_t policies_add(struct db *db, const char *name, int64_t base, const json_t *body,
                     const char *author, const char *message, struct oom_error *err);

#endif
