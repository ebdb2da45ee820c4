/* SPDX-License-Identifier: Apache-2.0
 *
 * The shells that run a script's commands: its own, and those that it starts. Each has options of
 * its own that say whether its status tells of a failure; none inherits them. */
#include "policies/rewrite/rw.h"

#include <string.h>

bool rw_shell_option(struct rw_shell *shell, const char *option, const char *next)
{
    size_t length = strlen(option);
    bool on = option[0] == '-';

    if (length < 2)
        return false;
    if (strchr(option, 'e'))
        shell->errexit = on;
    if ((option[length - 1] != 'o' && option[length - 1] != 'O') || !next)
        return false;
    if (strcmp(next, "pipefail") == 0)
        shell->pipefail = on;
    if (strcmp(next, "errexit") == 0)
        shell->errexit = on;
    return true;
}

bool rw_shell_sets_variable(const char *name)
{
    static const char *const names[] = {
        "BASH",         "BASHOPTS", "BASHPID",  "BASH_VERSION", "EPOCHREALTIME",
        "EPOCHSECONDS", "EUID",     "GROUPS",   "HOSTNAME",     "HOSTTYPE",
        "IFS",          "LINENO",   "MACHTYPE", "OPTIND",       "OSTYPE",
        "PATH",         "PPID",     "PWD",      "RANDOM",       "SECONDS",
        "SHELLOPTS",    "SHLVL",    "SRANDOM",  "TERM",         "UID",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

void rw_shell_first_line(struct rw_shell *shell)
{
    const char *bytes = shell->buf->bytes;
    const char *end = memchr(bytes, '\n', shell->buf->length);
    const char *options = NULL;

    if (shell->buf->length < 2 || memcmp(bytes, "#!", 2) != 0 || !end)
        return;
    /* The kernel hands over all behind the interpreter as one word. */
    for (const char *at = bytes + 2; at < end && !options; at++)
        if (*at == ' ' && at[1] == '-')
            options = at + 1;
    for (; options && options < end && *options != ' '; options++)
        if (*options == 'e')
            shell->errexit = true;
}

void rw_shell_enter(struct rw *rw, const struct rw_shell *options, const struct rw_buf *buf)
{
    struct rw_shell *shell = rw_alloc(&rw->arena, sizeof(*shell));

    *shell = *options;
    shell->buf = buf;
    shell->outer = rw->shell;
    rw->shell = shell;
}

void rw_shell_leave(struct rw *rw, struct rw_shell *outer)
{
    rw->shell = outer;
    rw->leaving = RW_GOES_ON;
}

const struct rw_shell *rw_shells_now(struct rw *rw)
{
    const struct rw_shell *first = NULL, **next = &first;

    for (const struct rw_shell *shell = rw->shell; shell; shell = shell->outer) {
        struct rw_shell *copy = rw_alloc(&rw->arena, sizeof(*copy));
        *copy = *shell;
        *next = copy;
        next = &copy->outer;
    }
    return first;
}
