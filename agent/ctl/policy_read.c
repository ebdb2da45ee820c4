/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl policy list, show, log, diff, export, validate: what changes nothing. */
#include <stdio.h>
#include <stdlib.h>

#include "agent/ctl/ctl.h"
#include "agent/ctl/policy.h"
#include "agent/lib/humanize.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/table.h"
#include "oomretry/policy.h"
#include "policies/policy_edit.h"

int policy_list(struct policy_call *call)
{
    size_t i;
    const json_t *row;
    json_t *reply = policy_get(call, "/v1/policies");
    const json_t *list = json_object_get(reply, "policies");

    if (!reply)
        return 2;
    if (call->common.json) {
        ctl_print_json(list);
    } else {
        struct table *table = table_new("POLICY\tACTIVE\tVERSIONS\tSTATE\tBY\tWHEN\tMESSAGE");
        json_array_foreach(list, i, row)
        {
            char version[32], versions[32], when[64];
            snprintf(version, sizeof(version), "%lld", (long long)json_get_int(row, "version", 0));
            snprintf(versions, sizeof(versions), "%lld",
                     (long long)json_get_int(row, "versions", 0));
            humanize_iso(json_get_int(row, "created_ms", 0), when, sizeof(when));
            table_row(table, json_get_string(row, "name", ""), version, versions,
                      json_get_int(row, "enabled", 1) ? "enabled" : "disabled",
                      json_get_string(row, "author", ""), when,
                      json_get_string(row, "message", ""));
        }
        table_print(table, stdout);
        table_free(table);
    }
    json_decref(reply);
    return 0;
}

static int print_document(const json_t *document)
{
    char *text = policy_edit_text(document);

    if (!text)
        return 2;
    fputs(text, stdout);
    free(text);
    return 0;
}

int policy_export(struct policy_call *call)
{
    json_t *row = policy_fetch(call, call->words[0], call->words[1]);
    int status = row ? print_document(json_object_get(row, "document")) : 2;

    json_decref(row);
    return status;
}

int policy_show(struct policy_call *call)
{
    if (!call->common.json)
        return policy_export(call);
    json_t *row = policy_fetch(call, call->words[0], call->words[1]);
    if (row)
        ctl_print_json(row);
    int status = row ? 0 : 2;
    json_decref(row);
    return status;
}

int policy_log(struct policy_call *call)
{
    char path[160];
    size_t i;
    const json_t *row;

    snprintf(path, sizeof(path), "/v1/policies/%.64s/log", call->words[0]);
    json_t *reply = policy_get(call, path);
    if (!reply)
        return 2;
    const json_t *versions = json_object_get(reply, "versions");
    if (call->common.json) {
        ctl_print_json(versions);
    } else {
        struct table *table = table_new("VERSION\t\tBY\tWHEN\tMESSAGE");
        json_array_foreach(versions, i, row)
        {
            char version[32], when[64];
            snprintf(version, sizeof(version), "%lld", (long long)json_get_int(row, "version", 0));
            humanize_iso(json_get_int(row, "created_ms", 0), when, sizeof(when));
            table_row(table, version, json_get_int(row, "active", 0) ? "active" : "",
                      json_get_string(row, "author", ""), when,
                      json_get_string(row, "message", ""));
        }
        table_print(table, stdout);
        table_free(table);
    }
    json_decref(reply);
    return 0;
}

/* `diff NAME` is the active version against the one before it. Exit 1: no difference. */
int policy_diff(struct policy_call *call)
{
    const char *name = call->words[0];
    char before[32], old_name[128], new_name[128];
    bool differs = false;
    json_t *new_row = policy_fetch(call, name, call->words[2]);
    int64_t version = json_get_int(new_row, "version", 0);

    snprintf(before, sizeof(before), "%lld", (long long)(version > 1 ? version - 1 : 1));
    json_t *old_row =
        new_row ? policy_fetch(call, name, call->words[1] ? call->words[1] : before) : NULL;
    if (old_row) {
        snprintf(old_name, sizeof(old_name), "%s@%lld", name,
                 (long long)json_get_int(old_row, "version", 0));
        snprintf(new_name, sizeof(new_name), "%s@%lld", name, (long long)version);
        differs = policy_print_diff(old_name, json_object_get(old_row, "document"), new_name,
                                    json_object_get(new_row, "document"));
    }
    int status = !old_row ? 2 : differs ? 0 : 1;
    json_decref(old_row);
    json_decref(new_row);
    return status;
}

int policy_validate(struct policy_call *call)
{
    struct oom_error err = {""};
    json_t *document = policy_read_file(call->words[0], &err);

    if (!document)
        return policy_fail(call, &err);
    printf("%s: good (policy \"%s\", %zu rungs)\n", call->words[0],
           json_get_string(document, "name", ""),
           json_object_size(json_object_get(document, "rungs")));
    json_decref(document);
    return 0;
}
