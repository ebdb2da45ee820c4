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
                      json_get_string(row, "base", NULL) ? "override"
                      : json_get_int(row, "enabled", 1)  ? "enabled"
                                                         : "disabled",
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

/* As it is stored, or as it comes to be for somebody. */
static json_t *fetch(const struct policy_call *call)
{
    return call->whom ? policy_fetch_for(call) : policy_fetch(call, call->words[1]);
}

/* Beside the document, which may be on its way into a file. */
static void tell_resolved(const struct policy_call *call, const json_t *row)
{
    const char *overrides = json_get_string(row, "overrides", "");
    const json_t *item;
    size_t i;

    fprintf(stderr, "%s@%lld for %s: %s%s%s\n", call->name,
            (long long)json_get_int(row, "version", 0), call->whom,
            json_get_bool(row, "enabled", true) ? "" : "not used; ",
            *overrides ? "with " : "no override applies", overrides);
    json_array_foreach(json_object_get(row, "left_out"), i, item)
        fprintf(stderr, "left out %s@%lld: %s\n", json_get_string(item, "name", ""),
                (long long)json_get_int(item, "version", 0), json_get_string(item, "why", ""));
}

int policy_export(struct policy_call *call)
{
    json_t *row = fetch(call);
    int status = row ? print_document(json_object_get(row, "document")) : 2;

    json_decref(row);
    return status;
}

int policy_show(struct policy_call *call)
{
    json_t *row = fetch(call);
    int status = row ? 0 : 2;

    if (row && call->common.json)
        ctl_print_json(row);
    else if (row)
        status = print_document(json_object_get(row, "document"));
    if (row && call->whom && !call->common.json)
        tell_resolved(call, row);
    json_decref(row);
    return status;
}

int policy_log(struct policy_call *call)
{
    char path[192];
    size_t i;
    const json_t *row;

    snprintf(path, sizeof(path), "/v1/policies/%s/log", call->name);
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

static bool print_row_diff(const struct policy_call *call, const json_t *old_row,
                           const json_t *new_row)
{
    char old_name[192], new_name[192];

    snprintf(old_name, sizeof(old_name), "%s@%lld", call->name,
             (long long)json_get_int(old_row, "version", 0));
    snprintf(new_name, sizeof(new_name), "%s@%lld%s%s", call->name,
             (long long)json_get_int(new_row, "version", 0), call->whom ? " for " : "",
             call->whom ? call->whom : "");
    return policy_print_diff(old_name, json_object_get(old_row, "document"), new_name,
                             json_object_get(new_row, "document"));
}

/* `diff NAME` is the active version against the one before it. Exit 1: no difference. */
int policy_diff(struct policy_call *call)
{
    char before[32];
    json_t *new_row = call->whom ? policy_fetch_for(call) : policy_fetch(call, call->words[2]);
    int64_t version = json_get_int(new_row, "version", 0);
    const char *old = call->words[1];

    if (!call->whom)
        version = version > 1 ? version - 1 : 1;
    snprintf(before, sizeof(before), "%lld", (long long)version);
    json_t *old_row = new_row ? policy_fetch(call, old ? old : before) : NULL;
    int status = !old_row ? 2 : print_row_diff(call, old_row, new_row) ? 0 : 1;
    json_decref(old_row);
    json_decref(new_row);
    return status;
}

int policy_validate(struct policy_call *call)
{
    struct oom_error err = {""};
    char name[POLICY_OVERRIDE_NAME_ROOM];
    json_t *document = policy_read_file(call, call->words[0], name, sizeof(name), &err);

    if (!document)
        return policy_fail(call, &err);
    if (policy_override_is(document))
        printf("%s: good (override \"%s\", %zu values)\n", call->words[0], name,
               json_object_size(json_object_get(document, "set")));
    else
        printf("%s: good (policy \"%s\", %zu rungs)\n", call->words[0], name,
               json_object_size(json_object_get(document, "rungs")));
    json_decref(document);
    return 0;
}
