/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl policy: the table of its verbs, and what they share. */
#include "agent/ctl/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/ctl/ctl.h"
#include "agent/ctl/scope.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/textdiff.h"
#include "oomretry/policy.h"
#include "policies/policy_edit.h"

/* What a verb understands beside its words. */
enum {
    ALONE = 1, /* asks no head */
    SCOPE = 2, /* --partition, --account, --user: the override is meant */
    WHOM = 4,  /* --for: what the policy comes to */
};

static const struct policy_verb {
    const char *name;
    int (*run)(struct policy_call *call);
    const char *help;  /* one line for `oomctl policy --help` */
    const char *words; /* of its command line: "NAME [VERSION]" */
    int min_words, max_words;
    int flags;
    const char *doc;
} verbs[] = {
    {"list", policy_list, "the policies and which version of each is active", "", 0, 0, 0,
     "The policies of this database, and their overrides."},
    {"show", policy_show, "one policy, or one version of it", "NAME [VERSION]", 1, 2, SCOPE | WHOM,
     "One policy, the active version unless one is named."},
    {"edit", policy_edit, "change a policy in $EDITOR", "NAME", 1, 1, SCOPE,
     "Opens the active version in $VISUAL or $EDITOR, checks it, shows the difference and stores "
     "it as a new version."},
    {"set", policy_set, "change one value: set relax forward.fewer-tokens.scale 0.75",
     "NAME PATH VALUE", 3, 3, SCOPE,
     "Changes one value. PATH is PHASE.RUNG.KEY on the GPU ladders, DOMAIN.PHASE.RUNG.KEY, "
     "rungs.RUNG.KEY, knobs.KNOB.KEY, resume.KEY, own_restarts.KEY, "
     "max_retries or consent."},
    {"unset", policy_unset, "take a value of an override away", "NAME [PATH]", 1, 2, SCOPE,
     "Takes one value of an override away, or without PATH all of them: what is below it (user, "
     "account, partition, policy) counts again."},
    {"validate", policy_validate, "is this file a policy?", "FILE", 1, 1, ALONE,
     "Is this file a policy, or an override of one? Exit 0 when it is; else what is wrong, and "
     "where."},
    {"import", policy_import, "store a file as a new version", "FILE", 1, 1, 0,
     "Stores a file as the new active version of the policy or override that it names."},
    {"export", policy_export, "write the active version to standard output", "NAME [VERSION]", 1, 2,
     SCOPE | WHOM, "Writes a policy to standard output, for `oomctl policy import` elsewhere."},
    {"diff", policy_diff, "what differs between two versions", "NAME [OLD [NEW]]", 1, 3,
     SCOPE | WHOM,
     "What differs between two versions; without OLD, between the active one and the one before "
     "it; with --for, between the policy and what it comes to. Exit 1 when nothing does."},
    {"log", policy_log, "who changed what, when and why", "NAME", 1, 1, SCOPE,
     "All versions of a policy, newest first."},
    {"rollback", policy_rollback, "make an earlier version active again", "NAME [VERSION]", 1, 2,
     SCOPE,
     "Makes an earlier version active again (as a new version, so that the log stays whole); "
     "without VERSION, the one before the active one."},
    {"enable", policy_enable, "let new lineages use a policy", "NAME", 1, 1, SCOPE,
     "Lets new lineages use a policy: all, or those of a partition, account or user."},
    {"disable", policy_disable, "keep new lineages from using a policy", "NAME", 1, 1, SCOPE,
     "Keeps new lineages from using a policy: all, or those of a partition, account or user. Those "
     "that run go on with it."},
    {"backtest", policy_backtest, "what a draft would have decided for stored incidents", "FILE", 1,
     1, 0,
     "Replays stored incidents against a draft of a policy or an override and says what would have "
     "been decided otherwise. Nothing is stored. Exit 1 when something would have changed."},
};

enum { KEY_PARTITION = 256, KEY_ACCOUNT, KEY_USER, KEY_FOR };

enum { VERBS = sizeof(verbs) / sizeof(verbs[0]) };

static const struct argp_option option_table[] = {
    {"message", 'm', "TEXT", 0, "what the change is for (kept in the log)", 0},
    {"yes", 'y', NULL, 0, "do not ask", 0},
    {"partition", KEY_PARTITION, "P", 0, "what is different for this partition", 0},
    {"account", KEY_ACCOUNT, "A", 0, "what is different for this account", 0},
    {"user", KEY_USER, "U", 0, "what is different for this user", 0},
    {"for", KEY_FOR, "WHOM", 0, "what it comes to for user=U,account=A,partition=P", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

struct parsing {
    const struct policy_verb *verb;
    struct policy_call *call;
};

static void take_scope(struct argp_state *state, const struct parsing *parsing, const char *scope,
                       const char *subject)
{
    if (!(parsing->verb->flags & SCOPE))
        argp_error(state, "has nothing to do with one %s", scope);
    if (parsing->call->scope)
        argp_error(state, "an override is for one of --partition, --account and --user");
    parsing->call->scope = scope;
    parsing->call->subject = subject;
}

/* What is meant by the words together. */
static void settle(struct argp_state *state, const struct parsing *parsing)
{
    struct policy_call *call = parsing->call;
    struct oom_error err = {""};

    if (call->word_count < parsing->verb->min_words)
        argp_error(state, "needs %s", parsing->verb->words);
    if (call->word_count && (parsing->verb->flags & SCOPE) &&
        policy_override_is_name(call->words[0])) {
        if (policy_override_parse(call->words[0], &call->is, &err) < 0)
            argp_error(state, "%s", err.text);
        call->words[0] = call->is.policy;
        take_scope(state, parsing, call->is.scope, call->is.subject);
    }
    if (call->scope && call->whom)
        argp_error(state, "--for %s, or the override of one %s?", call->whom, call->scope);
    if (call->whom && call->word_count > 1)
        argp_error(state, "--for looks at the active versions");
    if (call->scope && policy_override_format(call->words[0], call->scope, call->subject,
                                              call->name, sizeof(call->name), &err) < 0)
        argp_error(state, "%s", err.text);
    if (!call->scope && call->word_count)
        snprintf(call->name, sizeof(call->name), "%s", call->words[0]);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct parsing *parsing = state->input;
    struct policy_call *call = parsing->call;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &call->common;
        return 0;
    case 'm':
        call->message = arg;
        return 0;
    case 'y':
        call->yes = true;
        return 0;
    case ARGP_KEY_ARG:
        if (call->word_count == parsing->verb->max_words)
            argp_error(state, "too many arguments: \"%s\"", arg);
        call->words[call->word_count++] = arg;
        return 0;
    case KEY_PARTITION:
        take_scope(state, parsing, "partition", arg);
        return 0;
    case KEY_ACCOUNT:
        take_scope(state, parsing, "account", arg);
        return 0;
    case KEY_USER:
        take_scope(state, parsing, "user", arg);
        return 0;
    case KEY_FOR:
        if (!(parsing->verb->flags & WHOM))
            argp_error(state, "--for is for show, export and diff");
        call->whom = arg;
        return 0;
    case ARGP_KEY_END:
        settle(state, parsing);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int run(const struct policy_verb *verb, int argc, char **argv)
{
    const struct argp argp = {.options = option_table,
                              .parser = parse_option,
                              .args_doc = verb->words,
                              .doc = verb->doc,
                              .children = ctl_common_options};
    struct policy_call call = {.verb = verb->name};
    struct parsing parsing = {verb, &call};
    struct oom_error err = {""};

    if (argp_parse(&argp, argc, argv, 0, NULL, &parsing) != 0)
        return 2;
    if (!(verb->flags & ALONE) && !(call.api = ctl_open(&call.common, &err)))
        return policy_fail(&call, &err);
    int status = verb->run(&call);
    api_close(call.api);
    return status;
}

int ctl_policy(int argc, char **argv)
{
    struct ctl_verb table[VERBS + 1] = {0};
    int status;

    for (size_t i = 0; i < VERBS; i++)
        table[i] = (struct ctl_verb){verbs[i].name, NULL, verbs[i].help};
    const struct ctl_verb *chosen = ctl_choose("oomctl policy", table, argc, argv, &status);
    return chosen ? run(&verbs[chosen - table], argc - 1, argv + 1) : status;
}

/* --- what the verbs share -----------------------------------------------------------------------
 */

int policy_fail(const struct policy_call *call, const struct oom_error *err)
{
    fprintf(stderr, "oomctl policy %s: %s\n", call->verb, err->text);
    return 2;
}

json_t *policy_get(const struct policy_call *call, const char *path)
{
    struct oom_error err = {""};
    json_t *reply = NULL;

    if (api_call(call->api, "GET", path, NULL, &reply, &err) == 200)
        return reply;
    json_decref(reply);
    policy_fail(call, &err);
    return NULL;
}

static int path_of(const struct policy_call *call, char *path, size_t size, struct oom_error *err)
{
    if (strlen(call->name) >= POLICY_OVERRIDE_NAME_ROOM - 1 || strpbrk(call->name, "/?&%# "))
        return oom_errorf(err, "\"%.64s\" is no name of a policy", call->name);
    snprintf(path, size, "/v1/policies/%s", call->name);
    return 0;
}

json_t *policy_fetch(const struct policy_call *call, const char *version)
{
    struct oom_error err = {""};
    char path[256];
    char *end = NULL;
    long number = version ? strtol(version, &end, 10) : 0;

    if (version && (!*version || *end || number < 1)) {
        oom_errorf(&err, "\"%s\" is no version (oomctl policy log %s)", version, call->words[0]);
    } else if (path_of(call, path, sizeof(path), &err) == 0) {
        snprintf(path + strlen(path), sizeof(path) - strlen(path), "?version=%ld", number);
        return policy_get(call, path);
    }
    policy_fail(call, &err);
    return NULL;
}

json_t *policy_fetch_for(const struct policy_call *call)
{
    struct oom_error err = {""};
    char path[512];
    json_t *scope = ctl_scope_parse(call->whom, &err), *reply = NULL;

    if (!scope || path_of(call, path, sizeof(path), &err) < 0 ||
        ctl_scope_add(path, sizeof(path), scope) < 0)
        policy_fail(call, &err);
    else
        reply = policy_get(call, path);
    json_decref(scope);
    return reply;
}

json_t *policy_fetch_or_new(const struct policy_call *call)
{
    struct oom_error err = {""};
    json_t *reply = NULL;
    char path[256];

    if (path_of(call, path, sizeof(path), &err) == 0) {
        int status = api_call(call->api, "GET", path, NULL, &reply, &err);
        if (status == 200)
            return reply;
        json_decref(reply);
        if (status == 404 && call->scope)
            return json_pack("{s:i, s:{s:s, s:{s:s}, s:{}}}", "version", 0, "document", "policy",
                             call->words[0], "for", call->scope, call->subject, "set");
    }
    policy_fail(call, &err);
    return NULL;
}

int policy_store(const struct policy_call *call, const char *name, int64_t base,
                 const json_t *document, const char *message)
{
    struct oom_error err = {""};
    json_t *reply = NULL;
    char path[192];
    json_t *body = json_pack("{s:I, s:s, s:O}", "base", (json_int_t)base, "message", message,
                             "document", document);

    snprintf(path, sizeof(path), "/v1/policies/%s", name);
    int status = body ? api_call(call->api, "POST", path, body, &reply, &err) : -1;
    json_decref(body);
    if (status == 200)
        printf("%s: version %lld is active now; lineages that are running keep theirs\n", name,
               (long long)json_get_int(reply, "version", 0));
    json_decref(reply);
    return status == 200 ? 0 : policy_fail(call, &err);
}

bool policy_confirm(const char *question)
{
    char answer[16];

    if (!isatty(STDIN_FILENO))
        return false;
    fprintf(stderr, "%s [y/N] ", question);
    return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

bool policy_print_diff(const char *old_name, const json_t *old_document, const char *new_name,
                       const json_t *new_document)
{
    char *old_text = policy_edit_text(old_document);
    char *new_text = policy_edit_text(new_document);
    char *diff = old_text && new_text
                     ? textdiff_unified(old_name, new_name, old_text, strlen(old_text), new_text,
                                        strlen(new_text))
                     : NULL;
    bool differs = diff && *diff;

    if (differs)
        fputs(diff, stdout);
    free(diff);
    free(old_text);
    free(new_text);
    return differs;
}

int policy_check(const struct policy_call *call, const char *where, const json_t *document,
                 struct oom_error *err)
{
    char name[POLICY_OVERRIDE_NAME_ROOM], path[192];
    json_t *reply = NULL;

    if (!policy_override_is(document)) {
        struct oom_policy *policy = oom_policy_from_json(document, where, err);
        oom_policy_free(policy);
        return policy ? 0 : -1;
    }
    if (policy_override_name_of(document, name, sizeof(name), err) < 0)
        return -1;
    struct api *api = call->api ? call->api : ctl_open(&call->common, err);
    snprintf(path, sizeof(path), "/v1/policies/%s/check", name);
    json_t *body = json_pack("{s:O}", "document", document);
    int status = api ? api_call(api, "POST", path, body, &reply, err) : -1;
    json_decref(body);
    json_decref(reply);
    if (!call->api)
        api_close(api);
    return status == 200 ? 0 : -1;
}

json_t *policy_read_file(const struct policy_call *call, const char *path, char *name, size_t size,
                         struct oom_error *err)
{
    json_error_t at;
    json_t *document = json_load_file(path, JSON_REJECT_DUPLICATES, &at);

    if (!document) {
        oom_errorf(err, "%s:%d:%d: %s", path, at.line, at.column, at.text);
        return NULL;
    }
    if (policy_check(call, path, document, err) < 0) {
        json_decref(document);
        return NULL;
    }
    if (policy_override_is(document))
        policy_override_name_of(document, name, size, NULL);
    else
        snprintf(name, size, "%s", json_get_string(document, "name", ""));
    return document;
}
