/* SPDX-License-Identifier: Apache-2.0
 *
 * Which versions a lineage begins with, and what they come to: a policy with the overrides of the
 * lineage's partition, account and user on it, in this order. */
#ifndef DB_OVERRIDES_H
#define DB_OVERRIDES_H

#include "db/db.h"

/* Whose lineage it is; "" or NULL where that is not known. */
struct policy_scope {
    const char *partition, *account, *user;
};

/* A document in place of the stored active version, to try it. */
struct policy_draft {
    const char *name; /* of a policy or an override */
    const json_t *document;
};

/* {"relax":3, "relax:partition=small":2, …}: the active versions of the policies that are used
 * there, and of the overrides that apply. An override that does not fit its policy any more (a new
 * release has no such rung) is left out; `left_out` (may be NULL) gets {"name","version","why"}.
 * New reference. */
json_t *overrides_versions(struct db *db, const struct policy_scope *scope, json_t *left_out,
                           struct oom_error *err);

/* The same for one policy, also where it is not used (*used). `draft` (may be NULL) counts instead
 * of the stored document of its name. */
json_t *overrides_versions_of(struct db *db, const char *policy, const struct policy_scope *scope,
                              const struct policy_draft *draft, bool *used, json_t *left_out,
                              struct oom_error *err);

/* The document of one policy in these versions; `draft` (may be NULL) counts instead of the stored
 * document of its name. `applied` gets "partition=small@2, user=alice@1"; may be NULL. New
 * reference; NULL and err when there is none or it does not validate. */
json_t *overrides_resolve(struct db *db, const json_t *versions, const char *policy,
                          const struct policy_draft *draft, char *applied, size_t size,
                          struct oom_error *err);

/* All of them: [{"name","version","document"}]. New reference. */
json_t *overrides_documents(struct db *db, const json_t *versions, struct oom_error *err);

/* A new document of a policy must still carry its active overrides. 0, or -1 and err, which names
 * the one that does not fit. */
int overrides_check_base(struct db *db, const char *policy, const json_t *document,
                         struct oom_error *err);

/* A new document of an override must fit the active version of its policy. */
int overrides_check(struct db *db, const char *name, const json_t *document, struct oom_error *err);

#endif
