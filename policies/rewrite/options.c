/* SPDX-License-Identifier: Apache-2.0
 *
 * The ways to bring a knob of a command to its value: change what wins now, or add an override
 * behind everything that could win. */
#include <string.h>
#include <strings.h>

#include "policies/rewrite/calls.h"
#include "policies/rewrite/sides.h"

#define MAX_INSTANCES 128

struct instances {
    struct rw_cmd *items[MAX_INSTANCES];
    size_t count;
};

static void collect(struct rw_analysis *a, uint64_t site, struct instances *out)
{
    out->count = 0;
    for (size_t w = 0; w < a->count; w++)
        for (size_t c = 0; c < a->worlds[w].count && out->count < MAX_INSTANCES; c++)
            if (a->worlds[w].cmds[c].training && a->worlds[w].cmds[c].key == site)
                out->items[out->count++] = &a->worlds[w].cmds[c];
}

/* Way n of the whole is way n of each part, or a part's last one. */
static void combine(struct rw *rw, const struct rw_places *parts, size_t count,
                    struct rw_places *out)
{
    size_t ways = 0;

    for (size_t i = 0; i < count; i++) {
        if (!parts[i].count)
            return;
        if (parts[i].count > ways)
            ways = parts[i].count;
    }
    for (size_t way = 0; way < ways; way++) {
        struct rw_changes all = {0};
        bool ok = true;
        for (size_t i = 0; i < count && ok; i++) {
            size_t pick = way < parts[i].count ? way : parts[i].count - 1;
            const struct rw_changes *part = &parts[i].options[pick];
            for (size_t k = 0; k < part->count && ok; k++)
                ok = rw_changes_add(rw, &all, &part->items[k]);
        }
        if (!ok)
            continue;
        out->options =
            rw_more(&rw->arena, out->options, out->count, &out->capacity, sizeof(*out->options));
        out->options[out->count++] = all;
    }
}

/* Ways to give a hit another value. */
static void change_hit(struct rw *rw, const struct oom_policy *policy, const struct rw_cmd *cmd,
                       const struct rw_hit *hit, const struct rw_knob *knob, struct rw_places *out)
{
    const struct rw_field *field = &cmd->fields.items[hit->value_field];
    const char *whole = NULL;
    struct rw_text slice;

    switch (hit->form) {
    case RW_FORM_SWITCH:
        /* The flag is there without a value: "--x" -> "--x=false", or "--x.no-y" for tyro. */
        if (oom_policy_family(policy) == OOM_FAMILY_TYRO)
            whole = rw_override(rw, policy, cmd, knob);
        else
            whole = rw_printf(&rw->arena, "%s=%s", field->string, knob->value);
        break;
    case RW_FORM_NEGATED:
        whole = rw_override(rw, policy, cmd, knob);
        break;
    case RW_FORM_SEPARATE:
    case RW_FORM_EQUALS:
    case RW_FORM_KEY:
        rw_text_slice(rw, &field->text, hit->from, hit->to, &slice);
        rw_places_replace(rw, &slice, knob->value, out);
        if (hit->form != RW_FORM_SEPARATE)
            whole = rw_printf(&rw->arena, "%.*s%s", (int)hit->from, field->string, knob->value);
        else if (!slice.count) /* "" */
            whole = NULL;
        break;
    }
    if (whole)
        rw_places_replace(rw, &field->text, whole, out);
}

static void add_override(struct rw *rw, const struct oom_policy *policy, const struct rw_cmd *cmd,
                         const struct rw_knob *knob, struct rw_places *out)
{
    const char *words = rw_override(rw, policy, cmd, knob);

    if (words)
        rw_places_add(rw, cmd, rw_args_end(cmd), words, out);
}

/* A called file is out of reach of edits, but what it does with its arguments and variables is
 * not: the override is handed in where the script calls it. */
static void hand_in(struct rw_analysis *a, const struct oom_policy *policy,
                    const struct rw_cmd *cmd, const struct rw_knob *knob, const struct rw_hit *hit,
                    struct rw_places *out)
{
    struct rw *rw = &a->rw;

    for (size_t c = 0; c < a->worlds[0].count; c++) {
        const struct rw_cmd *call = &a->worlds[0].cmds[c];
        if (!call->calls || call->buf->name != rw->root->name)
            continue;
        const char *words = rw_override(rw, policy, cmd, knob);
        if (words)
            rw_places_insert(rw, call->buf, call->end, rw_printf(&rw->arena, " %s", words), out);
        if (!hit || hit->form == RW_FORM_SWITCH || hit->form == RW_FORM_NEGATED)
            continue;
        struct rw_text slice;
        rw_text_slice(rw, &cmd->fields.items[hit->value_field].text, hit->from, hit->to, &slice);
        for (const struct rw_via *via = slice.count ? slice.frags[0].via : NULL; via;
             via = via->next)
            if (via->name && via->fixed && via->total == slice.length)
                rw_places_insert(
                    rw, call->buf, call->start,
                    rw_printf(&rw->arena, "%s=%s ", via->name, rw_shell_word(rw, knob->value)),
                    out);
    }
}

/* Whether all places of a way are in the script itself, or else in files for which there can be
 * copies. */
static bool in_reach(const struct rw_changes *way, bool copies)
{
    bool script = true;

    for (size_t i = 0; i < way->count; i++) {
        const struct rw_buf *buf = way->items[i].buf;
        if (!buf->editable && !(copies && rw_is_side_script(buf)))
            return false;
        script &= buf->editable;
    }
    return script != copies;
}

/* Adds the ways of `from` that are in the script, or those that need copies of other files. */
static void keep(struct rw *rw, const struct rw_places *from, bool copies, struct rw_places *out)
{
    for (size_t i = 0; i < from->count; i++) {
        if (!in_reach(&from->options[i], copies))
            continue;
        out->options =
            rw_more(&rw->arena, out->options, out->count, &out->capacity, sizeof(*out->options));
        out->options[out->count++] = from->options[i];
    }
}

static void make_places(struct rw_analysis *a, const struct oom_policy *policy,
                        const struct rw_knob *knobs, size_t knob_count, const struct instances *all,
                        struct rw_task *task)
{
    struct rw *rw = &a->rw;
    const struct rw_knob *knob = task->knob;
    struct rw_places *parts = rw_alloc(&rw->arena, (MAX_INSTANCES + 1) * sizeof(*parts));
    struct rw_places *adds = rw_alloc(&rw->arena, (MAX_INSTANCES + 1) * sizeof(*adds));
    struct rw_hit *hits = rw_alloc(&rw->arena, RW_MAX_HITS * sizeof(*hits));
    size_t part_count = 0, add_count = 0, hit_count;
    bool append = false;

    for (size_t i = 0; i < all->count; i++) {
        const struct rw_cmd *cmd = all->items[i];
        struct rw_hit hit;
        if (knob->env) {
            if (!rw_env_satisfied(rw, cmd, knob))
                rw_env_places(rw, cmd, knob, knobs, knob_count, &parts[part_count++]);
            continue;
        }
        if (knob->file) {
            struct rw_places change = {0}, add = {0};
            rw_side_places(rw, policy, cmd, knob, &change, &add);
            if (change.count)
                parts[part_count++] = change;
            if (add.count)
                adds[add_count++] = add;
            continue;
        }
        bool found = rw_find_hit(rw, policy, cmd, knob, &hit, hits, &hit_count);
        bool off = !knob->value || !rw_override(rw, policy, cmd, knob);
        if (off) {
            /* All of them go: an earlier one would win again. */
            for (size_t h = 0; h < hit_count && part_count < MAX_INSTANCES; h++)
                rw_places_remove(rw, cmd, hits[h].field, hits[h].value_field + 1,
                                 &parts[part_count++]);
            continue;
        }
        add_override(rw, policy, cmd, knob, &adds[add_count++]);
        if (!found || rw_outrun(policy, cmd, hit.value_field + 1))
            append = true;
        else if (!rw_satisfied(rw, policy, cmd, knob))
            change_hit(rw, policy, cmd, &hit, knob, &parts[part_count++]);
    }
    struct rw_places found_ways = {0};
    if (!append && part_count)
        combine(rw, parts, part_count, &found_ways);
    if (add_count)
        combine(rw, adds, add_count, &found_ways);
    keep(rw, &found_ways, false, &task->places);
    if (!knob->env && !knob->file)
        hand_in(a, policy, task->first, knob, task->hit, &task->places);
    if (rw->source->place_copy)
        keep(rw, &found_ways, true, &task->places);
}

static bool satisfied(struct rw *rw, const struct oom_policy *policy, const struct rw_cmd *cmd,
                      const struct rw_knob *knob)
{
    struct rw_ref ref;

    if (knob->env)
        return rw_env_satisfied(rw, cmd, knob);
    if (knob->file) /* not while it names a file that has a copy */
        return !rw_ref_find(rw, policy, cmd, knob->file, &ref) ||
               !rw_side_copy(knob->sides, knob->file, ref.path);
    return rw_satisfied(rw, policy, cmd, knob);
}

void rw_tasks_make(struct rw_analysis *a, const struct oom_policy *policy,
                   const struct rw_knob *knobs, size_t knob_count, struct rw_tasks *out)
{
    struct rw *rw = &a->rw;
    struct instances *all = rw_alloc(&rw->arena, sizeof(*all));

    memset(out, 0, sizeof(*out));
    for (size_t w = 0; w < a->count; w++) {
        for (size_t c = 0; c < a->worlds[w].count; c++) {
            struct rw_cmd *cmd = &a->worlds[w].cmds[c];
            bool seen = !cmd->training;
            for (size_t i = 0; i < out->count && !seen; i++)
                seen = out->items[i].site == cmd->key;
            if (seen)
                continue;
            collect(a, cmd->key, all);
            for (size_t k = 0; k < knob_count; k++) {
                struct rw_hit *hit = rw_alloc(&rw->arena, sizeof(*hit));
                bool has = !knobs[k].env && !knobs[k].file &&
                           rw_find_hit(rw, policy, cmd, &knobs[k], hit, NULL, NULL);
                if (!has && !knobs[k].env && rw_takes_anything(policy))
                    continue; /* nobody knows whether it would take the flag */
                out->items = rw_more(&rw->arena, out->items, out->count, &out->capacity,
                                     sizeof(*out->items));
                struct rw_task *task = &out->items[out->count++];
                memset(task, 0, sizeof(*task));
                task->knob = &knobs[k];
                task->site = cmd->key;
                task->first = cmd;
                task->hit = has ? hit : NULL;
                task->done = true;
                /* Unknown words may hold what is to go: only in the running command it is seen. */
                task->at_exec = !knobs[k].env && !knobs[k].file && !has &&
                                !rw_override(rw, policy, cmd, &knobs[k]) &&
                                rw_outrun(policy, cmd, cmd->arg0);
                for (size_t i = 0; i < all->count && task->done; i++)
                    task->done = satisfied(rw, policy, all->items[i], &knobs[k]);
                if (!task->done)
                    make_places(a, policy, knobs, knob_count, all, task);
            }
        }
    }
}
