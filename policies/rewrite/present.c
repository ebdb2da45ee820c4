/* SPDX-License-Identifier: Apache-2.0
 *
 * The present values of knobs: what the training command would be given now. */
#include <stdlib.h>
#include <string.h>

#include "policies/rewrite/affected.h"
#include "policies/rewrite/sides.h"

/* The file and line where a text stands: the innermost place that a person would look at. */
static const char *where_of(struct rw *rw, const struct rw_text *text)
{
    const struct rw_frag *frag = text->count ? &text->frags[0] : NULL;

    for (int depth = 0; frag && frag->buf->text && depth < 16; depth++) {
        struct rw_text outer;
        rw_text_slice(rw, frag->buf->text, frag->start,
                      frag->end > frag->start ? frag->end : frag->start + 1, &outer);
        if (!outer.count)
            return NULL;
        frag = rw_alloc(&rw->arena, sizeof(*frag));
        memcpy((void *)(uintptr_t)frag, &outer.frags[0], sizeof(*frag));
    }
    if (!frag || !frag->buf->name)
        return NULL;
    return rw_printf(&rw->arena, "%s:%u", frag->buf->name, rw_line_of(frag->buf, frag->start));
}

/* A setting in a file that the command names. */
static int read_file_knob(struct rw *rw, const struct oom_policy *policy, const struct rw_cmd *cmd,
                          const char *file, const char *path, const struct oom_knob *known,
                          struct oom_values *out)
{
    struct rw_config *config = cmd ? rw_config_open(rw, policy, cmd, file) : NULL;
    const char *value = known->default_value, *where = NULL;
    bool set = rw_config_get(config, rw, policy, cmd, path, &value, &where);

    rw_config_close(config);
    return oom_values_set(out, known->name, set ? value : known->default_value,
                          set ? OOM_SOURCE_CONFIG : OOM_SOURCE_DEFAULT, set ? where : NULL);
}

int rw_read_knob(struct rw_analysis *a, const struct oom_policy *policy, const struct rw_cmd *cmd,
                 struct rw_config *config, const struct oom_knob *known, struct oom_values *out)
{
    const char *value, *where, *path, *file = rw_file_of(policy, known->name, &path);
    struct rw_knob knob = {.name = known->name, .known = known};
    struct rw *rw = &a->rw;
    struct rw_hit hit;
    struct rw_text text;

    if (file)
        return read_file_knob(rw, policy, cmd, file, path, known, out);
    if (strncmp(known->name, "env:", 4) == 0) {
        if (cmd && rw_env_value(rw, cmd, known->name + 4, &text))
            return oom_values_set(out, known->name, rw_text_string(rw, &text), OOM_SOURCE_ENV,
                                  where_of(rw, &text));
        const char *inherited = rw_env_get(rw, known->name + 4);
        return oom_values_set(out, known->name, inherited ? inherited : known->default_value,
                              inherited ? OOM_SOURCE_ENV : OOM_SOURCE_DEFAULT, NULL);
    }
    if (cmd && rw_find_hit(rw, policy, cmd, &knob, &hit, NULL, NULL)) {
        const struct rw_text *whole = &cmd->fields.items[hit.value_field].text;
        rw_text_slice(rw, whole, hit.to > hit.from ? hit.from : 0,
                      hit.to > hit.from ? hit.to : whole->length, &text);
        return oom_values_set(out, known->name, rw_hit_value(rw, cmd, &hit), OOM_SOURCE_SCRIPT,
                              where_of(rw, &text));
    }
    if (rw_config_get(config, rw, policy, cmd, known->name, &value, &where))
        return oom_values_set(out, known->name, value, OOM_SOURCE_CONFIG, where);
    if (strncmp(known->name, "slurm:", 6) == 0) {
        uint32_t line = 0;
        value = rw_sbatch_value(rw, rw->root, known->name + 6, &line);
        if (value)
            return oom_values_set(out, known->name, value, OOM_SOURCE_SCRIPT,
                                  rw_printf(&rw->arena, "%s:%u", rw->root->name, line));
    }
    return oom_values_set(out, known->name, known->default_value, OOM_SOURCE_DEFAULT, NULL);
}

int oom_script_values(const struct oom_script *script, const struct oom_policy *policy,
                      struct oom_values *out, struct oom_error *err)
{
    size_t count = oom_policy_knob_count(policy), env_count = 0;
    const char **env_names = calloc(count + 1, sizeof(*env_names));
    struct rw_config *volatile config = NULL; /* outlives the jump that ends a large script */
    struct rw_analysis a;

    memset(out, 0, sizeof(*out));
    if (!env_names)
        return oom_errorf(err, "out of memory");
    for (size_t i = 0; i < count; i++) {
        const char *name = oom_policy_knob_at(policy, i)->name;
        if (strncmp(name, "env:", 4) == 0)
            env_names[env_count++] = name + 4;
    }
    int rc = rw_analyse(&a, script, script->root->bytes, script->root->length, policy, env_names,
                        env_count, NULL, NULL, err);
    if (rc == 0) {
        if (setjmp(a.rw.bail)) {
            rc = oom_errorf(err, "%s: too large to be read", script->source.name);
        } else {
            const struct rw_cmd *cmd = rw_most_like(&a, script->source.ran);
            config = cmd ? rw_config_open(&a.rw, policy, cmd, NULL) : NULL;
            for (size_t i = 0; rc == 0 && i < count; i++)
                rc = rw_read_knob(&a, policy, cmd, config, oom_policy_knob_at(policy, i), out);
            long processes = rc == 0 && cmd ? rw_launch_processes(cmd) : 0;
            if (processes)
                rc = oom_values_set(out, "launch.processes",
                                    rw_printf(&a.rw.arena, "%ld", processes), OOM_SOURCE_SCRIPT,
                                    NULL);
            if (rc != 0)
                oom_errorf(err, "out of memory");
        }
        rw_config_close(config);
        rw_analysis_free(&a);
    }
    free(env_names);
    if (rc != 0)
        oom_values_free(out);
    return rc;
}
