/* SPDX-License-Identifier: Apache-2.0
 *
 * What administrators see and switch of the stored policies. */
#ifndef DB_POLICY_ADMIN_H
#define DB_POLICY_ADMIN_H

#include "db/db.h"

/* One row a policy and override: name, version, enabled, base (an override's policy, else null),
 * author, message, created_ms, versions. New reference. */
json_t *policy_admin_list(struct db *db, struct oom_error *err);

/* One row a version, newest first: version, author, message, created_ms, active. New ref. */
json_t *policy_admin_log(struct db *db, const char *name, struct oom_error *err);

/* The row of one version (0: the active one) with its "document"; NULL and err when there is
 * none. New reference. */
json_t *policy_admin_show(struct db *db, const char *name, int64_t version, struct oom_error *err);

/* 1 changed, 0 there is no such policy, -1 err. */
int policy_admin_enable(struct db *db, const char *name, bool enabled, const char *who,
                        struct oom_error *err);

/* Attempts of this user (-1: of anybody) that ran out of memory, newest first, with their lineage:
 * the backtest's material. */
json_t *policy_admin_incidents(struct db *db, int64_t uid, int64_t limit, struct oom_error *err);

#endif
