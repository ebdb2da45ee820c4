/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl policy backtest: stored incidents against a draft. */
#include <stdio.h>
#include <string.h>

#include "agent/ctl/policy.h"
#include "agent/lib/jsonget.h"

static void print_side(const char *label, const json_t *decision)
{
    size_t i;
    const json_t *edit;

    if (strcmp(json_get_string(decision, "action", ""), "retry") != 0) {
        printf("  %-9s stop\n", label);
        return;
    }
    printf("  %-9s %s:", label, json_get_string(decision, "rung", ""));
    json_array_foreach(json_object_get(decision, "edits"), i, edit)
    {
        printf("%s %s %s -> %s", i ? ";" : "", json_get_string(edit, "knob", ""),
               json_get_string(edit, "old", "(not set)"),
               json_get_string(edit, "new", "(removed)"));
    }
    putchar('\n');
}

static void print_changes(const json_t *reply)
{
    const json_t *changed = json_object_get(reply, "changed"), *row;
    size_t i;

    json_array_foreach(changed, i, row)
    {
        printf("lineage %lld, attempt %lld: %s\n", (long long)json_get_int(row, "lineage", 0),
               (long long)json_get_int(row, "attempt", 0), json_get_string(row, "incident", ""));
        print_side("was", json_object_get(row, "was"));
        print_side("would be", json_object_get(row, "would_be"));
    }
    printf("%lld incidents replayed, %zu would have been decided otherwise\n",
           (long long)json_get_int(reply, "incidents", 0), json_array_size(changed));
}

int policy_backtest(struct policy_call *call)
{
    struct oom_error err = {""};
    json_t *reply = NULL;
    char path[192], name[POLICY_OVERRIDE_NAME_ROOM];
    json_t *document = policy_read_file(call, call->words[0], name, sizeof(name), &err);

    if (!document)
        return policy_fail(call, &err);
    snprintf(path, sizeof(path), "/v1/policies/%s/backtest", name);
    json_t *body = json_pack("{s:o}", "document", document);
    int status = api_call(call->api, "POST", path, body, &reply, &err);
    json_decref(body);
    if (status != 200) {
        json_decref(reply);
        return policy_fail(call, &err);
    }
    if (call->common.json)
        ctl_print_json(reply);
    else
        print_changes(reply);
    int result = json_array_size(json_object_get(reply, "changed")) > 0;
    json_decref(reply);
    return result;
}
