/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/policy_override.h"

#include <stdio.h>
#include <string.h>

#include "policies/near.h"
#include "policies/policy_edit.h"

enum { MAX_SUBJECT = 64 };

const char *const policy_override_scopes[] = {"partition", "account", "user", NULL};

static const char *known_scope(const char *name)
{
    for (const char *const *scope = policy_override_scopes; *scope; scope++)
        if (strcmp(*scope, name) == 0)
            return *scope;
    return NULL;
}

/* Slurm's and Unix's names, and nothing that means something in a path or a query. */
static bool is_subject(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-@+";
    size_t length = strlen(text);

    return length > 0 && length <= MAX_SUBJECT && text[strspn(text, allowed)] == '\0';
}

bool policy_override_is(const json_t *document)
{
    return json_object_get(document, "for") || json_object_get(document, "policy");
}

bool policy_override_is_name(const char *name)
{
    return strchr(name, ':') != NULL;
}

int policy_override_format(const char *policy, const char *scope, const char *subject, char *out,
                           size_t size, struct oom_error *err)
{
    if (!*policy || strlen(policy) >= POLICY_OVERRIDE_PART_ROOM || strpbrk(policy, ":=/?&%# "))
        return oom_errorf(err, "\"%.64s\" is no name of a policy", policy);
    if (!known_scope(scope))
        return oom_errorf(
            err, "an override is for a partition, account or user, not for a \"%.64s\"", scope);
    if (!is_subject(subject))
        return oom_errorf(err, "\"%.64s\" is no name of a %s", subject, scope);
    int n = snprintf(out, size, "%s:%s=%s", policy, scope, subject);
    return n > 0 && (size_t)n < size ? 0 : oom_errorf(err, "the names are too long");
}

int policy_override_parse(const char *name, struct policy_override_name *out, struct oom_error *err)
{
    const char *colon = strchr(name, ':');
    const char *equals = colon ? strchr(colon, '=') : NULL;
    char scope[16], again[POLICY_OVERRIDE_NAME_ROOM];

    if (!equals || (size_t)(colon - name) >= sizeof(out->policy) ||
        (size_t)(equals - colon) > sizeof(scope) || strlen(equals + 1) >= sizeof(out->subject))
        return oom_errorf(err, "\"%.128s\" is no override such as relax:partition=small", name);
    snprintf(out->policy, sizeof(out->policy), "%.*s", (int)(colon - name), name);
    snprintf(scope, sizeof(scope), "%.*s", (int)(equals - colon - 1), colon + 1);
    snprintf(out->subject, sizeof(out->subject), "%s", equals + 1);
    out->scope = known_scope(scope);
    return policy_override_format(out->policy, scope, out->subject, again, sizeof(again), err);
}

static int unknown_key(const char *where, const char *key, const char *const *known,
                       struct oom_error *err)
{
    struct near near;

    near_init(&near, key);
    for (; *known; known++)
        near_offer(&near, *known);
    if (near.best)
        return oom_errorf(err, "override: %s: unknown key \"%.64s\" (did you mean \"%s\"?)", where,
                          key, near.best);
    return oom_errorf(err, "override: %s: unknown key \"%.64s\"", where, key);
}

int policy_override_name_of(const json_t *override, char *out, size_t size, struct oom_error *err)
{
    static const char *const keys[] = {"policy", "for", "use", "set", NULL};
    const char *policy = json_string_value(json_object_get(override, "policy"));
    const json_t *subjects = json_object_get(override, "for");
    const json_t *use = json_object_get(override, "use");
    const json_t *set = json_object_get(override, "set");
    const char *key, *scope = NULL, *subject = NULL;
    json_t *value;

    json_object_foreach((json_t *) override, key, value)
    {
        const char *const *known = keys;
        while (*known && strcmp(*known, key) != 0)
            known++;
        if (!*known)
            return unknown_key("the document", key, keys, err);
    }
    json_object_foreach((json_t *)subjects, key, value)
    {
        if (!known_scope(key))
            return unknown_key("for", key, policy_override_scopes, err);
        scope = key;
        subject = json_string_value(value);
    }
    if (json_object_size(subjects) != 1 || !subject)
        return oom_errorf(err, "override: for: must name one partition, account or user");
    if (!policy)
        return oom_errorf(err, "override: policy: must name the policy");
    if (use && !json_is_boolean(use))
        return oom_errorf(err, "override: use: must be true or false");
    if (set && !json_is_object(set))
        return oom_errorf(err, "override: set: must be an object of paths and values");
    return policy_override_format(policy, scope, subject, out, size, err);
}

json_t *policy_override_apply(const json_t *policy, const json_t *override, struct oom_error *err)
{
    json_t *out = json_deep_copy(policy), *value;
    const char *path;

    if (!out) {
        oom_errorf(err, "out of memory");
        return NULL;
    }
    json_object_foreach(json_object_get(override, "set"), path, value)
    {
        if (policy_edit_put(out, path, value, err) == 0)
            continue;
        oom_error_prefix(err, "set \"%.100s\"", path);
        json_decref(out);
        return NULL;
    }
    return out;
}
