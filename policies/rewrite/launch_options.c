/* SPDX-License-Identifier: Apache-2.0
 *
 * The words of a command, and the options of a launcher among them: what they swallow, and the
 * environment that some of them carry ("--export=", "--env"). */
#include "policies/rewrite/launch.h"

#include <ctype.h>
#include <string.h>

const char *rw_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

bool rw_is_python(const char *name)
{
    return strncmp(name, "python", 6) == 0 && strspn(name + 6, "0123456789.") == strlen(name + 6);
}

bool rw_in_words(const char *words, const char *word)
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

bool rw_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

const char *rw_word(const struct rw_cursor *w, size_t index)
{
    return index < w->cmd->fields.count ? w->cmd->fields.items[index].string : "";
}

bool rw_word_unknown(const struct rw_cursor *w, size_t index)
{
    return index < w->cmd->fields.count && !rw_text_known(&w->cmd->fields.items[index].text);
}

void rw_keep_env(struct rw_cursor *w, size_t index, uint32_t from, uint32_t to)
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
static void keep_option_env(struct rw_cursor *w, const char *option, size_t index, uint32_t from)
{
    static const char *const carriers = "--export --env -e";
    const char *string = rw_word(w, index);
    size_t length = strcspn(option, "=");

    if (!rw_in_words(carriers, rw_strndup(&w->rw->arena, option, length)))
        return;
    for (uint32_t at = from; string[at];) {
        uint32_t stop = at + (uint32_t)strcspn(string + at, ",");
        rw_keep_env(w, index, at, stop);
        at = stop + (string[stop] ? 1 : 0);
    }
}

/* Steps over a launcher's options. Unknown fields count as options. */
void rw_skip_options(struct rw_cursor *w, const struct rw_launcher *l, bool *module,
                     bool *no_python)
{
    while (w->at < w->cmd->fields.count) {
        const char *option = rw_word(w, w->at);
        if (rw_word_unknown(w, w->at) && option[0] != '-') {
            /* "$OPTIONS train.py": an option when a program is still to come. */
            bool later = false;
            for (size_t i = w->at + 1; i < w->cmd->fields.count && !later; i++) {
                const char *next = rw_word(w, i);
                later = rw_ends_with(next, ".py") || strcmp(next, "-m") == 0 ||
                        rw_is_python(rw_base_name(next)) || rw_launcher_named(rw_base_name(next));
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
            if (module && strcmp(rw_word(w, w->at), "-m") == 0) {
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
            value = !strchr(option, '=') && !rw_in_words(l->flags, plain);
        else if (rw_in_words(l->flags, plain) || strchr(option, '='))
            value = false;
        else
            value = strspn(option + 1, l->letters) != strlen(option + 1) && strlen(option) == 2;
        bool mpi = strncmp(l->name, "mpi", 3) == 0;
        if (mpi && !rw_in_words(l->flags, plain) && !strchr(option, '=') &&
            strspn(option + 1, l->letters) != strlen(option + 1))
            value = true;
        const char *next = rw_word(w, w->at + 1);
        if (value && option[1] == '-' &&
            ((next[0] == '-' && !isdigit((unsigned char)next[1])) ||
             rw_is_python(rw_base_name(next)) || strcmp(rw_base_name(next), "bash") == 0))
            value = false;
        if (strchr(option, '='))
            keep_option_env(w, option, w->at, (uint32_t)strcspn(option, "=") + 1);
        else if (value)
            keep_option_env(w, option, w->at + 1, 0);
        if (mpi && rw_ends_with(option, "mca"))
            w->at++;
        w->at += value ? 2 : 1;
    }
}
