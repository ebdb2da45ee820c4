/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl policy set, import, rollback, enable, disable. */
#include <stdio.h>
#include <stdlib.h>

#include "agent/ctl/policy.h"
#include "agent/lib/jsonget.h"
#include "oomretry/policy.h"
#include "policies/policy_edit.h"

/* Validates, shows the difference and stores. */
static int change(const struct policy_call *call, const char *name, const json_t *row,
                  const json_t *document, const char *message)
{
    struct oom_error err = {""};
    struct oom_policy *policy = oom_policy_from_json(document, name, &err);

    if (!policy)
        return policy_fail(call, &err);
    oom_policy_free(policy);
    if (row && !policy_print_diff("active", json_object_get(row, "document"), "new", document)) {
        printf("%s: nothing changes\n", name);
        return 0;
    }
    return policy_store(call, name, json_get_int(row, "version", 0), document,
                        call->message ? call->message : message);
}

int policy_set(struct policy_call *call)
{
    const char *name = call->words[0], *where = call->words[1], *value = call->words[2];
    struct oom_error err = {""};
    char message[256];
    int status = 2;
    json_t *row = policy_fetch(call, name, NULL);
    json_t *document = row ? json_deep_copy(json_object_get(row, "document")) : NULL;

    if (document && policy_edit_set(document, where, value, &err) != 0) {
        policy_fail(call, &err);
    } else if (document) {
        snprintf(message, sizeof(message), "%.120s = %.120s", where, value);
        status = change(call, name, row, document, message);
    }
    json_decref(document);
    json_decref(row);
    return status;
}

int policy_import(struct policy_call *call)
{
    struct oom_error err = {""};
    char path[160];
    json_t *row = NULL;
    json_t *document = policy_read_file(call->words[0], &err);

    if (!document)
        return policy_fail(call, &err);
    const char *name = json_get_string(document, "name", "");
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
    char path[160];

    snprintf(path, sizeof(path), "/v1/policies/%.64s/%s", call->words[0], call->verb);
    int status = api_call(call->api, "POST", path, body, &reply, &err);
    json_decref(body);
    if (status == 200 && json_object_get(reply, "version"))
        printf("%s: version %lld is active now\n", call->words[0],
               (long long)json_get_int(reply, "version", 0));
    else if (status == 200)
        printf("%s: %sd\n", call->words[0], call->verb);
    json_decref(reply);
    return status == 200 ? 0 : policy_fail(call, &err);
}

int policy_rollback(struct policy_call *call)
{
    return act(call, json_pack("{s:I}", "version",
                               (json_int_t)(call->words[1] ? atoll(call->words[1]) : 0)));
}

int policy_enable(struct policy_call *call)
{
    return act(call, NULL);
}

int policy_disable(struct policy_call *call)
{
    return act(call, NULL);
}
