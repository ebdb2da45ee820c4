/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ctl/scope.h"

#include <stdio.h>
#include <string.h>

#include "agent/lib/urlquery.h"
#include "policies/policy_override.h"

/* "user=alice", checked as the name of an override would be. */
static int add_pair(json_t *scope, const char *pair, struct oom_error *err)
{
    char key[16], name[POLICY_OVERRIDE_NAME_ROOM];
    const char *equals = strchr(pair, '=');

    if (!equals || (size_t)(equals - pair) >= sizeof(key))
        return oom_errorf(err, "\"%.64s\" is none of partition=P, account=A, user=U", pair);
    snprintf(key, sizeof(key), "%.*s", (int)(equals - pair), pair);
    if (policy_override_format("policy", key, equals + 1, name, sizeof(name), err) < 0)
        return -1;
    return json_object_set_new(scope, key, json_string(equals + 1));
}

json_t *ctl_scope_parse(const char *text, struct oom_error *err)
{
    char words[256];
    json_t *scope = json_object();
    int rc = 0;

    if ((size_t)snprintf(words, sizeof(words), "%s", text) >= sizeof(words))
        rc = oom_errorf(err, "\"%.64s…\" is too long", text);
    char *save = NULL;
    for (char *pair = strtok_r(words, ",", &save); rc == 0 && pair;
         pair = strtok_r(NULL, ",", &save))
        rc = add_pair(scope, pair, err);
    if (rc == 0 && json_object_size(scope) == 0)
        rc = oom_errorf(err, "for whom? user=alice,partition=small");
    if (rc == 0)
        return scope;
    json_decref(scope);
    return NULL;
}

int ctl_scope_add(char *path, size_t size, const json_t *scope)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)scope, key,
                        value) if (urlquery_add(path, size, key, json_string_value(value)) <
                                   0) return -1;
    return 0;
}
