/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that run shell text or a script file: bash, ssh, sbatch, "./run.sh". What they run is
 * walked with their arguments and variables. */
#include "policies/rewrite/launch.h"

#include <string.h>

/* Variables that stand in front of a command are set in what it runs; others may not reach it. */
static void enter_env(struct rw *rw, const struct rw_cmd *cmd)
{
    for (size_t i = 0; i < rw->env_count; i++) {
        struct rw_value *none = rw_alloc(&rw->arena, sizeof(*none));
        none->unset = true;
        if (!rw_env_passes(cmd, rw->env_names[i]))
            rw_var_set(rw, rw_var_at(rw, rw->env_names[i], strlen(rw->env_names[i])), none);
    }
    for (const struct rw_env *env = cmd->env; env; env = env->next) {
        rw_var_set_text(rw, env->name, &env->value);
        rw_var_at(rw, env->name, strlen(env->name))->exported = true;
    }
}

void rw_nested_text(struct rw_cursor *w, const struct rw_text *text, size_t first_arg)
{
    struct rw *rw = w->rw;
    struct rw_fields saved = rw->positional;
    bool known = rw->positional_known;
    size_t before = rw->cmd_count;
    size_t mark = rw_trail_mark(rw);

    memset(&rw->positional, 0, sizeof(rw->positional));
    /* `bash -c text name args`: the word behind the text is $0. */
    if (first_arg < w->cmd->fields.count) {
        rw->positional.items = w->cmd->fields.items + first_arg;
        rw->positional.count = w->cmd->fields.count - first_arg;
    }
    rw->positional_known = true;
    struct rw_buf *buf = rw_text_buf(rw, text, w->cmd->key);
    struct rw_shell *outer = rw->shell;
    enter_env(rw, w->cmd);
    rw_shell_enter(rw, &w->shell, buf);
    rw_walk_buf(rw, buf);
    rw_shell_leave(rw, outer);
    rw->positional = saved;
    rw->positional_known = known;
    rw_trail_undo(rw, mark);
    for (size_t i = before; i < rw->cmd_count; i++)
        if (!rw->cmds[i].outer_env)
            rw->cmds[i].outer_env = w->cmd->env;
}

/* A script file: one that the script wrote, a side file, or one out of sight. */
void rw_script_file(struct rw_cursor *w)
{
    struct rw *rw = w->rw;
    const char *path = rw_word(w, w->at);

    struct rw_buf *buf = rw_word_unknown(w, w->at) ? NULL : rw_file_buf(rw, path, w->cmd->key);
    if (!buf || buf->walking) {
        w->cmd->file = path;
        w->cmd->arg0 = w->at + 1;
        rw_record(rw, w->cmd);
        return;
    }
    rw_note_call(rw, buf, &w->cmd->fields.items[w->at].text);
    struct rw_fields saved = rw->positional;
    bool known = rw->positional_known;
    size_t mark = rw_trail_mark(rw), before = rw->cmd_count;
    bool wild = false;
    for (size_t i = w->at + 1; i < w->cmd->fields.count; i++)
        wild |= w->cmd->fields.items[i].text.wild;
    rw->positional.items = w->cmd->fields.items + w->at + 1;
    rw->positional.count = w->cmd->fields.count - w->at - 1;
    rw->positional.capacity = 0;
    rw->positional_known = !wild;
    struct rw_shell *outer = rw->shell;
    enter_env(rw, w->cmd);
    rw_shell_enter(rw, &w->shell, buf);
    rw_walk_file(rw, buf);
    rw_shell_leave(rw, outer);
    rw->positional = saved;
    rw->positional_known = known;
    rw_trail_undo(rw, mark);
    /* The call itself is kept too: it is where arguments and variables can be handed in. */
    w->cmd->file = path;
    w->cmd->arg0 = w->at + 1;
    w->cmd->calls = rw->cmd_count > before;
    rw_record(rw, w->cmd);
}

void rw_launch_shell(struct rw_cursor *w)
{
    bool is_text = false, from_input = false;
    size_t i = w->at + 1;

    for (; i < w->cmd->fields.count; i++) {
        const char *option = rw_word(w, i);
        if (option[0] != '-' && option[0] != '+')
            break;
        if (strcmp(option, "-") == 0 || strcmp(option, "--") == 0) {
            i++;
            break;
        }
        if (option[1] == '-') {
            i += strcmp(option, "--rcfile") == 0 || strcmp(option, "--init-file") == 0;
            continue;
        }
        is_text |= option[0] == '-' && strchr(option, 'c');
        from_input |= option[0] == '-' && strchr(option, 's');
        i += rw_shell_option(&w->shell, option, rw_word(w, i + 1));
    }
    if (is_text && i < w->cmd->fields.count) {
        rw_nested_text(w, &w->cmd->fields.items[i].text, i + 2);
        return;
    }
    if (from_input)
        i = w->cmd->fields.count;
    if (i < w->cmd->fields.count) {
        w->at = i;
        rw_script_file(w);
    } else if (w->input) {
        rw_nested_text(w, w->input, w->cmd->fields.count);
    } else {
        rw_record(w->rw, w->cmd);
    }
}

void rw_launch_sbatch(struct rw_cursor *w, const struct rw_launcher *l)
{
    for (size_t i = w->at + 1; i < w->cmd->fields.count; i++) {
        const char *option = rw_word(w, i);
        const struct rw_text *text = &w->cmd->fields.items[i].text;
        if (strncmp(option, "--wrap=", 7) == 0) {
            struct rw_text inner;
            rw_text_slice(w->rw, text, 7, text->length, &inner);
            rw_nested_text(w, &inner, w->cmd->fields.count);
            return;
        }
        if (strcmp(option, "--wrap") == 0 && i + 1 < w->cmd->fields.count) {
            rw_nested_text(w, &w->cmd->fields.items[i + 1].text, w->cmd->fields.count);
            return;
        }
    }
    const struct rw_env *own = w->cmd->env;
    size_t from = ++w->at;
    rw_skip_options(w, l, NULL, NULL);
    rw_seal_env(w, l, from, own);
    if (w->at < w->cmd->fields.count)
        rw_script_file(w);
    else if (w->input)
        rw_nested_text(w, w->input, w->cmd->fields.count);
    else
        rw_record(w->rw, w->cmd);
}
