/* SPDX-License-Identifier: Apache-2.0
 *
 * From the words of a command to the program that trains: through prefixes (env, time, numactl),
 * job launchers (srun, mpirun), containers, Python launchers (torchrun, accelerate) and shells. */
#include "policies/rewrite/launch.h"

#include <ctype.h>
#include <string.h>

/* The last word that is a program by itself: "axolotl train …", "./run.sh". */
static void plain(struct rw_cursor *w)
{
    const char *path = rw_word(w, w->at);
    const char *name = rw_base_name(path);
    const char *sub = rw_word(w, w->at + 1);

    if (rw_ends_with(name, ".py")) {
        w->cmd->program = path;
        w->cmd->python = true;
        w->cmd->arg0 = w->at + 1;
    } else if (rw_ends_with(name, ".sh") || (path[0] == '.' && strchr(path, '/')) ||
               rw_ends_with(name, ".sbatch") || rw_ends_with(name, ".slurm")) {
        rw_script_file(w);
        return;
    } else if (isalpha((unsigned char)name[0]) && isalpha((unsigned char)sub[0]) &&
               strspn(sub, "abcdefghijklmnopqrstuvwxyz0123456789_-") == strlen(sub)) {
        w->cmd->program = rw_printf(&w->rw->arena, "%s %s", name, sub);
        w->cmd->arg0 = w->at + 2;
    } else {
        w->cmd->program = name;
        w->cmd->arg0 = w->at + 1;
    }
    rw_record(w->rw, w->cmd);
}

static bool assignment_word(const char *text)
{
    size_t n = 0;

    while (isalnum((unsigned char)text[n]) || text[n] == '_')
        n++;
    return n && !isdigit((unsigned char)text[0]) && text[n] == '=';
}

/* Whether a command begins at this word that nobody writes as an argument. */
static bool begins_command(const struct rw_cursor *w, size_t at)
{
    static const char *const launchers = "torchrun accelerate deepspeed";
    const char *path = rw_word(w, at), *next = rw_word(w, at + 1);
    const char *name = rw_base_name(path);
    bool shell = strcmp(name, "bash") == 0 || strcmp(name, "sh") == 0;

    if (name != path &&
        !rw_ends_with(rw_strndup(&w->rw->arena, path, (size_t)(name - path)), "bin/"))
        return false; /* "org/python" names a model */
    return *next && strcmp(next, "--") != 0 && !rw_word_unknown(w, at) &&
           (rw_is_python(name) || rw_in_words(launchers, name) ||
            (shell && (*next == '-' || rw_ends_with(next, ".sh"))));
}

/* "axolotl train …": what follows are its own arguments ("--launcher torchrun"). */
static bool has_subcommand(const struct rw_cursor *w)
{
    static const char *const starters = "run exec record launch profile";
    const char *sub = rw_word(w, w->at + 1);

    return isalpha((unsigned char)*sub) && !rw_in_words(starters, sub) &&
           strspn(sub, "abcdefghijklmnopqrstuvwxyz_-") == strlen(sub) &&
           !begins_command(w, w->at + 1);
}

/* A launcher that nobody knows ("flock /tmp/gpu python train.py") shows by the command in it.
 * Returns where that begins; 0: there is none. */
static size_t wrapped(const struct rw_cursor *w)
{
    const char *name = rw_base_name(rw_word(w, w->at));

    if (rw_is_utility(name) || rw_ends_with(name, ".py") || rw_ends_with(name, ".sh") ||
        has_subcommand(w))
        return 0;
    for (size_t i = w->at + 1; i + 1 < w->cmd->fields.count; i++)
        if (begins_command(w, i))
            return i;
    return 0;
}

/* xargs adds words from its input: the known ones, or some that nobody knows. Behind -I they
 * replace a mark instead. */
static void take_input(struct rw_cursor *w, size_t from)
{
    static const char *const splits[] = {"-n",    "-L",      "-d",     "-0",
                                         "--max", "--delim", "--null", NULL};
    struct rw_fields *fields = &w->cmd->fields;
    bool whole =
        w->input && rw_text_known(w->input) && !strpbrk(rw_text_string(w->rw, w->input), "'\"\\");

    for (size_t i = from; i < w->at; i++) {
        const char *option = rw_word(w, i);
        if (strncmp(option, "-I", 2) == 0 || strncmp(option, "-i", 2) == 0 ||
            strncmp(option, "--replace", 9) == 0)
            return;
        for (size_t k = 0; splits[k]; k++)
            whole &= strncmp(option, splits[k], strlen(splits[k])) != 0;
    }
    size_t before = fields->count;
    if (whole) {
        struct rw_sink sink = {.fields = fields, .split = true, .ifs = " \t\n"};
        rw_sink_put(w->rw, &sink, w->input, false);
    } else {
        static const char mark[] = "{}";
        struct rw_frag frag = {mark,        2,           RW_UNKNOWN, RW_BARE, w->cmd->buf,
                               w->cmd->end, w->cmd->end, NULL,       false};
        struct rw_text *text = &rw_fields_add(w->rw, fields)->text;
        rw_text_push(w->rw, text, &frag);
        text->wild = true;
    }
    rw_finish_fields(w->rw, fields, before);
}

/* Words that xargs takes from a file are seen, and changed, when the program is executed. */
static bool reads_a_file(struct rw_cursor *w, size_t from)
{
    for (size_t i = from; i < w->at; i++)
        if (strncmp(rw_word(w, i), "-a", 2) == 0 || strncmp(rw_word(w, i), "--arg-file", 10) == 0)
            return true;
    return false;
}

/* One launcher is stepped over; false when the command is done with. */
static bool step(struct rw_cursor *w)
{
    const char *path = rw_word(w, w->at);
    const char *name = rw_base_name(path);
    const struct rw_env *own = w->cmd->env;
    size_t from = w->at + 1;
    bool again = false;

    if (assignment_word(path)) {
        rw_keep_env(w, w->at, 0, (uint32_t)strlen(path));
        w->at++;
        return true;
    }
    if (rw_is_python(name) ||
        (rw_word_unknown(w, w->at) && w->at + 1 < w->cmd->fields.count &&
         (strcmp(rw_word(w, w->at + 1), "-m") == 0 || strcmp(rw_word(w, w->at + 1), "-u") == 0 ||
          rw_ends_with(rw_word(w, w->at + 1), ".py")))) {
        w->cmd->launch = w->at;
        rw_launch_python(w, &again);
        return again;
    }
    if (rw_word_unknown(w, w->at) && w->at + 1 < w->cmd->fields.count) {
        w->at++;
        return true;
    }
    const struct rw_launcher *l = rw_launcher_named(name);
    size_t inner = l || rw_word_unknown(w, w->at) ? 0 : wrapped(w);
    if (inner) {
        w->at = inner;
        w->cmd->launch = inner;
        return true;
    }
    if (!l) {
        w->cmd->launch = w->at;
        if (rw_word_unknown(w, w->at)) {
            w->cmd->file = path; /* whatever it is, it is out of sight */
            rw_record(w->rw, w->cmd);
        } else {
            plain(w);
        }
        return false;
    }
    switch (l->kind) {
    case LAUNCH_WRAP:
        w->at++;
        rw_skip_options(w, l, NULL, NULL);
        break;
    case LAUNCH_WRAP_ONE:
        w->at++;
        rw_skip_options(w, l, NULL, NULL);
        w->at++;
        break;
    case LAUNCH_TASKSET:
        w->at++;
        rw_skip_options(w, l, NULL, NULL);
        if (strspn(rw_word(w, w->at), "0123456789abcdefx,-:") == strlen(rw_word(w, w->at)))
            w->at++;
        break;
    case LAUNCH_ENV:
        w->at++;
        for (;;) {
            size_t before = w->at;
            rw_skip_options(w, l, NULL, NULL);
            while (assignment_word(rw_word(w, w->at))) {
                rw_keep_env(w, w->at, 0, (uint32_t)strlen(rw_word(w, w->at)));
                w->at++;
            }
            if (strcmp(rw_word(w, w->at), "-") == 0)
                w->at++;
            if (w->at == before)
                break;
        }
        w->cmd->env_at = w->at;
        break;
    case LAUNCH_XARGS:
        w->at++;
        rw_skip_options(w, l, NULL, NULL);
        if (reads_a_file(w, from)) {
            w->at = from - 1;
            w->cmd->launch = w->at;
            plain(w);
            return false;
        }
        take_input(w, from);
        break;
    case LAUNCH_SUBCOMMAND: {
        bool module = false;
        size_t start = w->at++;
        rw_skip_options(w, l, NULL, NULL);
        if (!rw_in_words(l->sub, rw_word(w, w->at))) {
            w->at = start;
            rw_record(w->rw, w->cmd);
            return false;
        }
        w->at++;
        rw_skip_options(w, l, &module, NULL);
        if (module || strcmp(rw_word(w, w->at - 2 < start ? start : w->at - 2), "-m") == 0) {
            w->at -= module ? 0 : 1;
            w->cmd->launch = w->at;
            rw_launch_module(w, &again);
            return again;
        }
        break;
    }
    case LAUNCH_SUB_IMAGE:
        w->at++;
        rw_skip_options(w, l, NULL, NULL);
        if (!rw_in_words(l->sub, rw_word(w, w->at))) {
            rw_record(w->rw, w->cmd);
            return false;
        }
        w->at++;
        rw_skip_options(w, l, NULL, NULL);
        w->at++;
        if (strcmp(rw_word(w, w->at), "--") == 0)
            w->at++;
        break;
    case LAUNCH_PYLAUNCH:
        w->cmd->launch = w->at;
        rw_launch_pylauncher(w, l, &again);
        return again;
    case LAUNCH_ACCELERATE:
        w->cmd->launch = w->at;
        if (strcmp(rw_word(w, w->at + 1), "launch") != 0) {
            rw_record(w->rw, w->cmd);
            return false;
        }
        w->at++;
        rw_launch_pylauncher(w, l, &again);
        return again;
    case LAUNCH_SHELL:
        w->cmd->launch = w->at;
        rw_launch_shell(w);
        return false;
    case LAUNCH_SSH:
    case LAUNCH_PDSH: {
        struct rw_text text;
        w->at++;
        rw_skip_options(w, l, NULL, NULL);
        rw_seal_env(w, l, from, own);
        size_t first = w->at + (l->kind == LAUNCH_SSH ? 1 : 0);
        if (first >= w->cmd->fields.count) {
            rw_record(w->rw, w->cmd);
            return false;
        }
        rw_join(w->rw, &w->cmd->fields, first, w->cmd->fields.count, &text);
        rw_nested_text(w, &text, w->cmd->fields.count);
        return false;
    }
    case LAUNCH_SBATCH:
        rw_launch_sbatch(w, l);
        return false;
    case LAUNCH_RAY:
        if (strcmp(rw_word(w, w->at + 1), "job") != 0 ||
            strcmp(rw_word(w, w->at + 2), "submit") != 0) {
            rw_record(w->rw, w->cmd);
            return false;
        }
        w->at += 3;
        w->cmd->ray_from = w->at;
        rw_skip_options(w, l, NULL, NULL);
        w->cmd->ray_to = w->at < w->cmd->fields.count ? w->at : w->cmd->fields.count;
        w->cmd->ray = true;
        break;
    case LAUNCH_PYTHON:
        break;
    }
    rw_seal_env(w, l, from, own);
    if (w->at >= w->cmd->fields.count) {
        rw_record(w->rw, w->cmd);
        return false;
    }
    w->cmd->launch = w->at;
    return true;
}

void rw_launch(struct rw *rw, struct rw_cmd *cmd, size_t from, const struct rw_text *input)
{
    struct rw_cursor w = {.rw = rw, .cmd = cmd, .at = from, .input = input};

    if (rw->depth > 32)
        return;
    rw->depth++;
    for (int i = 0; i < 32 && w.at < cmd->fields.count; i++) {
        const struct rw_function *function = rw_function_find(rw, rw_word(&w, w.at));
        if (function && i) { /* `srun bash -c f` with an exported function */
            rw_walk_function(rw, rw_function_find(rw, rw_word(&w, w.at)), &cmd->fields, w.at + 1);
            break;
        }
        if (!step(&w))
            break;
    }
    if (strcmp(cmd->fields.items[0].string, "exec") == 0 && cmd->fields.count > 1)
        rw->leaving = RW_EXITS;
    rw->depth--;
}

void rw_record(struct rw *rw, const struct rw_cmd *cmd)
{
    rw->cmds = rw_more(&rw->arena, rw->cmds, rw->cmd_count, &rw->cmd_capacity, sizeof(*rw->cmds));
    struct rw_cmd *kept = &rw->cmds[rw->cmd_count++];
    *kept = *cmd;
    kept->piped = rw->piped > 0;
    kept->background = rw->background > 0;
    kept->shell = rw_shells_now(rw);
    if (!rw->env_count)
        return;
    kept->asked = rw_alloc(&rw->arena, rw->env_count * sizeof(*kept->asked));
    kept->asked_set = rw_alloc(&rw->arena, rw->env_count * sizeof(*kept->asked_set));
    for (size_t i = 0; i < rw->env_count; i++) {
        const struct rw_var *var = rw_var_at(rw, rw->env_names[i], strlen(rw->env_names[i]));
        const char *inherited = rw_env_get(rw, rw->env_names[i]);
        if (var->value && !var->value->unset && (var->exported || inherited) &&
            rw_env_passes(cmd, rw->env_names[i])) {
            kept->asked_set[i] = true;
            if (!var->value->unknown && var->value->count == 1)
                kept->asked[i] = var->value->items[0].text;
        }
    }
}

void rw_run(struct rw *rw, struct rw_cmd *cmd, const struct rw_text *input)
{
    struct rw_function *function = rw_function_find(rw, cmd->fields.items[0].string);

    rw->steps += 4;
    if (function) {
        rw_walk_function(rw, function, &cmd->fields, 1);
        return;
    }
    if (rw_builtin(rw, cmd, input))
        return;
    rw_put_out(rw, &cmd->fields, input);
    rw_launch(rw, cmd, 0, input);
}
