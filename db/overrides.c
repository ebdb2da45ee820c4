/* SPDX-License-Identifier: Apache-2.0 */
#include "db/overrides.h"

#include <stdio.h>
#include <string.h>

#include "agent/lib/jsonget.h"
#include "db/policies.h"
#include "oomretry/policy.h"
#include "policies/policy_override.h"

/* --- documents ----------------------------------------------------------------------------------
 */

static json_t *load(struct db *db, const char *name, int64_t version,
                    const struct policy_draft *draft, struct oom_error *err)
{
    if (draft && strcmp(draft->name, name) == 0)
        return json_incref((json_t *)draft->document);
    return policies_load(db, name, version, NULL, err);
}

static bool validates(const json_t *document, const char *name, struct oom_error *err)
{
    struct oom_policy *policy = oom_policy_from_json(document, name, err);

    oom_policy_free(policy);
    return policy != NULL;
}

/* Puts one override on *document. */
static int put_on(struct db *db, const char *name, int64_t version,
                  const struct policy_draft *draft, json_t **document, struct oom_error *err)
{
    json_t *override = load(db, name, version, draft, err);
    json_t *changed = override ? policy_override_apply(*document, override, err) : NULL;

    json_decref(override);
    if (!changed)
        return version ? oom_error_prefix(err, "%s@%lld", name, (long long)version) : -1;
    json_decref(*document);
    *document = changed;
    return 0;
}

/* The override of this policy and scope among the versions; NULL: none. */
static const char *find(const json_t *versions, const char *policy, const char *scope)
{
    char prefix[POLICY_OVERRIDE_NAME_ROOM];
    const char *name;
    json_t *version;
    int length = snprintf(prefix, sizeof(prefix), "%s:%s=", policy, scope);

    json_object_foreach((json_t *)versions, name,
                        version) if (strncmp(name, prefix, (size_t)length) == 0) return name;
    return NULL;
}

json_t *overrides_resolve(struct db *db, const json_t *versions, const char *policy,
                          const struct policy_draft *draft, char *applied, size_t size,
                          struct oom_error *err)
{
    json_t *document = load(db, policy, json_get_int(versions, policy, 0), draft, err);
    bool changed = draft != NULL;
    size_t used = 0;

    if (applied)
        applied[0] = '\0';
    for (const char *const *scope = policy_override_scopes; document && *scope; scope++) {
        const char *name = find(versions, policy, *scope);
        int64_t version = json_get_int(versions, name, 0);
        if (!name)
            continue;
        if (put_on(db, name, version, draft, &document, err) < 0) {
            json_decref(document);
            return NULL;
        }
        changed = true;
        if (applied && used < size)
            used += (size_t)snprintf(applied + used, size - used, "%s%s@%lld", used ? ", " : "",
                                     strchr(name, ':') + 1, (long long)version);
    }
    if (document && changed && !validates(document, policy, err)) {
        json_decref(document);
        return NULL;
    }
    return document;
}

json_t *overrides_documents(struct db *db, const json_t *versions, struct oom_error *err)
{
    json_t *list = json_array(), *version;
    const char *name;

    json_object_foreach((json_t *)versions, name, version)
    {
        if (policy_override_is_name(name))
            continue;
        json_t *document = overrides_resolve(db, versions, name, NULL, NULL, 0, err);
        if (!document) {
            json_decref(list);
            return NULL;
        }
        json_array_append_new(list, json_pack("{s:s, s:O, s:o}", "name", name, "version", version,
                                              "document", document));
    }
    return list;
}

/* --- versions -----------------------------------------------------------------------------------
 */

/* {"version","used"} of an override ("used": null where it does not say), NULL when there is none.
 */
static json_t *find_override(struct db *db, const char *name, const struct policy_draft *draft)
{
    if (draft && strcmp(draft->name, name) == 0)
        return json_pack("{s:i, s:O?}", "version", 0, "used",
                         json_object_get(draft->document, "use"));
    json_t *rows = db_rows(db,
                           db_query(db, NULL,
                                    "SELECT p.version, json_extract(v.body, '$.use') AS used "
                                    "FROM policy p JOIN policy_version v ON v.name = p.name AND "
                                    "v.version = p.version WHERE p.name = ?",
                                    "s", name),
                           NULL);
    json_t *row = json_incref(json_array_get(rows, 0));

    json_decref(rows);
    return row;
}

/* Adds the override's version, unless the policy would not be one with it. */
static bool add_fitting(struct db *db, const char *policy, const char *name, const json_t *version,
                        const struct policy_draft *draft, json_t *versions, json_t *left_out)
{
    struct oom_error why = {""};

    json_object_set(versions, name, (json_t *)version);
    json_t *document = overrides_resolve(db, versions, policy, draft, NULL, 0, &why);
    json_decref(document);
    if (document)
        return true;
    json_object_del(versions, name);
    if (left_out)
        json_array_append_new(left_out, json_pack("{s:s, s:O, s:s}", "name", name, "version",
                                                  version, "why", why.text));
    return false;
}

/* SQL knows 0 and 1, a draft true and false. */
static void take_use(const json_t *use, bool *used)
{
    if (json_is_boolean(use))
        *used = json_is_true(use);
    else if (json_is_integer(use))
        *used = json_integer_value(use) != 0;
}

json_t *overrides_versions_of(struct db *db, const char *policy, const struct policy_scope *scope,
                              const struct policy_draft *draft, bool *used, json_t *left_out,
                              struct oom_error *err)
{
    const char *const subjects[] = {scope->partition, scope->account, scope->user};
    int64_t version = 0, enabled = 0;

    if (db_get_int(db, err, 0, &version,
                   "SELECT version FROM policy WHERE name = ? AND base IS NULL", "s", policy) < 0 ||
        db_get_int(db, err, 1, &enabled, "SELECT enabled FROM policy WHERE name = ?", "s", policy) <
            0)
        return NULL;
    if (!version) {
        oom_errorf(err, "there is no policy \"%s\" (oomctl policy list shows them)", policy);
        return NULL;
    }
    json_t *versions = json_pack("{s:I}", policy, (json_int_t)version);
    *used = enabled != 0;
    for (int i = 0; policy_override_scopes[i]; i++) {
        char name[POLICY_OVERRIDE_NAME_ROOM];
        if (!subjects[i] || policy_override_format(policy, policy_override_scopes[i], subjects[i],
                                                   name, sizeof(name), NULL) < 0)
            continue;
        json_t *override = find_override(db, name, draft);
        if (override && add_fitting(db, policy, name, json_object_get(override, "version"), draft,
                                    versions, left_out))
            take_use(json_object_get(override, "used"), used);
        json_decref(override);
    }
    return versions;
}

json_t *overrides_versions(struct db *db, const struct policy_scope *scope, json_t *left_out,
                           struct oom_error *err)
{
    json_t *all = json_object(), *row;
    size_t i;
    json_t *rows = db_rows(
        db, db_query(db, err, "SELECT name FROM policy WHERE base IS NULL ORDER BY name", ""), err);

    json_array_foreach(rows, i, row)
    {
        bool used;
        json_t *one = overrides_versions_of(db, json_get_string(row, "name", ""), scope, NULL,
                                            &used, left_out, err);
        if (one && used)
            json_object_update(all, one);
        json_decref(one);
        if (!one) {
            json_decref(rows);
            rows = NULL;
            break;
        }
    }
    if (!rows) {
        json_decref(all);
        return NULL;
    }
    json_decref(rows);
    return all;
}

/* --- before something is stored -----------------------------------------------------------------
 */

int overrides_check_base(struct db *db, const char *policy, const json_t *document,
                         struct oom_error *err)
{
    const struct policy_draft draft = {policy, document};
    json_t *row;
    size_t i;
    int rc = 0;
    json_t *rows = db_rows(
        db, db_query(db, err, "SELECT name, version FROM policy WHERE base = ?", "s", policy), err);

    if (!rows)
        return -1;
    json_array_foreach(rows, i, row)
    {
        const char *name = json_get_string(row, "name", "");
        json_t *versions =
            json_pack("{s:i, s:O}", policy, 0, name, json_object_get(row, "version"));
        json_t *resolved =
            rc == 0 ? overrides_resolve(db, versions, policy, &draft, NULL, 0, err) : NULL;
        if (rc == 0 && !resolved)
            rc = oom_error_prefix(err, "the override %s would not fit any more", name);
        json_decref(resolved);
        json_decref(versions);
    }
    json_decref(rows);
    return rc;
}

int overrides_check(struct db *db, const char *name, const json_t *document, struct oom_error *err)
{
    const struct policy_draft draft = {name, document};
    char own[POLICY_OVERRIDE_NAME_ROOM];
    struct policy_override_name is;

    if (policy_override_name_of(document, own, sizeof(own), err) < 0 ||
        policy_override_parse(own, &is, err) < 0)
        return -1;
    if (strcmp(own, name) != 0)
        return oom_errorf(err, "the document is the override %s, not %s", own, name);
    json_t *versions = json_pack("{s:i, s:i}", is.policy, 0, name, 0);
    json_t *resolved = overrides_resolve(db, versions, is.policy, &draft, NULL, 0, err);
    json_decref(resolved);
    json_decref(versions);
    return resolved ? 0 : -1;
}
