/* SPDX-License-Identifier: Apache-2.0
 *
 * Lineages, their jobs and attempts in SQLite. Rows come as JSON objects (db_rows): the same that
 * the service replies with. */
#ifndef DB_LINEAGES_H
#define DB_LINEAGES_H

#include "db/db.h"

/* The lineage of this user (uid -1: of anybody) that got this job last, whichever of them is older:
 * a controller that forgot a job gives its id away again. *out is 0 when there is none. Ids are
 * looked up within a user's own lineages: nobody can take a job id of another. */
int lineage_find(struct db *db, const char *scheduler, const char *cluster, const char *job,
                 int64_t uid, int64_t *out, struct oom_error *err);

/* Inserts; `fields` has scheduler, cluster, uid, user, name, policies, options, shape,
 * partition, account. Returns the id or -1. */
int64_t lineage_create(struct db *db, const json_t *fields, struct oom_error *err);

int lineage_add_job(struct db *db, int64_t lineage, const char *scheduler, const char *cluster,
                    const char *job, struct oom_error *err);

/* One lineage, or NULL and err ("there is no lineage 7"). New reference. */
json_t *lineage_get(struct db *db, int64_t lineage, struct oom_error *err);

int lineage_set_state(struct db *db, int64_t lineage, const char *state, const char *reason,
                      const char *advice, struct oom_error *err);

/* Ordered by number; without the evidence. New reference. */
json_t *lineage_attempts(struct db *db, int64_t lineage, struct oom_error *err);

/* A new attempt. `decision` and `edits` are NULL for the first one. */
int attempt_insert(struct db *db, int64_t lineage, int64_t number, const char *mode,
                   const json_t *decision, const json_t *edits, const json_t *total_edits,
                   struct oom_error *err);

/* How many GPUs it has been given. */
int attempt_set_gpus(struct db *db, int64_t lineage, int64_t number, int64_t gpus,
                     struct oom_error *err);

/* Marks it running. */
int attempt_start(struct db *db, int64_t lineage, int64_t number, const json_t *begin,
                  struct oom_error *err);

int evidence_put(struct db *db, int64_t lineage, int64_t number, const char *kind,
                 const json_t *body, struct oom_error *err);

/* Forgets the oldest evidence (not the history) of attempts that ended before this time, or began
 * before it when nobody has reported their end; a few rows a call, so that nobody waits for it. */
int evidence_forget(struct db *db, int64_t before_ms, struct oom_error *err);

int audit_add(struct db *db, const char *who, const char *verb, const char *object,
              const char *detail, struct oom_error *err);

#endif
