/* SPDX-License-Identifier: Apache-2.0
 *
 * Python's own command line, and launchers that are Python programs: torchrun, accelerate,
 * deepspeed. */
#include "policies/rewrite/launch.h"

#include <string.h>

void rw_launch_module(struct rw_cursor *w, bool *again)
{
    const char *module = rw_word(w, w->at);

    const struct rw_launcher *l = rw_launcher_module(module);
    if (l) {
        bool is_module = false, no_python = false;
        w->at++;
        rw_skip_options(w, l, &is_module, &no_python);
        if (no_python) {
            *again = true;
            return;
        }
    }
    w->cmd->program = rw_word(w, w->at);
    w->cmd->python = true;
    w->cmd->arg0 = w->at + 1;
    rw_record(w->rw, w->cmd);
}

void rw_launch_python(struct rw_cursor *w, bool *again)
{
    for (w->at++; w->at < w->cmd->fields.count; w->at++) {
        const char *option = rw_word(w, w->at);
        if (rw_word_unknown(w, w->at) && option[0] != '-' && w->at + 1 < w->cmd->fields.count &&
            (strcmp(rw_word(w, w->at + 1), "-m") == 0 ||
             rw_ends_with(rw_word(w, w->at + 1), ".py")))
            continue;
        if (option[0] != '-' || !option[1])
            break;
        if (option[1] == '-')
            continue;
        size_t letter = strcspn(option + 1, "cmXW") + 1;
        if (!option[letter])
            continue;
        if (option[letter] == 'c')
            break;
        if (option[letter] == 'm' && !option[letter + 1]) {
            w->at++;
            rw_launch_module(w, again);
            return;
        }
        if (!option[letter + 1])
            w->at++;
    }
    const char *script = rw_word(w, w->at);
    if (*script && script[0] != '-') {
        w->cmd->program = script;
        w->cmd->python = true;
        w->cmd->arg0 = w->at + 1;
    }
    rw_record(w->rw, w->cmd);
}

void rw_launch_pylauncher(struct rw_cursor *w, const struct rw_launcher *l, bool *again)
{
    bool module = false, no_python = false;

    w->at++;
    rw_skip_options(w, l, &module, &no_python);
    if (no_python) {
        *again = true;
        return;
    }
    if (w->at < w->cmd->fields.count) {
        w->cmd->program = rw_word(w, w->at);
        w->cmd->python = true;
        w->cmd->arg0 = w->at + 1;
    }
    rw_record(w->rw, w->cmd);
}
