/* SPDX-License-Identifier: Apache-2.0
 *
 * The proof of an edit: the script before and after, walked in the same worlds, must start the
 * same commands with the same words, apart from the settings that were to change. */
#include <string.h>

#include "policies/rewrite/sides.h"

/* Marks the fields that belong to knobs or carry asked variables. */
static void mark(struct rw *rw, const struct oom_policy *policy, const struct rw_cmd *cmd,
                 const struct rw_knob *knobs, size_t knob_count, bool *skip)
{
    struct rw_hit *hits = rw_alloc(&rw->arena, RW_MAX_HITS * sizeof(*hits));
    struct rw_hit last;
    size_t count;
    bool any_env = false;

    for (size_t k = 0; k < knob_count; k++) {
        if (knobs[k].env) {
            any_env = true;
            continue;
        }
        if (knobs[k].file) {
            rw_ref_mark(rw, policy, cmd, knobs[k].file, skip);
            continue;
        }
        rw_find_hit(rw, policy, cmd, &knobs[k], &last, hits, &count);
        for (size_t h = 0; h < count; h++)
            for (size_t f = hits[h].field; f <= hits[h].value_field; f++)
                skip[f] = true;
    }
    if (any_env)
        rw_ray_mark(cmd, skip);
    for (size_t f = 0; any_env && f < cmd->arg0 && f < cmd->fields.count; f++) {
        const char *text = cmd->fields.items[f].string;
        skip[f] |= strcmp(text, "env") == 0 || strcmp(text, "-u") == 0;
        for (size_t k = 0; k < knob_count; k++)
            skip[f] |= knobs[k].env && strstr(text, knobs[k].name + 4) != NULL;
    }
}

static bool same_words(struct rw_analysis *before, struct rw_analysis *after,
                       const struct oom_policy *policy, const struct rw_knob *knobs,
                       size_t knob_count, const struct rw_cmd *old, const struct rw_cmd *new,
                       struct oom_error *err)
{
    bool *skip_old = rw_alloc(&before->rw.arena, old->fields.count + 1);
    bool *skip_new = rw_alloc(&after->rw.arena, new->fields.count + 1);
    size_t i = 0, j = 0;

    if (old->training) {
        mark(&before->rw, policy, old, knobs, knob_count, skip_old);
        mark(&after->rw, policy, new, knobs, knob_count, skip_new);
    }
    for (;;) {
        while (i < old->fields.count && skip_old[i])
            i++;
        while (j < new->fields.count && skip_new[j])
            j++;
        if (i >= old->fields.count && j >= new->fields.count)
            return true;
        const char *a = i < old->fields.count ? old->fields.items[i].string : NULL;
        const char *b = j < new->fields.count ? new->fields.items[j].string : NULL;
        if (!a || !b || strcmp(a, b) != 0) {
            oom_errorf(err, "\"%.80s\" would become \"%.80s\" in %.80s", a ? a : "", b ? b : "",
                       old->program ? old->program : old->fields.items[0].string);
            return false;
        }
        i++;
        j++;
    }
}

static bool is_knob(const struct rw_env *env, const struct rw_knob *knobs, size_t knob_count)
{
    for (size_t k = 0; k < knob_count; k++)
        if (knobs[k].env && strcmp(env->name, knobs[k].name + strlen("env:")) == 0)
            return true;
    return false;
}

static bool same_env(struct rw_analysis *before, struct rw_analysis *after,
                     const struct rw_knob *knobs, size_t knob_count, const struct rw_cmd *old,
                     const struct rw_cmd *new)
{
    const struct rw_env *a = old->env, *b = new->env;

    for (;; a = a->next, b = b->next) {
        while (a && is_knob(a, knobs, knob_count))
            a = a->next;
        while (b && is_knob(b, knobs, knob_count))
            b = b->next;
        if (!a || !b)
            return a == b;
        if (strcmp(a->name, b->name) != 0 || strcmp(rw_text_string(&before->rw, &a->value),
                                                    rw_text_string(&after->rw, &b->value)) != 0)
            return false;
    }
}

int rw_check(struct rw_analysis *before, struct rw_analysis *after, const struct oom_policy *policy,
             const struct rw_knob *knobs, size_t knob_count, const struct rw_tasks *tasks,
             struct oom_error *err)
{
    for (size_t w = 0; w < before->count; w++) {
        const struct rw_world *x = &before->worlds[w], *y = &after->worlds[w];
        if (x->count != y->count)
            return oom_errorf(err, "the script would start %zu commands instead of %zu", y->count,
                              x->count);
        for (size_t c = 0; c < x->count; c++) {
            const struct rw_cmd *old = &x->cmds[c], *new = &y->cmds[c];
            if (old->calls && new->calls)
                continue;
            if (old->training != new->training)
                return oom_errorf(err, "%.80s would no longer be recognised",
                                  old->program ? old->program : "the command");
            if (!same_words(before, after, policy, knobs, knob_count, old, new, err))
                return -1;
            if (!same_env(before, after, knobs, knob_count, old, new) ||
                !rw_ray_same(old, new, knobs, knob_count))
                return oom_errorf(err, "another environment variable would change");
            for (size_t t = 0; old->training && t < tasks->count; t++) {
                const struct rw_task *task = &tasks->items[t];
                if (task->site != old->key || !(task->accepted || task->done))
                    continue;
                bool ok = task->knob->file
                              ? rw_sides_follow(before, after, policy, task->knob, old, new)
                          : task->knob->env ? rw_env_satisfied(&after->rw, new, task->knob)
                                            : rw_satisfied(&after->rw, policy, new, task->knob);
                if (!ok)
                    return oom_errorf(err, "%.100s would not reach %.80s", task->knob->name,
                                      old->program);
            }
        }
    }
    return 0;
}
