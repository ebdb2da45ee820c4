/* SPDX-License-Identifier: Apache-2.0
 *
 * Overrides: what is different in a policy for one partition, account or user. An override is a
 * document of its own, kept in versions like a policy, under the name "relax:partition=small":
 *
 *   {"policy": "relax", "for": {"partition": "small"}, "use": true,
 *    "set": {"forward.fewer-tokens.scale": 0.75, "rungs.optimizer-offload.enabled": false,
 *            "max_retries": 3, "consent": "never"}}
 *
 * "use" says whether the policy is used there at all; the paths of "set" are those of
 * policy_edit.h. What results is a policy like any other and is validated as one. */
#ifndef POLICIES_POLICY_OVERRIDE_H
#define POLICIES_POLICY_OVERRIDE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "oomretry/error.h"

/* "partition", "account", "user", NULL: where several apply, the later one has the last word. */
extern const char *const policy_override_scopes[];

enum { POLICY_OVERRIDE_NAME_ROOM = 128, POLICY_OVERRIDE_PART_ROOM = 72 };

struct policy_override_name {
    char policy[POLICY_OVERRIDE_PART_ROOM];
    const char *scope; /* one of policy_override_scopes */
    char subject[POLICY_OVERRIDE_PART_ROOM];
};

/* True when a document or a name is that of an override. */
bool policy_override_is(const json_t *document);
bool policy_override_is_name(const char *name);

/* "relax:partition=small" and back. */
int policy_override_format(const char *policy, const char *scope, const char *subject, char *out,
                           size_t size, struct oom_error *err);
int policy_override_parse(const char *name, struct policy_override_name *out,
                          struct oom_error *err);

/* The name that a document gives itself; -1 and err when it is no override: unknown keys, nobody
 * or more than one in "for". */
int policy_override_name_of(const json_t *override, char *out, size_t size, struct oom_error *err);

/* A copy of the policy with the override's values; not validated. NULL and err when a path leads
 * nowhere. */
json_t *policy_override_apply(const json_t *policy, const json_t *override, struct oom_error *err);

#endif
