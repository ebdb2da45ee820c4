/* SPDX-License-Identifier: Apache-2.0
 *
 * Knobs that are environment variables ("env:PYTORCH_CUDA_ALLOC_CONF"). */
#include <string.h>

#include "policies/rewrite/launch.h"
#include "policies/rewrite/plan.h"

static const char *variable(const struct rw_knob *knob)
{
    return knob->name + strlen("env:");
}

static const struct rw_env *find(const struct rw_env *env, const char *name)
{
    for (; env; env = env->next)
        if (strcmp(env->name, name) == 0)
            return env;
    return NULL;
}

bool rw_env_value(struct rw *rw, const struct rw_cmd *cmd, const char *name, struct rw_text *out)
{
    const struct rw_env *env = find(cmd->env, name);

    if (rw_ray_value(rw, cmd, name, out))
        return true;
    for (size_t i = 0; !env && cmd->asked && i < rw->env_count; i++) {
        if (strcmp(rw->env_names[i], name) == 0 && cmd->asked_set[i]) {
            *out = cmd->asked[i];
            return true;
        }
    }
    if (!env)
        env = find(cmd->outer_env, name);
    if (env)
        *out = env->value;
    return env != NULL;
}

bool rw_env_satisfied(struct rw *rw, const struct rw_cmd *cmd, const struct rw_knob *knob)
{
    struct rw_text text;
    bool workers = knob->value && rw_ray_reaches(cmd);
    bool set = workers ? rw_ray_value(rw, cmd, variable(knob), &text)
                       : rw_env_value(rw, cmd, variable(knob), &text);

    if (!set && !knob->value)
        return !rw_env_get(rw, variable(knob));
    return set && knob->value && rw_text_known(&text) &&
           strcmp(rw_text_string(rw, &text), knob->value) == 0;
}

/* Launchers in front of which a variable may be set in vain: Ray's workers are started by others,
 * and so are the processes of MPI on other nodes. */
static bool isolates(const struct rw_cmd *cmd)
{
    static const char *const names[] = {"mpirun", "mpiexec", NULL};

    for (size_t i = 0; i < cmd->launch && i < cmd->fields.count; i++)
        for (size_t n = 0; names[n]; n++)
            if (strcmp(cmd->fields.items[i].string, names[n]) == 0)
                return true;
    return cmd->ray || cmd->sealed;
}

void rw_env_places(struct rw *rw, const struct rw_cmd *cmd, const struct rw_knob *knob,
                   const struct rw_knob *knobs, size_t knob_count, struct rw_places *out)
{
    const char *name = variable(knob);
    struct rw_text text;

    if (rw_ray_reaches(cmd) && (knob->value || rw_ray_value(rw, cmd, name, &text))) {
        rw_ray_places(rw, cmd, knob, knobs, knob_count, out);
        return;
    }
    if (knob->value && rw_env_value(rw, cmd, name, &text) && text.count)
        rw_places_replace(rw, &text, knob->value, out);
    const struct rw_env *here = find(cmd->env, name);
    if (!knob->value && here && here->buf)
        rw_places_cut(rw, here->buf, here->start, here->end, out);
    const char *word = knob->value
                           ? rw_printf(&rw->arena, "%s=%s", name, rw_shell_word(rw, knob->value))
                           : rw_printf(&rw->arena, "-u %s", name);
    bool first_is_time = strcmp(cmd->fields.items[0].string, "time") == 0;
    if (knob->value && !isolates(cmd) && !first_is_time && !find(cmd->env, name))
        rw_places_insert(rw, cmd->buf, cmd->start, rw_printf(&rw->arena, "%s ", word), out);
    bool in_env = cmd->env_at && cmd->env_at == cmd->launch;
    rw_places_add(rw, cmd, cmd->launch,
                  in_env && knob->value ? word : rw_printf(&rw->arena, "env %s", word), out);
}
