/* SPDX-License-Identifier: Apache-2.0
 *
 * Did a change arrive? The arguments of a process against the edits, under the family's rules. */
#include <stdlib.h>
#include <string.h>

#include "policies/rewrite/sides.h"

static int verify(struct rw_analysis *a, const struct oom_policy *policy,
                  const struct oom_edits *edits, struct oom_error *err)
{
    struct rw *rw = &a->rw;
    const struct rw_cmd *cmd = NULL;
    bool compared = false;

    /* A shell whose text holds the command is not the program itself. */
    for (size_t c = 0; c < a->worlds[0].count && !cmd; c++)
        if (a->worlds[0].cmds[c].training && a->worlds[0].cmds[c].buf == rw->root)
            cmd = &a->worlds[0].cmds[c];
    if (!cmd || !a->by_policy)
        return -1;
    for (size_t e = 0; e < edits->count; e++) {
        const struct oom_edit *edit = &edits->items[e];
        struct rw_knob knob = {.name = edit->knob,
                               .value = edit->new_value,
                               .known = oom_policy_knob(policy, edit->knob)};
        const char *path, *file = rw_file_of(policy, edit->knob, &path);
        struct rw_ref ref;
        struct rw_hit hit;
        if (file) {
            /* What is in a file is not in the arguments, but which file it is may be. */
            if (*path || !rw_ref_find(rw, policy, cmd, file, &ref) || !edit->new_value)
                continue;
            compared = true;
            if (strcmp(ref.path, edit->new_value) == 0)
                continue;
            oom_errorf(err, "%.80s was to read %s, but got %s", cmd->program, edit->new_value,
                       ref.path);
            return 0;
        }
        if (strncmp(edit->knob, "env:", 4) == 0 || strncmp(edit->knob, "slurm:", 6) == 0 ||
            strncmp(edit->knob, "ray:", 4) == 0)
            continue;
        compared = true;
        if (rw_satisfied(rw, policy, cmd, &knob))
            continue;
        bool found = rw_find_hit(rw, policy, cmd, &knob, &hit, NULL, NULL);
        oom_errorf(err, "%s was to be %s, but %.80s got %s", edit->knob,
                   edit->new_value ? edit->new_value : "absent", cmd->program,
                   found ? rw_hit_value(rw, cmd, &hit) : "none");
        return 0;
    }
    return compared ? 1 : -1;
}

/* Running out of memory comes back here. */
static int verify_guarded(struct rw_analysis *a, const struct oom_policy *policy,
                          const struct oom_edits *edits, struct oom_error *err)
{
    if (setjmp(a->rw.bail))
        return -1;
    return verify(a, policy, edits, err);
}

int oom_argv_verify(const struct oom_policy *policy, const char *const *argv,
                    const struct oom_edits *edits, struct oom_error *err)
{
    static const char *const nothing[] = {NULL};
    struct oom_script_source source = {.name = "argv", .args = nothing, .environ_list = nothing};
    struct rw_analysis a;
    int verdict = -1;

    if (!argv[0])
        return -1;
    struct oom_script *script = oom_script_from_argv(argv, &source, err);
    if (!script)
        return -1;
    if (rw_analyse(&a, script, script->root->bytes, script->root->length, policy, NULL, 0, NULL,
                   NULL, err) == 0) {
        verdict = verify_guarded(&a, policy, edits, err);
        rw_analysis_free(&a);
    }
    oom_script_free(script);
    return verdict;
}
