/* SPDX-License-Identifier: Apache-2.0
 *
 * Proof that a change arrived: the arguments of the training program itself, read while it runs. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/proctree.h"
#include "agent/run/run.h"
#include "agent/run/seen.h"

/* Resources and variables are not in anybody's arguments. */
static bool is_argument(const struct oom_edit *edit)
{
    return strncmp(edit->knob, "env:", 4) != 0 && strncmp(edit->knob, "slurm:", 6) != 0 &&
           strncmp(edit->knob, "ray:", 4) != 0;
}

/* A shell on its way to becoming something else shows the arguments that it was given itself. */
static bool is_shell(const char *program)
{
    const char *slash = strrchr(program, '/');
    const char *name = slash ? slash + 1 : program;

    return strcmp(name, "sh") == 0 || strcmp(name, "bash") == 0 || strcmp(name, "dash") == 0;
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

/* A change counts as arrived when a program shows it and none shows the contrary: wrappers hand
 * arguments on, and what the last of them gets is what counts. */
static void judge(struct run *run, struct attempt *attempt, char **argv,
                  const struct oom_edits *wanted)
{
    struct oom_error why = {""};
    int verdict = verify(run->proof_policy, argv, wanted, &why);

    if (verdict < 0 || attempt->applied == 0)
        return;
    attempt->applied = verdict;
    snprintf(attempt->proof, sizeof(attempt->proof), "%s%s",
             verdict ? "seen in the arguments of the running program" : "not applied: ",
             verdict ? "" : why.text);
}

void proof_look(struct run *run, struct attempt *attempt)
{
    struct oom_edits wanted = {NULL, 0};
    pid_t *pids = NULL;

    for (size_t i = 0; i < attempt->edits.count; i++)
        if (is_argument(&attempt->edits.items[i]))
            oom_edits_add(&wanted, attempt->edits.items[i].knob, NULL,
                          attempt->edits.items[i].new_value, NULL);
    oom_edits_append(&wanted, &run->launch.references);
    size_t count = proctree_below(getpid(), &pids);
    for (size_t i = 0; i < count; i++) {
        char **argv = proctree_argv(pids[i]);
        if (!argv)
            continue;
        if (run->proof_policy && wanted.count && !is_shell(argv[0]))
            judge(run, attempt, argv, &wanted);
        seen_add(run->seen, argv);
    }
    free(pids);
    oom_edits_free(&wanted);
}
