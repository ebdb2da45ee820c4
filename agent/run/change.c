/* SPDX-License-Identifier: Apache-2.0
 *
 * The command that the next attempt runs: what the user submitted, with all edits in force. */
#include "agent/run/run.h"

static int rewrite(struct run *run, const struct oom_policy *policy, const struct oom_edits *inside,
                   struct oom_error *err)
{
    if (policy)
        return launch_rewrite(&run->launch, policy, inside, err);
    /* Without a policy nobody knows how a change is written, most often because the script cannot
     * be read: then only what the scheduler changes is left. */
    if (inside->count == 0)
        return 0;
    struct oom_script *script = launch_parse(&run->launch, err);
    int rc = script ? oom_errorf(err, "no policy knows what it starts") : -1;
    oom_script_free(script);
    return rc;
}

int change_make(struct run *run, const struct oom_policy *policy, const struct oom_edits *edits,
                struct oom_error *err)
{
    struct oom_edits inside = {NULL, 0};
    int rc = next_edits(edits, false, &inside) == 0 ? rewrite(run, policy, &inside, err) : -1;

    oom_edits_free(&inside);
    return rc;
}

void change_prove_by(struct run *run, struct policy_set *set, int index)
{
    oom_policy_free(run->proof_policy);
    run->proof_policy = set->items[index];
    set->items[index] = NULL;
}
