/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of oom_script_apply: apply.c finds the places, result.c makes what the caller gets. */
#ifndef POLICIES_REWRITE_APPLY_H
#define POLICIES_REWRITE_APPLY_H

#include "policies/rewrite/calls.h"
#include "policies/rewrite/sides.h"

struct rw_job {
    const struct oom_script *script;
    const struct oom_policy *policy;
    struct rw_analysis before;
    struct rw_knob *knobs;
    size_t knob_count;
    const char **env_names;
    size_t env_count;
    struct rw_tasks tasks;
    struct rw_sides sides;
    struct rw_copies copies;    /* of files that the script sources or calls */
    struct rw_changes fixed;    /* #SBATCH lines: they change no command */
    struct rw_changes accepted; /* of the tasks */
    uint64_t try_steps;         /* that checks have walked */
};

/* Adds `from` to `to`; false, and nothing is added, when two of them meet. */
bool rw_add_all(struct rw *rw, struct rw_changes *to, const struct rw_changes *from);
int rw_finish(struct rw_job *job, const struct oom_edits *edits, struct oom_rewrite *out,
              struct oom_error *err);

#endif
