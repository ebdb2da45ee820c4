/* SPDX-License-Identifier: Apache-2.0
 *
 * Launchers whose command does not get the environment of whoever starts them: containers, ssh,
 * `env -i`, `srun --export=NONE`. */
#include <string.h>

#include "policies/rewrite/launch.h"

static const struct {
    const char *name;
    const char *seals; /* "*": always */
    const char *opens; /* but not with one of these */
} sealing[] = {
    {"docker", "*", ""},
    {"podman", "*", ""},
    {"enroot", "*", ""},
    {"ssh", "*", ""},
    {"pdsh", "*", ""},
    {"clush", "*", ""},
    {"sudo", "*", "-E --preserve-env"},
    {"env", "-i - --ignore-environment", ""},
    {"apptainer", "-e -C --cleanenv --containall", ""},
    {"singularity", "-e -C --cleanenv --containall", ""},
};

static bool is_srun(const struct rw_launcher *l)
{
    return strcmp(l->name, "srun") == 0 || strcmp(l->name, "sbatch") == 0;
}

/* Whether an option is one of a list, also among letters that stand together ("-Ce"). */
static bool is_listed(const struct rw_launcher *l, const char *list, const char *option)
{
    if (rw_in_words(list, option))
        return true;
    if (option[0] != '-' || option[1] == '-' || !option[1] ||
        strspn(option + 1, l->letters) != strlen(option + 1))
        return false;
    for (const char *letter = option + 1; *letter; letter++) {
        char one[] = {'-', *letter, '\0'};
        if (rw_in_words(list, one))
            return true;
    }
    return false;
}

/* What `srun --export=` is given; NULL: the option is not there. */
static const char *exported(const struct rw_cursor *w, size_t from)
{
    const char *value = NULL;

    for (size_t i = from; i < w->at; i++) {
        if (strncmp(rw_word(w, i), "--export=", 9) == 0)
            value = rw_word(w, i) + 9;
        else if (strcmp(rw_word(w, i), "--export") == 0)
            value = rw_word(w, i + 1);
    }
    return value;
}

static bool has_item(const char *list, const char *item)
{
    size_t length = strlen(item);

    for (const char *at = list; *at; at += strspn(at, ",")) {
        size_t n = strcspn(at, ",");
        if (n == length && memcmp(at, item, n) == 0)
            return true;
        at += n;
    }
    return false;
}

static bool seals(const struct rw_cursor *w, const struct rw_launcher *l, size_t from)
{
    const char *list = is_srun(l) ? exported(w, from) : NULL;
    size_t known = 0;

    if (list)
        return !has_item(list, "ALL");
    while (known < sizeof(sealing) / sizeof(sealing[0]) &&
           strcmp(sealing[known].name, l->name) != 0)
        known++;
    if (known == sizeof(sealing) / sizeof(sealing[0]))
        return false;
    bool sealed = *sealing[known].seals == '*';
    for (size_t i = from; i < w->at; i++) {
        sealed |= is_listed(l, sealing[known].seals, rw_word(w, i));
        if (is_listed(l, sealing[known].opens, rw_word(w, i)))
            return false;
    }
    return sealed;
}

static void pass(struct rw *rw, struct rw_cmd *cmd, const char *name, size_t length)
{
    struct rw_env *env = rw_alloc(&rw->arena, sizeof(*env));

    env->name = rw_strndup(&rw->arena, name, length);
    env->next = cmd->passes;
    cmd->passes = env;
}

/* "-e NAME", "--export=NAME,OTHER=1": names without a value hand the variable on. */
static void pass_named(struct rw_cursor *w, size_t from)
{
    static const char *const carriers = "--export --env -e --preserve-env";

    for (size_t i = from; i < w->at; i++) {
        const char *option = rw_word(w, i);
        size_t length = strcspn(option, "=");
        if (!rw_in_words(carriers, rw_strndup(&w->rw->arena, option, length)))
            continue;
        for (const char *at = option[length] ? option + length + 1 : rw_word(w, i + 1); *at;) {
            size_t n = strcspn(at, ",");
            if (!memchr(at, '=', n))
                pass(w->rw, w->cmd, at, n);
            at += n + strspn(at + n, ",");
        }
    }
}

bool rw_env_passes(const struct rw_cmd *cmd, const char *name)
{
    for (const struct rw_env *env = cmd->passes; env; env = env->next)
        if (strcmp(env->name, name) == 0)
            return true;
    return !cmd->sealed;
}

void rw_seal_env(struct rw_cursor *w, const struct rw_launcher *l, size_t from,
                 const struct rw_env *own)
{
    const struct rw_env *all = w->cmd->env, **link = &w->cmd->env;
    bool outside = false;

    if (!seals(w, l, from))
        return;
    w->cmd->sealed = true;
    w->cmd->passes = NULL; /* of a launcher around this one */
    pass_named(w, from);
    for (const struct rw_env *env = all; env; env = env->next) {
        outside |= env == own;
        if (outside && !rw_env_passes(w->cmd, env->name))
            continue;
        struct rw_env *copy = rw_alloc(&w->rw->arena, sizeof(*copy));
        *copy = *env;
        copy->next = NULL;
        *link = copy;
        link = &copy->next;
    }
    *link = NULL;
}
