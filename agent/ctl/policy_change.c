/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl policy set, import, rollback, enable, disable. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ctl/ctl.h"
#include "agent/ctl/policy.h"
#include "agent/lib/jsonget.h"
#include "oomretry/policy.h"
#include "policies/policy_edit.h"

/* Validates, shows the difference and stores. */
static int change(struct api *api, const struct policy_arguments *a, const char *name,
                  const json_t *row, const json_t *document, const char *message)
{
    struct oom_error err = {""};
    struct oom_policy *policy = oom_policy_from_json(document, name, &err);

    if (!policy)
        return policy_fail(a, &err);
    oom_policy_free(policy);
    if (row && !policy_print_diff("active", json_object_get(row, "document"), "new", document)) {
        printf("%s: nothing changes\n", name);
        return 0;
    }
    return policy_store(api, a, name, json_get_int(row, "version", 0), document, message);
}

int policy_set(int argc, char **argv)
{
    struct policy_arguments a = {
        .verb = "set",
        .usage = "NAME PATH VALUE",
        .doc = "Changes one value. PATH is PHASE.RUNG.KEY on the GPU ladders, "
               "DOMAIN.PHASE.RUNG.KEY, rungs.RUNG.KEY or knobs.KNOB.KEY.",
        .min_words = 3,
        .max_words = 3};
    struct oom_error err = {""};
    char message[256];

    if (policy_arguments_parse(&a, argc, argv) != 0)
        return 2;
    struct api *api = api_open_default(a.db_path, CTL_TIMEOUT_MS, &err);
    if (!api)
        return policy_fail(&a, &err);
    json_t *row = policy_fetch(api, &a, a.words[0], NULL);
    json_t *document = row ? json_deep_copy(json_object_get(row, "document")) : NULL;
    int status = 2;
    if (document && policy_edit_set(document, a.words[1], a.words[2], &err) != 0) {
        policy_fail(&a, &err);
    } else if (document) {
        snprintf(message, sizeof(message), "%.120s = %.120s", a.words[1], a.words[2]);
        status = change(api, &a, a.words[0], row, document, a.message ? a.message : message);
    }
    json_decref(document);
    json_decref(row);
    api_close(api);
    return status;
}

int policy_import(int argc, char **argv)
{
    struct policy_arguments a = {
        .verb = "import",
        .usage = "FILE",
        .doc = "Stores a file as the new active version of the policy that it names.",
        .min_words = 1,
        .max_words = 1};
    struct oom_error err = {""};
    char path[160];
    json_t *row = NULL;

    if (policy_arguments_parse(&a, argc, argv) != 0)
        return 2;
    json_t *document = policy_read_file(a.words[0], &err);
    struct api *api = document ? api_open_default(a.db_path, CTL_TIMEOUT_MS, &err) : NULL;
    if (!api) {
        json_decref(document);
        return policy_fail(&a, &err);
    }
    const char *name = json_get_string(document, "name", "");
    snprintf(path, sizeof(path), "/v1/policies/%s", name);
    if (api_call(api, "GET", path, NULL, &row, &err) != 200) {
        json_decref(row);
        row = NULL; /* a new one */
    }
    int status = change(api, &a, name, row, document, a.message ? a.message : "imported");
    json_decref(row);
    json_decref(document);
    api_close(api);
    return status;
}

/* POST without anything to read but the outcome. */
static int act(struct policy_arguments *a, const char *verb, json_t *body)
{
    struct oom_error err = {""};
    json_t *reply = NULL;
    char path[160];
    struct api *api = api_open_default(a->db_path, CTL_TIMEOUT_MS, &err);

    snprintf(path, sizeof(path), "/v1/policies/%.64s/%s", a->words[0], verb);
    int status = api ? api_call(api, "POST", path, body, &reply, &err) : -1;
    api_close(api);
    json_decref(body);
    if (status == 200 && json_object_get(reply, "version"))
        printf("%s: version %lld is active now\n", a->words[0],
               (long long)json_get_int(reply, "version", 0));
    else if (status == 200)
        printf("%s: %sd\n", a->words[0], verb);
    json_decref(reply);
    return status == 200 ? 0 : policy_fail(a, &err);
}

int policy_rollback(int argc, char **argv)
{
    struct policy_arguments a = {
        .verb = "rollback",
        .usage = "NAME [VERSION]",
        .doc = "Makes an earlier version active again (as a new version, so that the log stays "
               "whole); without VERSION, the one before the active one.",
        .min_words = 1,
        .max_words = 2};

    if (policy_arguments_parse(&a, argc, argv) != 0)
        return 2;
    return act(&a, "rollback",
               json_pack("{s:I}", "version", (json_int_t)(a.words[1] ? atoll(a.words[1]) : 0)));
}

int policy_enable(int argc, char **argv)
{
    struct policy_arguments a = {.verb = "enable",
                                 .usage = "NAME",
                                 .doc = "Lets new lineages use a policy.",
                                 .min_words = 1,
                                 .max_words = 1};

    return policy_arguments_parse(&a, argc, argv) != 0 ? 2 : act(&a, "enable", NULL);
}

int policy_disable(int argc, char **argv)
{
    struct policy_arguments a = {.verb = "disable",
                                 .usage = "NAME",
                                 .doc = "Keeps new lineages from using a policy; those that run "
                                        "go on with it.",
                                 .min_words = 1,
                                 .max_words = 1};

    return policy_arguments_parse(&a, argc, argv) != 0 ? 2 : act(&a, "disable", NULL);
}
