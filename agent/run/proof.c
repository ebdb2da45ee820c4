/* SPDX-License-Identifier: Apache-2.0
 *
 * Proof that a change arrived: the arguments of the training program itself, read while it runs;
 * what it prints of its own settings; what the preload library reports. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/files.h"
#include "agent/lib/proctree.h"
#include "agent/run/run.h"
#include "agent/run/seen.h"

enum { MAX_REPORT_BYTES = 64 * 1024 };

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

static int verify(const struct oom_policy *policy, char **argv, const struct oom_edits *wanted,
                  struct oom_error *why)
{
    int verdict = oom_argv_verify(policy, (const char *const *)argv, wanted, why);
    char *const *script = seen_script(argv);

    if (verdict < 0 && script)
        verdict = oom_argv_verify(policy, (const char *const *)script, wanted, why);
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
    seen_look(run->seen, proctree_now_ms());
    for (size_t i = 0; i < count; i++) {
        char **argv = proctree_argv(pids[i]);
        if (!argv)
            continue;
        if (run->proof_policy && wanted.count && !is_shell(argv[0]))
            judge(run, attempt, argv, &wanted);
        seen_add(run->seen, argv, proctree_began_ms(pids[i]));
    }
    free(pids);
    oom_edits_free(&wanted);
}

static void settle(struct attempt *attempt, int applied, const char *words, const char *detail)
{
    attempt->applied = applied;
    snprintf(attempt->proof, sizeof(attempt->proof), "%s%s", words, detail);
}

/* 1 when the library says that it changed a command, with the process in `out`. */
static bool reported(const struct launch *launch, char *out, size_t size)
{
    static const char mark[] = "changed pid ";
    char *bytes = NULL;
    size_t length = 0;
    bool found = false;

    if (!launch->preload_file ||
        file_read(launch->preload_file, MAX_REPORT_BYTES, &bytes, &length, NULL) < 0)
        return false;
    if (strncmp(bytes, mark, sizeof(mark) - 1) == 0) {
        const char *pid = bytes + sizeof(mark) - 1;
        snprintf(out, size, "%.*s", (int)strspn(pid, "0123456789"), pid);
        found = *out != '\0';
    }
    free(bytes);
    return found;
}

void proof_end(const struct run *run, struct attempt *attempt)
{
    struct oom_error why = {""};
    int shown = -1;
    char pid[24];

    if (!run->proof_policy || attempt->edits.count == 0)
        return;
    for (int i = 0; i < 2 && shown != 0; i++) {
        size_t length;
        const char *text = output_beginning(run->output, i, &length);
        int verdict =
            text ? oom_dump_verify(run->proof_policy, text, length, &attempt->edits, &why) : -1;
        if (verdict >= 0)
            shown = verdict;
    }
    if (shown == 0)
        settle(attempt, 0, "not applied: ", why.text);
    else if (attempt->applied < 0 && shown == 1)
        settle(attempt, 1, "seen in the program's own dump in the log", "");
    else if (attempt->applied < 0 && reported(&run->launch, pid, sizeof(pid)))
        settle(attempt, 1, "made when the launch command was executed, by process ", pid);
}

void proof_values(const struct run *run, const struct oom_policy *policy, struct oom_values *values)
{
    for (int i = 0; i < 2; i++) {
        struct oom_values found = {NULL, 0};
        size_t length;
        const char *text = output_beginning(run->output, i, &length);
        if (text && oom_dump_values(policy, text, length, &found) == 0)
            oom_values_fill(values, &found, OOM_SOURCE_LOG);
        oom_values_free(&found);
    }
}
