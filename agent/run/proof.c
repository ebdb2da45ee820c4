/* SPDX-License-Identifier: Apache-2.0
 *
 * Proof that a change arrived: the arguments of the training program itself, read while it runs. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/proctree.h"
#include "agent/run/run.h"

/* Resources and variables are not in anybody's arguments. */
static bool is_argument(const struct oom_edit *edit)
{
    return strncmp(edit->knob, "env:", 4) != 0 && strncmp(edit->knob, "slurm:", 6) != 0 &&
           strncmp(edit->knob, "ray:", 4) != 0;
}

/* A launcher that is a script shows as its interpreter: "python3 /usr/bin/ray job submit …". */
static int verify(const struct oom_policy *policy, char **argv, const struct oom_edits *wanted,
                  struct oom_error *why)
{
    int verdict = oom_argv_verify(policy, (const char *const *)argv, wanted, why);

    if (verdict < 0 && argv[1] && strchr(argv[1], '/'))
        verdict = oom_argv_verify(policy, (const char *const *)argv + 1, wanted, why);
    return verdict;
}

void proof_look(struct run *run, struct attempt *attempt)
{
    struct oom_edits wanted = {NULL, 0};
    struct oom_error why = {""};
    pid_t *pids = NULL;

    for (size_t i = 0; i < attempt->edits.count; i++)
        if (is_argument(&attempt->edits.items[i]))
            oom_edits_add(&wanted, attempt->edits.items[i].knob, NULL,
                          attempt->edits.items[i].new_value, NULL);
    size_t count = wanted.count ? proctree_below(getpid(), &pids) : 0;
    for (size_t i = 0; i < count && attempt->applied < 0; i++) {
        char **argv = proctree_argv(pids[i]);
        int verdict = argv ? verify(run->proof_policy, argv, &wanted, &why) : -1;
        if (verdict >= 0) {
            attempt->applied = verdict;
            snprintf(attempt->proof, sizeof(attempt->proof), "%s%s",
                     verdict ? "seen in the arguments of the running program" : "not applied: ",
                     verdict ? "" : why.text);
        }
        free(argv);
    }
    free(pids);
    oom_edits_free(&wanted);
}
