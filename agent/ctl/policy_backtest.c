/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl policy backtest: stored incidents against a draft. */
#include <stdio.h>
#include <string.h>

#include "agent/ctl/ctl.h"
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

int policy_backtest(int argc, char **argv)
{
    struct policy_arguments a = {
        .verb = "backtest",
        .usage = "FILE",
        .doc = "Replays stored incidents against a draft and says what would have been decided "
               "otherwise. Nothing is stored. Exit 1 when something would have changed.",
        .min_words = 1,
        .max_words = 1};
    struct oom_error err = {""};
    json_t *reply = NULL;
    char path[160];
    size_t i;
    const json_t *row;

    if (policy_arguments_parse(&a, argc, argv) != 0)
        return 2;
    json_t *document = policy_read_file(a.words[0], &err);
    struct api *api = document ? api_open_default(a.db_path, CTL_TIMEOUT_MS, &err) : NULL;
    int status = -1;
    if (api) {
        snprintf(path, sizeof(path), "/v1/policies/%s/backtest",
                 json_get_string(document, "name", ""));
        json_t *body = json_pack("{s:O}", "document", document);
        status = api_call(api, "POST", path, body, &reply, &err);
        json_decref(body);
    }
    api_close(api);
    json_decref(document);
    if (status != 200) {
        json_decref(reply);
        return policy_fail(&a, &err);
    }
    const json_t *changed = json_object_get(reply, "changed");
    if (a.json) {
        json_dumpf(reply, stdout, JSON_INDENT(2));
        putchar('\n');
    } else {
        json_array_foreach(changed, i, row)
        {
            printf("lineage %lld, attempt %lld: %s\n", (long long)json_get_int(row, "lineage", 0),
                   (long long)json_get_int(row, "attempt", 0),
                   json_get_string(row, "incident", ""));
            print_side("was", json_object_get(row, "was"));
            print_side("would be", json_object_get(row, "would_be"));
        }
        printf("%lld incidents replayed, %zu would have been decided otherwise\n",
               (long long)json_get_int(reply, "incidents", 0), json_array_size(changed));
    }
    int result = json_array_size(changed) > 0;
    json_decref(reply);
    return result;
}
