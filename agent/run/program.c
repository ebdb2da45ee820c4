/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/run/program.h"

#include <stdio.h>
#include <string.h>

#include "agent/lib/jsonget.h"

static bool is_python(const char *path)
{
    return strncmp(basename(path), "python", 6) == 0;
}

/* Of `/bin/bash /opt/wrappers/python3 export.py` what begins with the last interpreter. */
static char *const *interpreter(char *const *argv)
{
    char *const *inner;

    while ((inner = seen_script(argv)) && is_python(inner[0]))
        argv = inner;
    return argv;
}

/* What only starts others, or carries what they say, does not run out. */
static bool is_go_between(char *const *argv)
{
    static const char *const names[] = {
        "sh",   "bash",    "dash", "zsh", "tee", "srun", "cat",    "env",   "time",  "nice",
        "tail", "timeout", "grep", "sed", "awk", "ts",   "stdbuf", "nohup", "sleep", "scontrol"};
    const char *name = basename(interpreter(argv)[0]);

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* What an interpreter of Python runs: a file, or a module; NULL: neither. */
static const char *python_program(char *const *argv, bool *module)
{
    argv = interpreter(argv);
    if (!is_python(argv[0]))
        return NULL;
    for (size_t i = 1; argv[i]; i++) {
        *module = strcmp(argv[i], "-m") == 0;
        if (*module)
            return argv[i + 1];
        if (strcmp(argv[i], "-c") == 0)
            return NULL;
        if (argv[i][0] != '-')
            return argv[i];
    }
    return NULL;
}

static void name_program(char *const *argv, char *out, size_t size)
{
    bool module = false;
    const char *program = python_program(argv, &module);

    if (program)
        snprintf(out, size, "%s %s%s", basename(interpreter(argv)[0]), module ? "-m " : "",
                 module ? program : basename(program));
    else
        snprintf(out, size, "%s", basename(interpreter(argv)[0]));
}

/* --- by its traceback -------------------------------------------------------------------------
 */

/* `File "/home/alice/export.py", line 3, in <module>`, or the same of a module "tools.export". */
static bool frame_is_of(const char *line, size_t length, const char *program, bool module)
{
    char file[256];
    const char *name = module ? program : basename(program);

    if (!memmem(line, length, ", in <module>", 13))
        return false;
    int n = snprintf(file, sizeof(file), "%s%s\", line ", name, module ? ".py" : "");
    for (char *dot = file; module && (dot = strchr(dot, '.')) && strncmp(dot, ".py\"", 4) != 0;)
        *dot = '/';
    const char *at =
        n > 0 && (size_t)n < sizeof(file) ? memmem(line, length, file, (size_t)n) : NULL;
    return at && at > line && (at[-1] == '/' || at[-1] == '"');
}

/* What stands in the window before the decisive line, which is `*length` bytes. */
static const char *before_cause(const json_t *windows, const struct oom_line *cause, size_t *length)
{
    const json_t *window;
    size_t i;

    json_array_foreach(windows, i, window)
    {
        const char *text = json_get_string(window, "text", ""), *at = text;
        if (strcmp(json_get_string(window, "file", ""), cause->file) != 0)
            continue;
        int64_t line = json_get_int(window, "line", 0);
        while (line < cause->line && (at = strchr(at, '\n')))
            line++, at++;
        if (at && line == cause->line) {
            *length = (size_t)(at - text);
            return text;
        }
    }
    return NULL;
}

/* The traceback of the decisive line names the file that was run in its outermost frame. -1: it is
 * one of the policy's programs; 1: another, which is `*found`; 0: it does not tell. */
static int by_traceback(const struct seen *seen, const struct oom_policy *policy,
                        const struct oom_line *cause, const json_t *windows,
                        const struct seen_command **found)
{
    size_t length = 0;
    const char *text = before_cause(windows, cause, &length);

    while (text && length > 0) {
        const char *line = memrchr(text, '\n', length - 1);
        line = line ? line + 1 : text;
        size_t width = (size_t)(text + length - line);
        if (memmem(line, width, "Traceback (most recent", 22))
            return 0;
        for (size_t i = 0; seen_at(seen, i); i++) {
            bool module = false;
            const struct seen_command *command = seen_at(seen, i);
            const char *program = python_program(command->argv, &module);
            if (!program || !frame_is_of(line, width, program, module))
                continue;
            *found = command;
            return seen_is_of(command, policy) ? -1 : 1;
        }
        length = (size_t)(line - text);
    }
    return 0;
}

/* --- by its time ------------------------------------------------------------------------------
 */

/* The last look in which a program of the policy was running; 0: in none. */
static int64_t last_training(const struct seen *seen, const struct oom_policy *policy)
{
    int64_t last = 0;

    for (size_t i = 0; seen_at(seen, i); i++)
        if (seen_at(seen, i)->last > last && seen_is_of(seen_at(seen, i), policy))
            last = seen_at(seen, i)->last;
    return last;
}

/* The last look in which anything but go-betweens was running. */
static int64_t last_busy(const struct seen *seen)
{
    int64_t last = 0;

    for (size_t i = 0; seen_at(seen, i); i++)
        if (seen_at(seen, i)->last > last && !is_go_between(seen_at(seen, i)->argv))
            last = seen_at(seen, i)->last;
    return last;
}

static const struct seen_command *by_time(const struct seen *seen, const struct oom_policy *policy,
                                          int stream, int64_t line)
{
    int64_t trained = last_training(seen, policy), end = last_busy(seen);
    const struct seen_command *found = NULL, *command;

    for (size_t i = 0; (command = seen_at(seen, i)); i++) {
        bool python = is_python(interpreter(command->argv)[0]);
        if (is_go_between(command->argv) || command->first <= trained)
            continue;
        /* Where no training was seen it may be out of sight: then only what was there alone. */
        if (trained == 0 && command->last == end && (found || !python))
            return NULL;
        if ((trained == 0 && command->last != end) || command->lines[stream] >= line)
            continue;
        if (!found || (python && !is_python(interpreter(found->argv)[0])))
            found = command;
    }
    return found;
}

bool program_elsewhere(const struct seen *seen, const struct oom_policy *policy,
                       const struct oom_line *cause, int stream, const json_t *windows, char *out,
                       size_t size)
{
    const struct seen_command *found = NULL;
    int told = by_traceback(seen, policy, cause, windows, &found);

    if (told == 0)
        found = by_time(seen, policy, stream, cause->line);
    if (told < 0 || !found)
        return false;
    name_program(found->argv, out, size);
    return true;
}

const char *const *program_ran(const struct seen *seen, const struct oom_policy *policy,
                               int64_t line, int stream)
{
    const struct seen_command *last = NULL;
    const struct seen_command *command;

    for (size_t i = 0; (command = seen_at(seen, i)); i++) {
        bool too_late = line > 0 && stream >= 0 && command->lines[stream] != INT64_MAX &&
                        command->lines[stream] >= line;
        if (!too_late && seen_is_of(command, policy) &&
            (!last || command->began_ms >= last->began_ms))
            last = command;
    }
    return last ? (const char *const *)last->argv : NULL;
}
