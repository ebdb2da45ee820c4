/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl plan: the next decision for a script and its logs, offline; the same code that decides on
 * the cluster. */
#include <stdlib.h>
#include <string.h>

#include "agent/ctl/common.h"
#include "agent/ctl/ctl.h"
#include "agent/ctl/lineage_text.h"
#include "agent/ctl/offline.h"
#include "agent/ctl/scope.h"
#include "agent/evidence/diagnose.h"
#include "agent/lib/files.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/policy_set.h"
#include "agent/lib/rewritten.h"
#include "oomretry/decide.h"
#include "oomretry/dump.h"

extern char **environ;

enum {
    KEY_POLICY = 256,
    KEY_APPLIED,
    KEY_EXIT,
    KEY_SIGNAL,
    KEY_STATE,
    KEY_SCRIPT,
    KEY_ALLOW,
    KEY_MODE,
    KEY_FACT,
    KEY_FOR,
    MAX_LOGS = 256,
    MAX_APPLIED = 32,
    MAX_FACTS = 32,
    MAX_SCRIPT_BYTES = 8 * 1024 * 1024,
    MAX_REFUSED = 32
};

static const struct argp_option option_table[] = {
    {"script", KEY_SCRIPT, "S", 0, "the launch script as it was submitted", 0},
    {"policy", KEY_POLICY, "P", 0, "use this policy (default: auto)", 0},
    {"applied", KEY_APPLIED, "RUNG", 0, "this rung was tried before; may be repeated, in order", 0},
    {"exit-code", KEY_EXIT, "N", 0, "how the job ended", 0},
    {"signal", KEY_SIGNAL, "N", 0, "the signal that ended it", 0},
    {"state", KEY_STATE, "S", 0, "the scheduler's state, such as OUT_OF_MEMORY", 0},
    {"allow", KEY_ALLOW, "WHAT", 0, "training: also rungs that change what is trained", 0},
    {"mode", KEY_MODE, "MODE", 0, "auto, inplace, requeue or resubmit", 0},
    {"for", KEY_FOR, "WHOM", 0,
     "whose overrides count: user=U,account=A,partition=P (default: your own)", 0},
    {"fact", KEY_FACT, "NAME=VALUE", 0,
     "something the scheduler knows, such as slurm.mem_max_mib=500000", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

struct arguments {
    struct ctl_common common;
    const char *script, *policy, *allow, *mode;
    const char *logs[MAX_LOGS + 1];
    size_t log_count;
    const char *applied[MAX_APPLIED];
    size_t applied_count;
    char *facts[MAX_FACTS];
    size_t fact_count;
    json_t *whom;
    struct oom_exit exit;
};

static int number(struct argp_state *state, const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (end == text || *end || value < 0 || value > 65535)
        argp_error(state, "\"%s\" is not a whole number from 0 to 65535", text);
    return (int)value;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct arguments *a = state->input;
    struct oom_error err = {""};
    enum oom_mode mode;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->common;
        return 0;
    case KEY_SCRIPT:
        a->script = arg;
        return 0;
    case KEY_POLICY:
        a->policy = arg;
        return 0;
    case KEY_ALLOW:
        a->allow = arg;
        return 0;
    case KEY_MODE:
        if (oom_mode_parse(arg, &mode) < 0)
            argp_error(state, "--mode is one of auto, inplace, requeue, resubmit, not \"%s\"", arg);
        a->mode = arg;
        return 0;
    case KEY_EXIT:
        a->exit.exit_code = number(state, arg);
        return 0;
    case KEY_SIGNAL:
        a->exit.signal = number(state, arg);
        return 0;
    case KEY_STATE:
        snprintf(a->exit.state, sizeof(a->exit.state), "%s", arg);
        return 0;
    case KEY_APPLIED:
        if (a->applied_count == MAX_APPLIED)
            argp_error(state, "more than %d times --applied", MAX_APPLIED);
        a->applied[a->applied_count++] = arg;
        return 0;
    case KEY_FACT:
        if (a->fact_count == MAX_FACTS || !strchr(arg, '='))
            argp_error(state, "--fact takes NAME=VALUE, at most %d times", MAX_FACTS);
        a->facts[a->fact_count++] = arg;
        return 0;
    case KEY_FOR:
        json_decref(a->whom);
        a->whom = ctl_scope_parse(arg, &err);
        if (!a->whom)
            argp_error(state, "--for: %s", err.text);
        return 0;
    case ARGP_KEY_ARG:
        if (a->log_count == MAX_LOGS)
            argp_error(state, "more than %d logs", MAX_LOGS);
        a->logs[a->log_count++] = arg;
        return 0;
    case ARGP_KEY_END:
        if (!a->script)
            argp_error(state, "--script S is missing: which script was run?");
        if (a->log_count == 0)
            argp_error(state, "no log: name the job's output");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static struct oom_script *open_script(const struct arguments *a, struct offline *offline,
                                      char **bytes, size_t *length, struct oom_error *err)
{
    struct oom_script_source source = {.name = "script",
                                       .environ_list = (const char *const *)environ,
                                       .read_side = offline_read_side,
                                       .read_side_arg = offline,
                                       .place_copy = offline_place_copy,
                                       .place_copy_arg = offline};

    if (file_read(a->script, MAX_SCRIPT_BYTES, bytes, length, err) < 0)
        return NULL;
    source.bytes = *bytes;
    source.length = *length;
    char *directory = file_directory(a->script);
    source.directory = directory;
    struct oom_script *script = oom_script_parse(&source, err);
    free(directory);
    return script;
}

static json_t *plan_body(const struct arguments *a, const struct oom_incident *incident,
                         const struct oom_values *values, const char *framework,
                         const json_t *refused)
{
    json_t *applied = json_array();

    for (size_t i = 0; i < a->applied_count; i++)
        json_array_append_new(applied, json_string(a->applied[i]));
    return json_pack("{s:o, s:o, s:s, s:o, s:O, s:O?, s:{s:s, s:s, s:s}}", "incident",
                     oom_incident_to_json(incident), "values", oom_values_to_json(values),
                     "framework", framework, "applied", applied, "refused", refused, "for", a->whom,
                     "options", "policy", a->policy, "allow", a->allow, "mode", a->mode);
}

/* Where each edit of this step was written, and the diff against what was submitted. */
static int rewrite(const struct oom_script *script, const struct oom_policy *policy,
                   const char *bytes, size_t length, json_t *reply, struct oom_error *err)
{
    struct oom_edits total = {NULL, 0}, inside = {NULL, 0};
    struct oom_rewrite out = {0};
    json_t *edit;
    size_t i;
    int rc = oom_edits_from_json(json_object_get(reply, "total_edits"), &total);

    for (size_t k = 0; rc == 0 && k < total.count; k++)
        if (strncmp(total.items[k].knob, "slurm:", 6) != 0 &&
            strncmp(total.items[k].knob, "ray:", 4) != 0)
            rc = oom_edits_add(&inside, total.items[k].knob, total.items[k].old_value,
                               total.items[k].new_value, NULL);
    if (rc == 0 && inside.count)
        rc = oom_script_apply(script, policy, &inside, &out, err);
    if (rc == 0 && out.bytes) {
        char *diff = rewritten_diff("script", bytes, length, &out);
        json_object_set_new(reply, "diff", json_string(diff ? diff : ""));
        free(diff);
    }
    json_array_foreach(
        json_object_get(reply, "edits"), i,
        edit) for (size_t k = 0; rc == 0 && k < out.edits.count;
                   k++) if (out.edits.items[k].where &&
                            strcmp(out.edits.items[k].knob, json_get_string(edit, "knob", "")) == 0)
        json_object_set_new(edit, "where", json_string(out.edits.items[k].where));
    oom_rewrite_free(&out);
    oom_edits_free(&total);
    oom_edits_free(&inside);
    return rc;
}

static json_t *stop_reply(const char *reason)
{
    return json_pack("{s:s, s:s, s:[], s:[], s:s}", "action", "stop", "reason", reason, "edits",
                     "skipped", "diff", "");
}

/* What the framework printed of its own settings; a log that cannot be read twice has none. */
static void dumped_values(const char *path, const struct oom_policy *policy,
                          struct oom_values *values)
{
    struct oom_values found = {NULL, 0};
    char *bytes = NULL;
    size_t length = 0;

    if (file_read(path, OOM_DUMP_BYTES, &bytes, &length, NULL) >= 0 &&
        oom_dump_values(policy, bytes, length, &found) == 0)
        oom_values_fill(values, &found, OOM_SOURCE_LOG);
    oom_values_free(&found);
    free(bytes);
}

/* The same loop as a supervisor's: a rung that cannot be written is refused, and the next asked. */
static json_t *ask(const struct arguments *a, struct api *api, const struct oom_script *script,
                   const char *bytes, size_t length, const struct oom_incident *incident,
                   struct oom_error *err)
{
    struct policy_set set;
    struct oom_values values = {NULL, 0};
    json_t *refused = json_array(), *reply = NULL;
    char path[512] = "/v1/plan/policies";

    if (ctl_scope_add(path, sizeof(path), a->whom) < 0 ||
        policy_set_fetch(api, path, &set, err) < 0) {
        json_decref(refused);
        return NULL;
    }
    char nearest[96] = "";
    const char *missed = policy_set_misses(&set, a->policy, nearest, sizeof(nearest));
    int index = policy_set_choose(&set, script, a->policy, incident->framework);
    const struct oom_policy *policy = index >= 0 && !missed ? set.items[index] : NULL;
    if (!policy) {
        oom_errorf(err, "there is no policy \"%s\"%s (oomctl policy list shows them)", a->policy,
                   nearest);
        goto out;
    }
    if (oom_script_values(script, policy, &values, err) < 0)
        goto out;
    for (size_t i = 0; i < a->log_count; i++)
        dumped_values(a->logs[i], policy, &values);
    for (size_t i = 0; i < a->fact_count; i++) {
        char *equals = strchr(a->facts[i], '=');
        *equals = '\0';
        oom_values_set(&values, a->facts[i], equals + 1, OOM_SOURCE_SCHEDULER, NULL);
        *equals = '=';
    }
    for (int i = 0; i < MAX_REFUSED; i++) {
        struct oom_error why = {""};
        json_t *body = plan_body(a, incident, &values, oom_policy_name(policy), refused);
        json_decref(reply);
        reply = NULL;
        int status = api_call(api, "POST", "/v1/plan", body, &reply, err);
        json_decref(body);
        if (status != 200) {
            json_decref(reply);
            reply = NULL;
            break;
        }
        if (strcmp(json_get_string(reply, "action", ""), "retry") != 0 ||
            rewrite(script, policy, bytes, length, reply, &why) == 0)
            break;
        json_array_append_new(
            refused,
            json_pack("{s:s, s:s}", "rung", json_get_string(reply, "rung", ""), "why", why.text));
    }
out:
    oom_values_free(&values);
    policy_set_free(&set);
    json_decref(refused);
    return reply;
}

static void print_plan(const json_t *reply, const struct oom_incident *incident)
{
    char policy[400];
    json_t *item;
    size_t i;

    printf("%s\n", incident->summary);
    lineage_policy(reply, policy, sizeof(policy));
    if (strcmp(json_get_string(reply, "action", ""), "retry") == 0)
        printf("next: rung %s of %s (%s, %s: %s)\n", json_get_string(reply, "rung", ""), policy,
               json_get_string(reply, "kind", ""), json_get_string(reply, "mode", ""),
               json_get_string(reply, "mode_why", ""));
    else
        printf("no retry\n");
    printf("why: %s\n", json_get_string(reply, "reason", ""));
    json_array_foreach(json_object_get(reply, "edits"), i, item) printf(
        "  %s: %s -> %s%s%s\n", json_get_string(item, "knob", ""),
        json_get_string(item, "old", "(not set)"), json_get_string(item, "new", "(removed)"),
        json_get_string(item, "where", NULL) ? "   at " : "", json_get_string(item, "where", ""));
    json_array_foreach(json_object_get(reply, "skipped"), i, item) printf(
        "  skipped %s: %s\n", json_get_string(item, "rung", ""), json_get_string(item, "why", ""));
    if (*json_get_string(reply, "advice", ""))
        printf("what could be done: %s\n", json_get_string(reply, "advice", ""));
    printf("%s", json_get_string(reply, "diff", ""));
}

int ctl_plan(int argc, char **argv)
{
    static const struct argp argp = {option_table,
                                     parse_option,
                                     "LOG...",
                                     "What would be changed next, from a launch script and the "
                                     "logs of its failed run. Changes nothing.",
                                     ctl_common_options,
                                     NULL,
                                     NULL};
    struct arguments a = {.policy = "auto", .allow = "", .mode = "auto"};
    struct oom_error err = {""};
    struct offline offline = {0};
    struct oom_incident incident;
    struct oom_script *script = NULL;
    struct api *api = NULL;
    json_t *reply = NULL;
    char *bytes = NULL;
    size_t length = 0;
    int status = 2;

    oom_exit_init(&a.exit);
    oom_incident_init(&incident);
    if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0)
        return 2;
    if (diagnose_files(a.logs, a.log_count, &a.exit, &incident, &err) < 0)
        goto fail;
    offline.script = a.script;
    script = open_script(&a, &offline, &bytes, &length, &err);
    if (!script)
        goto fail;
    if (!incident.oom) {
        char reason[320];
        snprintf(reason, sizeof(reason), "not out of memory: %s", incident.summary);
        reply = stop_reply(reason);
    } else {
        api = ctl_open(&a.common, &err);
        reply = api ? ask(&a, api, script, bytes, length, &incident, &err) : NULL;
        if (!reply)
            goto fail;
    }
    if (!json_object_get(reply, "diff"))
        json_object_set_new(reply, "diff", json_string(""));
    json_object_set_new(reply, "incident", oom_incident_to_json(&incident));
    if (a.common.json)
        ctl_print_json(reply);
    else
        print_plan(reply, &incident);
    status = strcmp(json_get_string(reply, "action", ""), "retry") == 0 ? 0 : 1;
    goto out;
fail:
    ctl_fail("plan", &err);
out:
    json_decref(a.whom);
    json_decref(reply);
    api_close(api);
    oom_script_free(script);
    oom_incident_free(&incident);
    free(bytes);
    return status;
}
