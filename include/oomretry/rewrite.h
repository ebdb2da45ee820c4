/* SPDX-License-Identifier: Apache-2.0
 *
 * A launch script in, the same script with other settings out. The measure is what the training
 * program is finally given, not how the text looks. Pure: side files come through a callback.
 *
 * The script is parsed with tree-sitter's bash grammar; edits are byte-exact and minimal. */
#ifndef OOMRETRY_REWRITE_H
#define OOMRETRY_REWRITE_H

#include "oomretry/policy.h"
#include "oomretry/values.h"

struct oom_script;

/* Reads a file that the script names (sourced script, YAML, JSON), relative to the job's working
 * directory. Returns 0 and a malloc'd buffer, or -1 when it cannot be had (which is never an
 * error of the rewrite by itself). */
typedef int oom_read_side_f(void *arg, const char *path, char **bytes, size_t *length);

/* Where a changed copy of a side file will stand: an absolute path (malloc'd) that the caller can
 * write to and the job's nodes can read; NULL: there is no such place. `beside`: it must be in the
 * directory of the file itself. */
typedef char *oom_place_copy_f(void *arg, const char *path, bool beside);

struct oom_script_source {
    const char *bytes;
    size_t length;
    const char *name;                /* what `where` calls it: "script" */
    const char *const *args;         /* "$@" of the script, NULL-terminated; NULL: none */
    const char *const *environ_list; /* NAME=VALUE, NULL-terminated; NULL: unknown */
    oom_read_side_f *read_side;      /* NULL: no side files */
    void *read_side_arg;
    oom_place_copy_f *place_copy; /* NULL: no side file can be changed */
    void *place_copy_arg;
    const char *directory; /* of the script's file, absolute; NULL: unknown */
    /* A policy that recognises none of the commands was seen to recognise what one of them starts
     * (make, a launcher in Python): no command is taken for training by its looks. */
    bool starts_unseen;
    /* What was seen to run when it failed, NULL-terminated; NULL: not known. Of several training
     * commands the one that is most like it is asked for its values. */
    const char *const *ran;
    /* Edits were decided for what ran: of several training commands they are for those that have
     * the edits' old values, unless none has. */
    bool for_what_ran;
};

/* Parses. NULL and err (naming line and column) when bash's grammar does not accept it. The
 * source's bytes are copied. */
struct oom_script *oom_script_parse(const struct oom_script_source *source, struct oom_error *err);

/* The same for an argument vector, as `oomrun -- python3 train.py …` has it. */
struct oom_script *oom_script_from_argv(const char *const *argv, const struct oom_script_source *s,
                                        struct oom_error *err);
void oom_script_free(struct oom_script *script);

/* Sets `ran` and `for_what_ran` of the source later; the vector must outlive the script. */
void oom_script_ran(struct oom_script *script, const char *const *argv);

/* Which of these policies recognise a command of the script; the index of the first policy that
 * does, or -1. */
int oom_script_recognise(const struct oom_script *script, const struct oom_policy *const *policies,
                         size_t count);

/* The present value of every knob of the policy that anything sets, with its source; knobs that
 * nothing sets come with the policy's default. Also "slurm:mem" and the like from #SBATCH lines.
 * The `refs` of a policy's expressions are read as well, since they are knobs too. */
int oom_script_values(const struct oom_script *script, const struct oom_policy *policy,
                      struct oom_values *out, struct oom_error *err);

/* A file that the next attempt must use instead of the user's. */
struct oom_side_copy {
    char *path;     /* as the script names it */
    char *new_path; /* what the new script names: the caller must write it there */
    char *bytes;
    size_t length;
    char *old_bytes; /* of the user's file, for a diff */
    size_t old_length;
};

struct oom_rewrite {
    char *bytes; /* the new script */
    size_t length;
    char **argv;            /* for scripts made by oom_script_from_argv: NULL-terminated */
    struct oom_edits edits; /* with old_value and where filled in */
    struct oom_side_copy *copies;
    size_t copy_count;
    struct oom_edits references; /* which copy a program must be given ("ds:"), for its proof */
    bool needs_exec; /* the launch command is out of sight: the preload library must place it */
    struct oom_edits exec_edits;
};

void oom_rewrite_free(struct oom_rewrite *rewrite); /* contents only */

/* Applies all edits (knob and new_value; NULL new_value takes it away; "true" on a switch is the
 * bare flag; "env:NAME" is an environment variable of the command, or of the workers that Ray
 * starts for it; "slurm:mem" a #SBATCH line).
 * Changes every matching training command (but see for_what_ran). -1 and err when one cannot be
 * placed, saying which. */
int oom_script_apply(const struct oom_script *script, const struct oom_policy *policy,
                     const struct oom_edits *edits, struct oom_rewrite *out, struct oom_error *err);

/* Paths of files that the script redirects or tees the training commands' output to, as far as
 * they are known without running it. NULL-terminated, for oom_script_log_paths_free; NULL: none. */
char **oom_script_log_paths(const struct oom_script *script);
void oom_script_log_paths_free(char **paths);

/* True when the script's exit status does not tell how the training command ended: that command
 * stands in a pipe without pipefail (`… | tee log`), in the background without a `wait` that
 * returns its status, or before other commands without `set -e`, and nothing after it decides. A
 * script that handles the failure by itself (`cmd || fallback`, `if ! cmd`) does not mask it: it
 * goes on on purpose. */
bool oom_script_masks_status(const struct oom_script *script);

/* Did the change arrive? Compares the argv of a process with the edits under the family's rules.
 * 1 all arrived, 0 one did not (err says which), -1 not this framework's command. */
int oom_argv_verify(const struct oom_policy *policy, const char *const *argv,
                    const struct oom_edits *edits, struct oom_error *err);

#endif
