/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl policy list, show, log, diff, export, validate: what changes nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ctl/ctl.h"
#include "agent/ctl/policy.h"
#include "agent/lib/humanize.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/table.h"
#include "oomretry/policy.h"
#include "policies/policy_edit.h"

static json_t *get(const struct policy_arguments *a, const char *path, struct oom_error *err)
{
    json_t *reply = NULL;
    struct api *api = api_open_default(a->db_path, CTL_TIMEOUT_MS, err);

    if (api && api_call(api, "GET", path, NULL, &reply, err) != 200) {
        json_decref(reply);
        reply = NULL;
    }
    api_close(api);
    return reply;
}

static void print_json(const json_t *value)
{
    json_dumpf(value, stdout, JSON_INDENT(2));
    putchar('\n');
}

int policy_list(int argc, char **argv)
{
    struct policy_arguments a = {.verb = "list", .doc = "The policies of this database."};
    struct oom_error err = {""};
    size_t i;
    const json_t *row;

    if (policy_arguments_parse(&a, argc, argv) != 0)
        return 2;
    json_t *reply = get(&a, "/v1/policies", &err);
    if (!reply)
        return policy_fail(&a, &err);
    const json_t *list = json_object_get(reply, "policies");
    if (a.json) {
        print_json(list);
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

int policy_show(int argc, char **argv)
{
    struct policy_arguments a = {.verb = "show",
                                 .usage = "NAME [VERSION]",
                                 .doc = "One policy, the active version unless one is named.",
                                 .min_words = 1,
                                 .max_words = 2};
    struct oom_error err = {""};

    if (policy_arguments_parse(&a, argc, argv) != 0)
        return 2;
    struct api *api = api_open_default(a.db_path, CTL_TIMEOUT_MS, &err);
    if (!api)
        return policy_fail(&a, &err);
    json_t *row = policy_fetch(api, &a, a.words[0], a.words[1]);
    api_close(api);
    if (!row)
        return 2;
    int status = 0;
    if (a.json)
        print_json(row);
    else
        status = print_document(json_object_get(row, "document"));
    json_decref(row);
    return status;
}

int policy_export(int argc, char **argv)
{
    struct policy_arguments a = {.verb = "export",
                                 .usage = "NAME [VERSION]",
                                 .doc = "Writes a policy to standard output, for `oomctl policy "
                                        "import` elsewhere.",
                                 .min_words = 1,
                                 .max_words = 2};
    struct oom_error err = {""};

    if (policy_arguments_parse(&a, argc, argv) != 0)
        return 2;
    struct api *api = api_open_default(a.db_path, CTL_TIMEOUT_MS, &err);
    if (!api)
        return policy_fail(&a, &err);
    json_t *row = policy_fetch(api, &a, a.words[0], a.words[1]);
    api_close(api);
    int status = row ? print_document(json_object_get(row, "document")) : 2;
    json_decref(row);
    return status;
}

int policy_log(int argc, char **argv)
{
    struct policy_arguments a = {.verb = "log",
                                 .usage = "NAME",
                                 .doc = "All versions of a policy, newest first.",
                                 .min_words = 1,
                                 .max_words = 1};
    struct oom_error err = {""};
    char path[160];
    size_t i;
    const json_t *row;

    if (policy_arguments_parse(&a, argc, argv) != 0)
        return 2;
    snprintf(path, sizeof(path), "/v1/policies/%.64s/log", a.words[0]);
    json_t *reply = get(&a, path, &err);
    if (!reply)
        return policy_fail(&a, &err);
    const json_t *versions = json_object_get(reply, "versions");
    if (a.json) {
        print_json(versions);
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
int policy_diff(int argc, char **argv)
{
    struct policy_arguments a = {
        .verb = "diff",
        .usage = "NAME [OLD [NEW]]",
        .doc = "What differs between two versions; without OLD, between the active one and the "
               "one before it. Exit 1 when nothing does.",
        .min_words = 1,
        .max_words = 3};
    struct oom_error err = {""};
    char before[32], old_name[128], new_name[128];
    bool differs = false;

    if (policy_arguments_parse(&a, argc, argv) != 0)
        return 2;
    struct api *api = api_open_default(a.db_path, CTL_TIMEOUT_MS, &err);
    if (!api)
        return policy_fail(&a, &err);
    json_t *new_row = policy_fetch(api, &a, a.words[0], a.words[2]);
    int64_t version = json_get_int(new_row, "version", 0);
    snprintf(before, sizeof(before), "%lld", (long long)(version > 1 ? version - 1 : 1));
    json_t *old_row =
        new_row ? policy_fetch(api, &a, a.words[0], a.words[1] ? a.words[1] : before) : NULL;
    api_close(api);
    if (old_row) {
        snprintf(old_name, sizeof(old_name), "%s@%lld", a.words[0],
                 (long long)json_get_int(old_row, "version", 0));
        snprintf(new_name, sizeof(new_name), "%s@%lld", a.words[0], (long long)version);
        differs = policy_print_diff(old_name, json_object_get(old_row, "document"), new_name,
                                    json_object_get(new_row, "document"));
    }
    int status = !old_row ? 2 : differs ? 0 : 1;
    json_decref(old_row);
    json_decref(new_row);
    return status;
}

int policy_validate(int argc, char **argv)
{
    struct policy_arguments a = {.verb = "validate",
                                 .usage = "FILE",
                                 .doc = "Is this file a policy? Exit 0 when it is; else what is "
                                        "wrong, and where.",
                                 .min_words = 1,
                                 .max_words = 1};
    struct oom_error err = {""};

    if (policy_arguments_parse(&a, argc, argv) != 0)
        return 2;
    json_t *document = policy_read_file(a.words[0], &err);
    if (!document)
        return policy_fail(&a, &err);
    printf("%s: good (policy \"%s\", %zu rungs)\n", a.words[0],
           json_get_string(document, "name", ""),
           json_object_size(json_object_get(document, "rungs")));
    json_decref(document);
    return 0;
}
