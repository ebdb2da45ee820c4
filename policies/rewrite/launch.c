/* SPDX-License-Identifier: Apache-2.0
 *
 * From the words of a command to the program that trains: through prefixes (env, time, numactl),
 * job launchers (srun, mpirun), containers, Python launchers (torchrun, accelerate) and shells. */
#include "policies/rewrite/launchers.h"

#include <ctype.h>
#include <string.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool is_python(const char *name)
{
    return strncmp(name, "python", 6) == 0 && strspn(name + 6, "0123456789.") == strlen(name + 6);
}

static bool in_words(const char *words, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = words; *at;) {
        size_t n = strcspn(at, " ");
        bool same = n == length;
        for (size_t i = 0; same && i < n; i++)
            same = at[i] == word[i] || (at[i] == '-' && word[i] == '_');
        if (same)
            return true;
        at += n + strspn(at + n, " ");
    }
    return false;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

/* A cursor over the fields of a command. */
struct walk {
    struct rw *rw;
    struct rw_cmd *cmd;
    size_t at;
    const struct rw_text *input;
};

static const char *word(const struct walk *w, size_t index)
{
    return index < w->cmd->fields.count ? w->cmd->fields.items[index].string : "";
}

static bool unknown(const struct walk *w, size_t index)
{
    return index < w->cmd->fields.count && !rw_text_known(&w->cmd->fields.items[index].text);
}

static void keep_env(struct walk *w, size_t index, uint32_t from, uint32_t to)
{
    const struct rw_text *text = &w->cmd->fields.items[index].text;
    const char *string = w->cmd->fields.items[index].string;
    const char *equals = memchr(string + from, '=', to - from);

    if (!equals)
        return;
    struct rw_env *env = rw_alloc(&w->rw->arena, sizeof(*env));
    env->name = rw_strndup(&w->rw->arena, string + from, (size_t)(equals - string) - from);
    rw_text_slice(w->rw, text, (uint32_t)(equals - string) + 1, to, &env->value);
    env->next = w->cmd->env;
    w->cmd->env = env;
}

/* "--export=ALL,A=1,B=2" of srun, "--env A=1" of containers. */
static void keep_option_env(struct walk *w, const char *option, size_t index, uint32_t from)
{
    static const char *const carriers = "--export --env -e";
    const char *string = word(w, index);
    size_t length = strcspn(option, "=");

    if (!in_words(carriers, rw_strndup(&w->rw->arena, option, length)))
        return;
    for (uint32_t at = from; string[at];) {
        uint32_t stop = at + (uint32_t)strcspn(string + at, ",");
        keep_env(w, index, at, stop);
        at = stop + (string[stop] ? 1 : 0);
    }
}

/* Steps over a launcher's options. Unknown fields count as options. */
static void skip_options(struct walk *w, const struct rw_launcher *l, bool *module, bool *no_python)
{
    while (w->at < w->cmd->fields.count) {
        const char *option = word(w, w->at);
        if (unknown(w, w->at) && option[0] != '-') {
            /* "$OPTIONS train.py": an option when a program is still to come. */
            bool later = false;
            for (size_t i = w->at + 1; i < w->cmd->fields.count && !later; i++) {
                const char *next = word(w, i);
                later = ends_with(next, ".py") || strcmp(next, "-m") == 0 ||
                        is_python(base_name(next)) || rw_launcher_named(base_name(next));
            }
            if (!later)
                return;
            w->at++;
            continue;
        }
        if (option[0] != '-' || !option[1])
            return;
        if (strcmp(option, "--") == 0) {
            w->at++;
            if (module && strcmp(word(w, w->at), "-m") == 0) {
                *module = true;
                w->at++;
            }
            return;
        }
        char *plain = rw_strndup(&w->rw->arena, option, strlen(option));
        for (char *p = plain; *p && *p != '='; p++)
            *p = *p == '_' ? '-' : *p;
        if (module && (strcmp(plain, "-m") == 0 || strcmp(plain, "--module") == 0))
            *module = true;
        if (no_python && strcmp(plain, "--no-python") == 0)
            *no_python = true;
        bool value;
        if (option[1] == '-')
            value = !strchr(option, '=') && !in_words(l->flags, plain);
        else if (in_words(l->flags, plain) || strchr(option, '='))
            value = false;
        else
            value = strspn(option + 1, l->letters) != strlen(option + 1) && strlen(option) == 2;
        bool mpi = strncmp(l->name, "mpi", 3) == 0;
        if (mpi && !in_words(l->flags, plain) && !strchr(option, '=') &&
            strspn(option + 1, l->letters) != strlen(option + 1))
            value = true;
        const char *next = word(w, w->at + 1);
        if (value && option[1] == '-' &&
            ((next[0] == '-' && !isdigit((unsigned char)next[1])) || is_python(base_name(next)) ||
             strcmp(base_name(next), "bash") == 0))
            value = false;
        if (strchr(option, '='))
            keep_option_env(w, option, w->at, (uint32_t)strcspn(option, "=") + 1);
        else if (value)
            keep_option_env(w, option, w->at + 1, 0);
        if (mpi && ends_with(option, "mca"))
            w->at++;
        w->at += value ? 2 : 1;
    }
}

/* Variables that stand in front of a command are set in what it runs. */
static void enter_env(struct rw *rw, const struct rw_cmd *cmd)
{
    for (const struct rw_env *env = cmd->env; env; env = env->next) {
        rw_var_set_text(rw, env->name, &env->value);
        rw_var_at(rw, env->name, strlen(env->name))->exported = true;
    }
}

static void nested_text(struct walk *w, const struct rw_text *text, size_t first_arg)
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
    bool pipefail = rw->pipefail, errexit = rw->errexit;
    rw->pipefail = rw->errexit = false;
    enter_env(rw, w->cmd);
    rw_walk_buf(rw, rw_text_buf(rw, text, w->cmd->key));
    rw->leaving = RW_GOES_ON;
    rw->pipefail = pipefail;
    rw->errexit = errexit;
    rw->positional = saved;
    rw->positional_known = known;
    rw_trail_undo(rw, mark);
    for (size_t i = before; i < rw->cmd_count; i++)
        if (!rw->cmds[i].outer_env)
            rw->cmds[i].outer_env = w->cmd->env;
}

/* A script file: one that the script wrote, a side file, or one out of sight. */
static void script_file(struct walk *w)
{
    struct rw *rw = w->rw;
    const char *path = word(w, w->at);

    struct rw_buf *buf = unknown(w, w->at) ? NULL : rw_file_buf(rw, path, w->cmd->key);
    if (!buf || buf->walking) {
        w->cmd->file = path;
        w->cmd->arg0 = w->at + 1;
        rw_record(rw, w->cmd);
        return;
    }
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
    enter_env(rw, w->cmd);
    buf->walking = true;
    rw_walk_buf(rw, buf);
    buf->walking = false;
    rw->leaving = RW_GOES_ON;
    rw->positional = saved;
    rw->positional_known = known;
    rw_trail_undo(rw, mark);
    /* The call itself is kept too: it is where arguments and variables can be handed in. */
    w->cmd->file = path;
    w->cmd->arg0 = w->at + 1;
    w->cmd->calls = rw->cmd_count > before;
    rw_record(rw, w->cmd);
}

static void shell(struct walk *w)
{
    size_t i = w->at + 1;

    for (; i < w->cmd->fields.count; i++) {
        const char *option = word(w, i);
        if (option[0] != '-' && option[0] != '+')
            break;
        if (strcmp(option, "-o") == 0 || strcmp(option, "+o") == 0 || strcmp(option, "-O") == 0 ||
            strcmp(option, "--rcfile") == 0) {
            i++;
            continue;
        }
        if (option[0] == '-' && option[1] != '-' && strchr(option, 'c')) {
            while (i + 1 < w->cmd->fields.count && word(w, i + 1)[0] == '-')
                i++;
            if (i + 1 < w->cmd->fields.count) {
                nested_text(w, &w->cmd->fields.items[i + 1].text, i + 3);
                return;
            }
        }
        if (option[0] == '-' && option[1] != '-' && strchr(option, 's')) {
            i = w->cmd->fields.count;
            break;
        }
    }
    if (i < w->cmd->fields.count) {
        w->at = i;
        script_file(w);
    } else if (w->input) {
        nested_text(w, w->input, w->cmd->fields.count);
    } else {
        rw_record(w->rw, w->cmd);
    }
}

static void python_module(struct walk *w, bool *again)
{
    const char *module = word(w, w->at);

    const struct rw_launcher *l = rw_launcher_module(module);
    if (l) {
        bool is_module = false, no_python = false;
        w->at++;
        skip_options(w, l, &is_module, &no_python);
        if (no_python) {
            *again = true;
            return;
        }
    }
    w->cmd->program = word(w, w->at);
    w->cmd->python = true;
    w->cmd->arg0 = w->at + 1;
    rw_record(w->rw, w->cmd);
}

static void python(struct walk *w, bool *again)
{
    for (w->at++; w->at < w->cmd->fields.count; w->at++) {
        const char *option = word(w, w->at);
        if (unknown(w, w->at) && option[0] != '-' && w->at + 1 < w->cmd->fields.count &&
            (strcmp(word(w, w->at + 1), "-m") == 0 || ends_with(word(w, w->at + 1), ".py")))
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
            python_module(w, again);
            return;
        }
        if (!option[letter + 1])
            w->at++;
    }
    const char *script = word(w, w->at);
    if (*script && script[0] != '-') {
        w->cmd->program = script;
        w->cmd->python = true;
        w->cmd->arg0 = w->at + 1;
    }
    rw_record(w->rw, w->cmd);
}

static void python_launcher(struct walk *w, const struct rw_launcher *l, bool *again)
{
    bool module = false, no_python = false;

    w->at++;
    skip_options(w, l, &module, &no_python);
    if (no_python) {
        *again = true;
        return;
    }
    if (w->at < w->cmd->fields.count) {
        w->cmd->program = word(w, w->at);
        w->cmd->python = true;
        w->cmd->arg0 = w->at + 1;
    }
    rw_record(w->rw, w->cmd);
}

static void sbatch(struct walk *w, const struct rw_launcher *l)
{
    for (size_t i = w->at + 1; i < w->cmd->fields.count; i++) {
        const char *option = word(w, i);
        const struct rw_text *text = &w->cmd->fields.items[i].text;
        if (strncmp(option, "--wrap=", 7) == 0) {
            struct rw_text inner;
            rw_text_slice(w->rw, text, 7, text->length, &inner);
            nested_text(w, &inner, w->cmd->fields.count);
            return;
        }
        if (strcmp(option, "--wrap") == 0 && i + 1 < w->cmd->fields.count) {
            nested_text(w, &w->cmd->fields.items[i + 1].text, w->cmd->fields.count);
            return;
        }
    }
    w->at++;
    skip_options(w, l, NULL, NULL);
    if (w->at < w->cmd->fields.count)
        script_file(w);
    else if (w->input)
        nested_text(w, w->input, w->cmd->fields.count);
    else
        rw_record(w->rw, w->cmd);
}

/* The last word that is a program by itself: "axolotl train …", "./run.sh". */
static void plain(struct walk *w)
{
    const char *path = word(w, w->at);
    const char *name = base_name(path);
    const char *sub = word(w, w->at + 1);

    if (ends_with(name, ".py")) {
        w->cmd->program = path;
        w->cmd->python = true;
        w->cmd->arg0 = w->at + 1;
    } else if (ends_with(name, ".sh") || (path[0] == '.' && strchr(path, '/')) ||
               ends_with(name, ".sbatch") || ends_with(name, ".slurm")) {
        script_file(w);
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

/* One launcher is stepped over; false when the command is done with. */
static bool step(struct walk *w)
{
    const char *path = word(w, w->at);
    const char *name = base_name(path);
    bool again = false;

    if (assignment_word(path)) {
        keep_env(w, w->at, 0, (uint32_t)strlen(path));
        w->at++;
        return true;
    }
    if (is_python(name) ||
        (unknown(w, w->at) && w->at + 1 < w->cmd->fields.count &&
         (strcmp(word(w, w->at + 1), "-m") == 0 || strcmp(word(w, w->at + 1), "-u") == 0 ||
          ends_with(word(w, w->at + 1), ".py")))) {
        w->cmd->launch = w->at;
        python(w, &again);
        return again;
    }
    if (unknown(w, w->at) && w->at + 1 < w->cmd->fields.count) {
        w->at++;
        return true;
    }
    const struct rw_launcher *l = rw_launcher_named(name);
    if (!l) {
        w->cmd->launch = w->at;
        if (unknown(w, w->at))
            rw_record(w->rw, w->cmd);
        else
            plain(w);
        return false;
    }
    switch (l->kind) {
    case LAUNCH_WRAP:
        w->at++;
        skip_options(w, l, NULL, NULL);
        break;
    case LAUNCH_WRAP_ONE:
        w->at++;
        skip_options(w, l, NULL, NULL);
        w->at++;
        break;
    case LAUNCH_TASKSET:
        w->at++;
        skip_options(w, l, NULL, NULL);
        if (strspn(word(w, w->at), "0123456789abcdefx,-:") == strlen(word(w, w->at)))
            w->at++;
        break;
    case LAUNCH_ENV:
        w->at++;
        for (;;) {
            size_t before = w->at;
            skip_options(w, l, NULL, NULL);
            while (assignment_word(word(w, w->at))) {
                keep_env(w, w->at, 0, (uint32_t)strlen(word(w, w->at)));
                w->at++;
            }
            if (w->at == before)
                break;
        }
        break;
    case LAUNCH_SUBCOMMAND: {
        bool module = false;
        size_t start = w->at++;
        skip_options(w, l, NULL, NULL);
        if (!in_words(l->sub, word(w, w->at))) {
            w->at = start;
            rw_record(w->rw, w->cmd);
            return false;
        }
        w->at++;
        skip_options(w, l, &module, NULL);
        if (module || strcmp(word(w, w->at - 2 < start ? start : w->at - 2), "-m") == 0) {
            w->at -= module ? 0 : 1;
            w->cmd->launch = w->at;
            python_module(w, &again);
            return again;
        }
        break;
    }
    case LAUNCH_SUB_IMAGE:
        w->at++;
        skip_options(w, l, NULL, NULL);
        if (!in_words(l->sub, word(w, w->at))) {
            rw_record(w->rw, w->cmd);
            return false;
        }
        w->at++;
        skip_options(w, l, NULL, NULL);
        w->at++;
        if (strcmp(word(w, w->at), "--") == 0)
            w->at++;
        break;
    case LAUNCH_PYLAUNCH:
        w->cmd->launch = w->at;
        python_launcher(w, l, &again);
        return again;
    case LAUNCH_ACCELERATE:
        w->cmd->launch = w->at;
        if (strcmp(word(w, w->at + 1), "launch") != 0) {
            rw_record(w->rw, w->cmd);
            return false;
        }
        w->at++;
        python_launcher(w, l, &again);
        return again;
    case LAUNCH_SHELL:
        w->cmd->launch = w->at;
        shell(w);
        return false;
    case LAUNCH_SSH: {
        struct rw_text text;
        w->at++;
        skip_options(w, l, NULL, NULL);
        if (w->at + 1 >= w->cmd->fields.count) {
            rw_record(w->rw, w->cmd);
            return false;
        }
        rw_join(w->rw, &w->cmd->fields, w->at + 1, w->cmd->fields.count, &text);
        nested_text(w, &text, w->cmd->fields.count);
        return false;
    }
    case LAUNCH_SBATCH:
        sbatch(w, l);
        return false;
    case LAUNCH_RAY:
        if (strcmp(word(w, w->at + 1), "job") != 0 || strcmp(word(w, w->at + 2), "submit") != 0) {
            rw_record(w->rw, w->cmd);
            return false;
        }
        w->at += 3;
        skip_options(w, l, NULL, NULL);
        w->cmd->ray = true;
        break;
    case LAUNCH_PYTHON:
        break;
    }
    if (w->at >= w->cmd->fields.count) {
        rw_record(w->rw, w->cmd);
        return false;
    }
    w->cmd->launch = w->at;
    return true;
}

void rw_launch(struct rw *rw, struct rw_cmd *cmd, size_t from, const struct rw_text *input)
{
    struct walk w = {.rw = rw, .cmd = cmd, .at = from, .input = input};

    if (rw->depth > 32)
        return;
    rw->depth++;
    for (int i = 0; i < 32 && w.at < cmd->fields.count; i++) {
        const struct rw_function *function = rw_function_find(rw, word(&w, w.at));
        if (function && i) { /* `srun bash -c f` with an exported function */
            rw_walk_function(rw, rw_function_find(rw, word(&w, w.at)), &cmd->fields, w.at + 1);
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
    kept->root_at = rw->root_at;
    if (!rw->env_count)
        return;
    kept->asked = rw_alloc(&rw->arena, rw->env_count * sizeof(*kept->asked));
    kept->asked_set = rw_alloc(&rw->arena, rw->env_count * sizeof(*kept->asked_set));
    for (size_t i = 0; i < rw->env_count; i++) {
        const struct rw_var *var = rw_var_at(rw, rw->env_names[i], strlen(rw->env_names[i]));
        const char *inherited = rw_env_get(rw, rw->env_names[i]);
        if (var->value && !var->value->unset && (var->exported || inherited)) {
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
    if (!rw_builtin(rw, cmd, input))
        rw_launch(rw, cmd, 0, input);
}
