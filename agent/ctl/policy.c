/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl policy: the table of its verbs, and what they share. */
#include "agent/ctl/policy.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/ctl/ctl.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/textdiff.h"
#include "oomretry/policy.h"
#include "policies/policy_edit.h"

enum { KEY_JSON = 256, KEY_DB };

static const struct argp_option option_table[] = {
    {"json", KEY_JSON, NULL, 0, "as JSON", 0},
    {"db", KEY_DB, "FILE", 0, "use this database instead of asking the head", 0},
    {"message", 'm', "TEXT", 0, "what the change is for (kept in the log)", 0},
    {"yes", 'y', NULL, 0, "do not ask", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct policy_arguments *a = state->input;

    switch (key) {
    case KEY_JSON:
        a->json = true;
        return 0;
    case KEY_DB:
        a->db_path = arg;
        return 0;
    case 'm':
        a->message = arg;
        return 0;
    case 'y':
        a->yes = true;
        return 0;
    case ARGP_KEY_ARG:
        if (a->word_count == a->max_words)
            argp_error(state, "too many arguments: \"%s\"", arg);
        a->words[a->word_count++] = arg;
        return 0;
    case ARGP_KEY_END:
        if (a->word_count < a->min_words)
            argp_error(state, "needs %s", a->usage);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int policy_arguments_parse(struct policy_arguments *a, int argc, char **argv)
{
    const struct argp argp = {option_table, parse_option, a->usage, a->doc, NULL, NULL, NULL};

    return argp_parse(&argp, argc, argv, 0, NULL, a) == 0 ? 0 : 2;
}

int policy_fail(const struct policy_arguments *a, const struct oom_error *err)
{
    fprintf(stderr, "oomctl policy %s: %s\n", a->verb, err->text);
    return 2;
}

json_t *policy_fetch(struct api *api, const struct policy_arguments *a, const char *name,
                     const char *version)
{
    struct oom_error err = {""};
    json_t *reply = NULL;
    char path[256];
    char *end = NULL;
    long number = version ? strtol(version, &end, 10) : 0;

    if (version && (!*version || *end || number < 1)) {
        oom_errorf(&err, "\"%s\" is no version (oomctl policy log %s)", version, name);
    } else if (strlen(name) > 64 || strpbrk(name, "/?&%# ")) {
        oom_errorf(&err, "\"%.64s\" is no name of a policy", name);
    } else {
        snprintf(path, sizeof(path), "/v1/policies/%s?version=%ld", name, number);
        if (api_call(api, "GET", path, NULL, &reply, &err) == 200)
            return reply;
    }
    json_decref(reply);
    policy_fail(a, &err);
    return NULL;
}

int policy_store(struct api *api, const struct policy_arguments *a, const char *name, int64_t base,
                 const json_t *document, const char *message)
{
    struct oom_error err = {""};
    json_t *reply = NULL;
    char path[128];
    json_t *body = json_pack("{s:I, s:s, s:O}", "base", (json_int_t)base, "message", message,
                             "document", document);

    snprintf(path, sizeof(path), "/v1/policies/%s", name);
    int status = body ? api_call(api, "POST", path, body, &reply, &err) : -1;
    json_decref(body);
    if (status == 200)
        printf("%s: version %lld is active now; lineages that are running keep theirs\n", name,
               (long long)json_get_int(reply, "version", 0));
    json_decref(reply);
    return status == 200 ? 0 : policy_fail(a, &err);
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

static const struct ctl_verb verbs[] = {
    {"list", policy_list, "the policies and which version of each is active"},
    {"show", policy_show, "one policy, or one version of it"},
    {"edit", policy_edit, "change a policy in $EDITOR"},
    {"set", policy_set, "change one value: set relax forward.fewer-tokens.scale 0.75"},
    {"validate", policy_validate, "is this file a policy?"},
    {"import", policy_import, "store a file as a new version"},
    {"export", policy_export, "write the active version to standard output"},
    {"diff", policy_diff, "what differs between two versions"},
    {"log", policy_log, "who changed what, when and why"},
    {"rollback", policy_rollback, "make an earlier version active again"},
    {"enable", policy_enable, "let new lineages use a policy"},
    {"disable", policy_disable, "keep new lineages from using a policy"},
    {"backtest", policy_backtest, "what a draft would have decided for stored incidents"},
    {NULL, NULL, NULL},
};

int ctl_policy(int argc, char **argv)
{
    return ctl_dispatch("oomctl policy", verbs, argc, argv);
}
