/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl policy set, unset, import, rollback, enable, disable. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ctl/policy.h"
#include "agent/lib/jsonget.h"
#include "policies/near.h"
#include "policies/policy_edit.h"

/* Checks, shows the difference and stores. `row` is what it was made of. */
static int change(const struct policy_call *call, const char *name, const json_t *row,
                  const json_t *document, const char *message)
{
    struct oom_error err = {""};

    if (policy_check(call, name, document, &err) < 0)
        return policy_fail(call, &err);
    if (row && !policy_print_diff("active", json_object_get(row, "document"), "new", document)) {
        printf("%s: nothing changes\n", name);
        return 0;
    }
    return policy_store(call, name, json_get_int(row, "version", 0), document,
                        call->message ? call->message : message);
}

/* One value of the override itself: what is different, not what it comes to. */
static int put(const struct policy_call *call, json_t *document, const char *path, json_t *value,
               struct oom_error *err)
{
    if (!call->scope)
        return policy_edit_put(document, path, value, err);
    json_t *set = json_object_get(document, "set");
    if (!set && json_object_set_new(document, "set", set = json_object()) < 0)
        return oom_errorf(err, "out of memory");
    return json_object_set(set, path, value);
}

int policy_set(struct policy_call *call)
{
    const char *where = call->words[1], *text = call->words[2];
    struct oom_error err = {""};
    char message[256];
    int status = 2;
    json_t *row = policy_fetch_or_new(call);
    json_t *document = row ? json_deep_copy(json_object_get(row, "document")) : NULL;
    json_t *value = policy_edit_value(text);

    if (document && put(call, document, where, value, &err) != 0) {
        policy_fail(call, &err);
    } else if (document) {
        snprintf(message, sizeof(message), "%.120s = %.120s", where, text);
        status = change(call, call->name, row, document, message);
    }
    json_decref(value);
    json_decref(document);
    json_decref(row);
    return status;
}

static int take_away(const struct policy_call *call, json_t *document, struct oom_error *err)
{
    json_t *set = json_object_get(document, "set"), *value;
    const char *path = call->words[1], *key;
    struct near near;

    if (!path) {
        json_object_del(document, "use");
        return json_object_clear(set);
    }
    if (json_object_del(strcmp(path, "use") == 0 ? document : set, path) == 0)
        return 0;
    near_init(&near, path);
    json_object_foreach(set, key, value) near_offer(&near, key);
    if (near.best)
        return oom_errorf(err, "%s does not set \"%s\" (did you mean \"%s\"?)", call->name, path,
                          near.best);
    return oom_errorf(err, "%s does not set \"%s\"", call->name, path);
}

int policy_unset(struct policy_call *call)
{
    struct oom_error err = {""};
    char message[256];

    if (!call->scope) {
        oom_errorf(&err, "whose? --partition, --account or --user: a policy itself has every value "
                         "(`oomctl policy rollback` and `set` change it)");
        return policy_fail(call, &err);
    }
    json_t *row = policy_fetch(call, NULL);
    json_t *document = row ? json_deep_copy(json_object_get(row, "document")) : NULL;
    int status = 2;
    if (document && take_away(call, document, &err) != 0) {
        policy_fail(call, &err);
    } else if (document) {
        snprintf(message, sizeof(message), "%.120s taken away",
                 call->words[1] ? call->words[1] : "everything");
        status = change(call, call->name, row, document, message);
    }
    json_decref(document);
    json_decref(row);
    return status;
}

int policy_import(struct policy_call *call)
{
    struct oom_error err = {""};
    char path[192], name[POLICY_OVERRIDE_NAME_ROOM];
    json_t *row = NULL;
    json_t *document = policy_read_file(call, call->words[0], name, sizeof(name), &err);

    if (!document)
        return policy_fail(call, &err);
    snprintf(path, sizeof(path), "/v1/policies/%s", name);
    if (api_call(call->api, "GET", path, NULL, &row, &err) != 200) {
        json_decref(row);
        row = NULL; /* a new one */
    }
    int status = change(call, name, row, document, "imported");
    json_decref(row);
    json_decref(document);
    return status;
}

/* POST without anything to read but the outcome. */
static int act(struct policy_call *call, json_t *body)
{
    struct oom_error err = {""};
    json_t *reply = NULL;
    char path[192];

    snprintf(path, sizeof(path), "/v1/policies/%s/%s", call->name, call->verb);
    int status = api_call(call->api, "POST", path, body, &reply, &err);
    json_decref(body);
    if (status == 200 && json_object_get(reply, "version"))
        printf("%s: version %lld is active now\n", call->name,
               (long long)json_get_int(reply, "version", 0));
    else if (status == 200)
        printf("%s: %sd\n", call->name, call->verb);
    json_decref(reply);
    return status == 200 ? 0 : policy_fail(call, &err);
}

int policy_rollback(struct policy_call *call)
{
    const char *text = call->words[1];
    char *end = NULL;
    long version = text ? strtol(text, &end, 10) : 0;
    struct oom_error err = {""};

    if (text && (!*text || *end || version < 1)) {
        oom_errorf(&err, "\"%s\" is no version (oomctl policy log %s)", text, call->words[0]);
        return policy_fail(call, &err);
    }
    return act(call, json_pack("{s:I}", "version", (json_int_t)version));
}

/* For everybody it is a switch beside the policy; for a partition, account or user it is a value of
 * their override. */
static int use(struct policy_call *call, bool used)
{
    if (!call->scope)
        return act(call, NULL);
    json_t *row = policy_fetch_or_new(call);
    json_t *document = row ? json_deep_copy(json_object_get(row, "document")) : NULL;
    int status = 2;
    if (document && json_object_set_new(document, "use", json_boolean(used)) == 0)
        status = change(call, call->name, row, document, used ? "enabled" : "disabled");
    json_decref(document);
    json_decref(row);
    return status;
}

int policy_enable(struct policy_call *call)
{
    return use(call, true);
}

int policy_disable(struct policy_call *call)
{
    return use(call, false);
}
