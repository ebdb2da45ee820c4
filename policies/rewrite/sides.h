/* SPDX-License-Identifier: Apache-2.0
 *
 * Settings that stand in a file which the command names: the DeepSpeed JSON behind --deepspeed, the
 * YAML behind `accelerate launch --config_file`. The policy's "files" says how such a file is
 * named; its knobs begin with that entry's name ("ds:zero_optimization.stage"). The file is the
 * user's: a changed copy is made, and the command is changed to name the copy. */
#ifndef POLICIES_REWRITE_SIDES_H
#define POLICIES_REWRITE_SIDES_H

#include "policies/rewrite/plan.h"

/* ---- sidename.c: how a command names a file */

#define RW_NO_FIELD SIZE_MAX

struct rw_ref {
    const char *path;
    const char *flag;  /* with which a command line names it; NULL: it does not take one */
    size_t field;      /* where the name stands; RW_NO_FIELD: in a configuration */
    uint32_t from, to; /* in that field's text */
    const char *outer; /* the entry of the file that names it; NULL: the command does */
    const char *outer_key;
};

/* The entry of the policy's "files" that a knob belongs to, and *path, the setting in the file;
 * NULL when it belongs to none. "ds:" is the file itself. */
const char *rw_file_of(const struct oom_policy *policy, const char *knob, const char **path);
/* How the command names the entry's file; false when it does not, or not so that it can be known.
 */
bool rw_ref_find(struct rw *rw, const struct oom_policy *policy, const struct rw_cmd *cmd,
                 const char *file, struct rw_ref *ref);
/* Marks the fields that name the file. */
void rw_ref_mark(struct rw *rw, const struct oom_policy *policy, const struct rw_cmd *cmd,
                 const char *file, bool *skip);

/* ---- sides.c: the copies */

struct rw_side {
    const char *file; /* entry of the policy */
    const char *path; /* as the command names it */
    struct rw_side *outer;
    const char *outer_key;
    struct oom_confedit *edits;
    size_t edit_count;
    char *old_bytes, *bytes; /* bytes NULL: all is as wanted already */
    size_t old_length, length;
    const char *new_path;
    struct rw_side *next;
};

struct rw_sides {
    struct rw_side *first;
};

/* The copies that the edits need, for all training commands. -1 and err. */
int rw_sides_make(struct rw_analysis *a, const struct oom_script *script,
                  const struct oom_policy *policy, const struct oom_edits *edits,
                  struct rw_sides *out, struct oom_error *err);
void rw_sides_free(struct rw_sides *sides);
/* Where a file's copy stands; NULL when it is used as it is. */
const char *rw_side_copy(const struct rw_sides *sides, const char *file, const char *path);
/* Whether the new command uses the copies of what the old one used. */
bool rw_sides_follow(struct rw_analysis *before, struct rw_analysis *after,
                     const struct oom_policy *policy, const struct rw_knob *knob,
                     const struct rw_cmd *old, const struct rw_cmd *new);
/* What a knob was and where ("ds.json:4"), in rw's arena. */
void rw_side_present(struct rw *rw, const struct rw_sides *sides, const char *file,
                     const char *path, const char **value, const char **where);
/* Ways to make commands name the copy: one way in `change`, and an override in `add`. */
void rw_side_places(struct rw *rw, const struct oom_policy *policy, const struct rw_cmd *cmd,
                    const struct rw_knob *knob, struct rw_places *change, struct rw_places *add);
/* Copies and what the programs must be given, to the caller. -1: out of memory. */
int rw_sides_hand_over(struct rw_sides *sides, struct oom_rewrite *out);

#endif
