/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl policy: what its verbs share. */
#ifndef AGENT_CTL_POLICY_H
#define AGENT_CTL_POLICY_H

#include <jansson.h>
#include <stdbool.h>

#include "agent/lib/api.h"
#include "oomretry/error.h"

#define POLICY_MAX_WORDS 4

/* A verb's command line: options common to all verbs, and up to four words. */
struct policy_arguments {
    const char *verb;
    const char *usage; /* its words, for messages: "NAME [VERSION]" */
    const char *doc;
    int min_words, max_words;
    const char *words[POLICY_MAX_WORDS];
    int word_count;
    const char *db_path;
    const char *message;
    bool json;
    bool yes;
};

/* 0, or the exit status (2) after the error has been printed. */
int policy_arguments_parse(struct policy_arguments *a, int argc, char **argv);

/* Prints "oomctl policy VERB: text"; returns 2. */
int policy_fail(const struct policy_arguments *a, const struct oom_error *err);

/* GET of one version (0: the active one) with its document; NULL after an error was printed. */
json_t *policy_fetch(struct api *api, const struct policy_arguments *a, const char *name,
                     const char *version);

/* Stores what was made of `base`. Prints the outcome; returns the exit status. */
int policy_store(struct api *api, const struct policy_arguments *a, const char *name, int64_t base,
                 const json_t *document, const char *message);

/* "yes" to a question on the terminal; false when there is nobody to ask. */
bool policy_confirm(const char *question);

/* Prints the difference of two documents; false when there is none. */
bool policy_print_diff(const char *old_name, const json_t *old_document, const char *new_name,
                       const json_t *new_document);

/* Reads and validates a file; NULL and err, which names line or key. */
json_t *policy_read_file(const char *path, struct oom_error *err);

/* agent/ctl/policy_read.c */
int policy_list(int argc, char **argv);
int policy_show(int argc, char **argv);
int policy_log(int argc, char **argv);
int policy_diff(int argc, char **argv);
int policy_export(int argc, char **argv);
int policy_validate(int argc, char **argv);
/* agent/ctl/policy_change.c */
int policy_set(int argc, char **argv);
int policy_import(int argc, char **argv);
int policy_rollback(int argc, char **argv);
int policy_enable(int argc, char **argv);
int policy_disable(int argc, char **argv);
/* agent/ctl/policy_editor.c */
int policy_edit(int argc, char **argv);
/* agent/ctl/policy_backtest.c */
int policy_backtest(int argc, char **argv);

#endif
