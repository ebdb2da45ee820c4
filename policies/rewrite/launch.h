/* SPDX-License-Identifier: Apache-2.0
 *
 * The way from a command's words to the program behind launchers; launch.c has the overview. */
#ifndef POLICIES_REWRITE_LAUNCH_H
#define POLICIES_REWRITE_LAUNCH_H

#include "policies/rewrite/launchers.h"

/* A cursor over the fields of a command. */
struct rw_cursor {
    struct rw *rw;
    struct rw_cmd *cmd;
    size_t at;
    const struct rw_text *input; /* what the command reads, where that is known */
    struct rw_shell shell;       /* options of the shell that it starts */
};

/* ---- launch_options.c */
const char *rw_word(const struct rw_cursor *w, size_t index); /* "" behind the last one */
bool rw_word_unknown(const struct rw_cursor *w, size_t index);
/* NAME=VALUE at [from, to) of a field is set in what the command runs. */
void rw_keep_env(struct rw_cursor *w, size_t index, uint32_t from, uint32_t to);
/* Steps over a launcher's options; those that nobody knows count as options. */
void rw_skip_options(struct rw_cursor *w, const struct rw_launcher *l, bool *module,
                     bool *no_python);
/* The variables that reach what the launcher starts: its options are the fields from `from` to the
 * cursor, and `own` was known of the command before them. */
void rw_seal_env(struct rw_cursor *w, const struct rw_launcher *l, size_t from,
                 const struct rw_env *own);
/* Whether a variable of the environment reaches the command. */
bool rw_env_passes(const struct rw_cmd *cmd, const char *name);
/* What scripts do around their work (mkdir, pip, nvidia-smi): likely.c. */
bool rw_is_utility(const char *program);
const char *rw_base_name(const char *path);
bool rw_is_python(const char *name);
bool rw_ends_with(const char *text, const char *end);
/* Whether a word is in a blank separated list; "_" in it counts as "-". */
bool rw_in_words(const char *words, const char *word);

/* ---- launch_shell.c */
/* Walks shell text; its positional parameters are the fields from `first_arg`. */
void rw_nested_text(struct rw_cursor *w, const struct rw_text *text, size_t first_arg);
/* The script file at the cursor: one that the script wrote, a side file, or one out of sight. */
void rw_script_file(struct rw_cursor *w);
void rw_launch_shell(struct rw_cursor *w);
void rw_launch_sbatch(struct rw_cursor *w, const struct rw_launcher *l);

/* ---- launch_python.c: *again is set when what follows is a command, not a Python script */
void rw_launch_python(struct rw_cursor *w, bool *again);
void rw_launch_module(struct rw_cursor *w, bool *again);
void rw_launch_pylauncher(struct rw_cursor *w, const struct rw_launcher *l, bool *again);

#endif
