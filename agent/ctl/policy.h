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

#define POLICY_MAX_WORDS 4

struct policy_call {
    const char *verb;
    struct ctl_common common;
    const char *words[POLICY_MAX_WORDS];
    int word_count;
    const char *message;
    bool yes;
    struct api *api; /* NULL for verbs that ask nobody */
};

/* Prints "oomctl policy VERB: text"; returns 2. */
int policy_fail(const struct policy_call *call, const struct oom_error *err);

/* GET; NULL after an error was printed. New reference. */
json_t *policy_get(const struct policy_call *call, const char *path);

/* One version (NULL: the active one) with its document; NULL after an error was printed. */
json_t *policy_fetch(const struct policy_call *call, const char *name, const char *version);

/* Stores what was made of `base`. Prints the outcome; returns the exit status. */
int policy_store(const struct policy_call *call, const char *name, int64_t base,
                 const json_t *document, const char *message);

/* "yes" to a question on the terminal; false when there is nobody to ask. */
bool policy_confirm(const char *question);

/* Prints the difference of two documents; false when there is none. */
bool policy_print_diff(const char *old_name, const json_t *old_document, const char *new_name,
                       const json_t *new_document);

/* Reads and validates a file; NULL and err, which names line or key. */
json_t *policy_read_file(const char *path, struct oom_error *err);

/* agent/ctl/policy_read.c */
int policy_list(struct policy_call *call);
int policy_show(struct policy_call *call);
int policy_log(struct policy_call *call);
int policy_diff(struct policy_call *call);
int policy_export(struct policy_call *call);
int policy_validate(struct policy_call *call);
/* agent/ctl/policy_change.c */
int policy_set(struct policy_call *call);
int policy_import(struct policy_call *call);
int policy_rollback(struct policy_call *call);
int policy_enable(struct policy_call *call);
int policy_disable(struct policy_call *call);
/* agent/ctl/policy_editor.c */
int policy_edit(struct policy_call *call);
/* agent/ctl/policy_backtest.c */
int policy_backtest(struct policy_call *call);

#endif
