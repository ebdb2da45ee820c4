/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl policy: what its verbs share. A verb is a row of the table in policy.c; its function finds
 * the command line parsed and the head at hand. */
#ifndef AGENT_CTL_POLICY_H
#define AGENT_CTL_POLICY_H

#include <jansson.h>
#include <stdbool.h>

#include "agent/ctl/common.h"
#include "oomretry/error.h"
#include "policies/policy_override.h"

#define POLICY_MAX_WORDS 4

struct policy_call {
    const char *verb;
    struct ctl_common common;
    const char *words[POLICY_MAX_WORDS];
    int word_count;
    const char *message;
    bool yes;
    const char *scope, *subject;    /* --partition small: its override; NULL: the policy itself */
    struct policy_override_name is; /* what "relax:partition=small" was taken apart to */
    const char *whom; /* --for user=alice,…: what it comes to; NULL: as it is stored */
    char name[POLICY_OVERRIDE_NAME_ROOM]; /* words[0], or its override "relax:partition=small" */
    struct api *api;                      /* NULL for verbs that ask nobody */
};

/* Prints "oomctl policy VERB: text"; returns 2. */
int policy_fail(const struct policy_call *call, const struct oom_error *err);

/* GET; NULL after an error was printed. New reference. */
json_t *policy_get(const struct policy_call *call, const char *path);

/* One version (NULL: the active one) of call->name with its document; NULL after an error was
 * printed. */
json_t *policy_fetch(const struct policy_call *call, const char *version);

/* What call->name comes to for `call->whom`; NULL after an error was printed. */
json_t *policy_fetch_for(const struct policy_call *call);

/* The active version of call->name, or what a first one begins from: an override without values,
 * a row without a document. NULL after an error was printed. */
json_t *policy_fetch_or_new(const struct policy_call *call);

/* Is this a policy, or an override that fits its policy? Asks the head about the latter. */
int policy_check(const struct policy_call *call, const char *where, const json_t *document,
                 struct oom_error *err);

/* Stores what was made of `base`. Prints the outcome; returns the exit status. */
int policy_store(const struct policy_call *call, const char *name, int64_t base,
                 const json_t *document, const char *message);

/* "yes" to a question on the terminal; false when there is nobody to ask. */
bool policy_confirm(const char *question);

/* Prints the difference of two documents; false when there is none. */
bool policy_print_diff(const char *old_name, const json_t *old_document, const char *new_name,
                       const json_t *new_document);

/* Reads and checks a file; NULL and err, which names line or key. `name` gets the name that it
 * gives itself. */
json_t *policy_read_file(const struct policy_call *call, const char *path, char *name, size_t size,
                         struct oom_error *err);

/* agent/ctl/policy_read.c */
int policy_list(struct policy_call *call);
int policy_show(struct policy_call *call);
int policy_log(struct policy_call *call);
int policy_diff(struct policy_call *call);
int policy_export(struct policy_call *call);
int policy_validate(struct policy_call *call);
/* agent/ctl/policy_change.c */
int policy_set(struct policy_call *call);
int policy_unset(struct policy_call *call);
int policy_import(struct policy_call *call);
int policy_rollback(struct policy_call *call);
int policy_enable(struct policy_call *call);
int policy_disable(struct policy_call *call);
/* agent/ctl/policy_editor.c */
int policy_edit(struct policy_call *call);
/* agent/ctl/policy_backtest.c */
int policy_backtest(struct policy_call *call);

#endif
