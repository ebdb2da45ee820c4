/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl policy: the table of its verbs, and what they share. */
#include "agent/ctl/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/ctl/ctl.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/textdiff.h"
#include "oomretry/policy.h"
#include "policies/policy_edit.h"

static const struct policy_verb {
    const char *name;
    int (*run)(struct policy_call *call);
    const char *help;  /* one line for `oomctl policy --help` */
    const char *words; /* of its command line: "NAME [VERSION]" */
    int min_words, max_words;
    const char *doc;
    bool alone; /* asks no head */
} verbs[] = {
    {"list", policy_list, "the policies and which version of each is active", "", 0, 0,
     "The policies of this database.", false},
    {"show", policy_show, "one policy, or one version of it", "NAME [VERSION]", 1, 2,
     "One policy, the active version unless one is named.", false},
    {"edit", policy_edit, "change a policy in $EDITOR", "NAME", 1, 1,
     "Opens the active version in $VISUAL or $EDITOR, checks it, shows the difference and stores "
     "it as a new version.",
     false},
    {"set", policy_set, "change one value: set relax forward.fewer-tokens.scale 0.75",
     "NAME PATH VALUE", 3, 3,
     "Changes one value. PATH is PHASE.RUNG.KEY on the GPU ladders, DOMAIN.PHASE.RUNG.KEY, "
     "rungs.RUNG.KEY or knobs.KNOB.KEY.",
     false},
    {"validate", policy_validate, "is this file a policy?", "FILE", 1, 1,
     "Is this file a policy? Exit 0 when it is; else what is wrong, and where.", true},
    {"import", policy_import, "store a file as a new version", "FILE", 1, 1,
     "Stores a file as the new active version of the policy that it names.", false},
    {"export", policy_export, "write the active version to standard output", "NAME [VERSION]", 1, 2,
     "Writes a policy to standard output, for `oomctl policy import` elsewhere.", false},
    {"diff", policy_diff, "what differs between two versions", "NAME [OLD [NEW]]", 1, 3,
     "What differs between two versions; without OLD, between the active one and the one before "
     "it. Exit 1 when nothing does.",
     false},
    {"log", policy_log, "who changed what, when and why", "NAME", 1, 1,
     "All versions of a policy, newest first.", false},
    {"rollback", policy_rollback, "make an earlier version active again", "NAME [VERSION]", 1, 2,
     "Makes an earlier version active again (as a new version, so that the log stays whole); "
     "without VERSION, the one before the active one.",
     false},
    {"enable", policy_enable, "let new lineages use a policy", "NAME", 1, 1,
     "Lets new lineages use a policy.", false},
    {"disable", policy_disable, "keep new lineages from using a policy", "NAME", 1, 1,
     "Keeps new lineages from using a policy; those that run go on with it.", false},
    {"backtest", policy_backtest, "what a draft would have decided for stored incidents", "FILE", 1,
     1,
     "Replays stored incidents against a draft and says what would have been decided otherwise. "
     "Nothing is stored. Exit 1 when something would have changed.",
     false},
};

enum { VERBS = sizeof(verbs) / sizeof(verbs[0]) };

static const struct argp_option option_table[] = {
    {"message", 'm', "TEXT", 0, "what the change is for (kept in the log)", 0},
    {"yes", 'y', NULL, 0, "do not ask", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

struct parsing {
    const struct policy_verb *verb;
    struct policy_call *call;
};

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
    case ARGP_KEY_END:
        if (call->word_count < parsing->verb->min_words)
            argp_error(state, "needs %s", parsing->verb->words);
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
    if (!verb->alone && !(call.api = ctl_open(&call.common, &err)))
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

json_t *policy_fetch(const struct policy_call *call, const char *name, const char *version)
{
    struct oom_error err = {""};
    char path[256];
    char *end = NULL;
    long number = version ? strtol(version, &end, 10) : 0;

    if (version && (!*version || *end || number < 1))
        oom_errorf(&err, "\"%s\" is no version (oomctl policy log %s)", version, name);
    else if (strlen(name) > 64 || strpbrk(name, "/?&%# "))
        oom_errorf(&err, "\"%.64s\" is no name of a policy", name);
    else {
        snprintf(path, sizeof(path), "/v1/policies/%s?version=%ld", name, number);
        return policy_get(call, path);
    }
    policy_fail(call, &err);
    return NULL;
}

int policy_store(const struct policy_call *call, const char *name, int64_t base,
                 const json_t *document, const char *message)
{
    struct oom_error err = {""};
    json_t *reply = NULL;
    char path[128];
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

json_t *policy_read_file(const char *path, struct oom_error *err)
{
    json_error_t at;
    json_t *document = json_load_file(path, JSON_REJECT_DUPLICATES, &at);

    if (!document) {
        oom_errorf(err, "%s:%d:%d: %s", path, at.line, at.column, at.text);
        return NULL;
    }
    struct oom_policy *policy = oom_policy_from_json(document, path, err);
    if (!policy) {
        json_decref(document);
        return NULL;
    }
    oom_policy_free(policy);
    return document;
}
