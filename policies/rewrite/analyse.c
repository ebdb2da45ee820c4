/* SPDX-License-Identifier: Apache-2.0
 *
 * Which worlds of a script matter, and which of its commands train. */
#include <string.h>

#include "policies/rewrite/affected.h"
#include "policies/rewrite/plan.h"

#define ARENA_LIMIT_BYTES (192U << 20)
#define WORLD_LIMIT       64
#define STEP_LIMIT        400000U /* of one world */
/* Beyond this, decisions are flipped in the first world only, not in the last one as well. */
#define LARGE_SCRIPT_STEPS 8000U
#define TOTAL_STEP_LIMIT   400000U /* of the worlds beyond the first two */

const char *const *rw_cmd_args(struct rw *rw, const struct rw_cmd *cmd)
{
    size_t count = cmd->fields.count > cmd->arg0 ? cmd->fields.count - cmd->arg0 : 0;
    const char **args = rw_alloc(&rw->arena, (count + 1) * sizeof(*args));

    for (size_t i = 0; i < count; i++)
        args[i] = cmd->fields.items[cmd->arg0 + i].string;
    return args;
}

static void walk_world(struct rw_analysis *a, bool last, size_t flip, int choice)
{
    struct rw *rw = &a->rw;

    rw->last = last;
    rw->flip = flip;
    rw->flip_choice = choice;
    uint64_t outer = rw->steps;
    rw->steps = 0;
    rw_walk(rw);
    rw->steps += outer;
    a->worlds[a->count++] = (struct rw_world){rw->cmds, rw->cmd_count, last, flip, choice};
}

/* "train.py --config x.yaml" may be anybody's: where the file can be read, it tells. */
static bool has_a_setting(struct rw *rw, const struct oom_policy *policy, const struct rw_cmd *cmd)
{
    const json_t *recognise = json_object_get(oom_policy_json(policy), "recognise");
    const json_t *settings = json_object_get(recognise, "with_setting");
    struct rw_config *config = settings ? rw_config_open(rw, policy, cmd, NULL) : NULL;
    bool found = !config;
    const json_t *setting;
    size_t i;

    json_array_foreach(settings, i, setting)
    {
        struct rw_knob knob = {.name = json_string_value(setting)};
        const char *value, *where;
        struct rw_hit hit;
        found = found || rw_config_get(config, rw, policy, cmd, knob.name, &value, &where) ||
                rw_find_hit(rw, policy, cmd, &knob, &hit, NULL, NULL);
    }
    rw_config_close(config);
    return found;
}

static bool recognised(struct rw *rw, const struct oom_policy *policy, const struct rw_cmd *cmd)
{
    const char *const *args = rw_cmd_args(rw, cmd);
    size_t count = cmd->fields.count > cmd->arg0 ? cmd->fields.count - cmd->arg0 : 0;
    const char *program = cmd->program;

    if (!policy)
        return false;
    while (program[0] == '.' && program[1] == '/')
        program += 2;
    if (oom_policy_recognises(policy, program, args, count))
        return has_a_setting(rw, policy, cmd);
    /* "trl sft" may also be known as "trl" with a first argument. */
    const char *blank = cmd->python ? NULL : strchr(program, ' ');
    return blank && !oom_policy_excludes(policy, program) &&
           oom_policy_recognises(policy, rw_strndup(&rw->arena, program, (size_t)(blank - program)),
                                 args, count);
}

/* Where a command of this key and program stands in the table, or would. */
static const struct rw_cmd **slot_of(const struct rw_cmd **table, size_t mask,
                                     const struct rw_cmd *cmd)
{
    size_t at = (size_t)rw_hash(cmd->key, rw_hash_string(cmd->program, strlen(cmd->program)));

    for (at &= mask; table[at]; at = (at + 1) & mask)
        if (table[at]->key == cmd->key && strcmp(table[at]->program, cmd->program) == 0)
            break;
    return &table[at];
}

/* What a policy recognises by its arguments is the same command in the worlds that lack them. */
static void spread_training(struct rw_analysis *a)
{
    size_t size = 16;

    while (size < 2 * a->training)
        size *= 2;
    const struct rw_cmd **table = rw_alloc(&a->rw.arena, size * sizeof(*table));
    for (int put = 1; put >= 0; put--) {
        for (size_t w = 0; w < a->count; w++) {
            for (size_t c = 0; c < a->worlds[w].count; c++) {
                struct rw_cmd *cmd = &a->worlds[w].cmds[c];
                if (!cmd->program || cmd->training != put)
                    continue;
                const struct rw_cmd **slot = slot_of(table, size - 1, cmd);
                if (put) {
                    *slot = cmd;
                } else if (*slot) {
                    cmd->training = true;
                    a->training++;
                }
            }
        }
    }
}

bool rw_takes_anything(const struct oom_policy *policy)
{
    const json_t *recognise = json_object_get(oom_policy_json(policy), "recognise");
    const json_t *glob;
    size_t i;

    json_array_foreach(json_object_get(recognise, "programs"), i,
                       glob) if (strcmp(json_string_value(glob), "*") ==
                                 0) return !json_object_get(recognise, "with_argument");
    return false;
}

/* The general policy knows no programs: of all commands those that look like training, else all
 * that may do it. */
static void narrow_training(struct rw_analysis *a)
{
    size_t likely = 0;

    for (int count = 1; count >= 0; count--) {
        for (size_t w = 0; w < a->count; w++) {
            for (size_t c = 0; c < a->worlds[w].count; c++) {
                struct rw_cmd *cmd = &a->worlds[w].cmds[c];
                if (!cmd->training)
                    continue;
                bool stays = rw_looks_like_training(cmd);
                likely += count && stays;
                if (count || (likely ? stays : rw_may_train(cmd)))
                    continue;
                cmd->training = false;
                a->training--;
            }
        }
    }
}

static void find_training(struct rw_analysis *a, const struct oom_policy *policy)
{
    int ways = policy && a->rw.source->starts_unseen ? 1 : 2;

    a->training = 0;
    for (int guess = 0; guess < ways && !a->training; guess++) {
        for (size_t w = 0; w < a->count; w++) {
            for (size_t c = 0; c < a->worlds[w].count; c++) {
                struct rw_cmd *cmd = &a->worlds[w].cmds[c];
                if (!cmd->program)
                    continue;
                cmd->training =
                    guess ? rw_looks_like_training(cmd) : recognised(&a->rw, policy, cmd);
                a->training += cmd->training;
                a->by_policy = !guess;
            }
        }
        if (!guess && policy && rw_takes_anything(policy))
            narrow_training(a);
    }
    spread_training(a);
}

/* Marks the variables that a text came through. */
static void mark_used(struct rw *rw, const struct rw_text *text, int depth)
{
    for (size_t i = 0; i < text->count; i++) {
        const struct rw_frag *frag = &text->frags[i];
        for (const struct rw_via *via = frag->via; via; via = via->next)
            if (via->name && *via->name)
                rw_var_at(rw, via->name, strlen(via->name))->used = true;
        if (frag->buf->text && depth < 16)
            mark_used(rw, frag->buf->text, depth + 1);
    }
}

/* Whether it has become relevant just now. */
static bool mark_decision(struct rw *rw, struct rw_decision *decision)
{
    if (decision->relevant)
        return false;
    decision->relevant = decision->commands;
    if (decision->name)
        decision->relevant |= rw_var_at(rw, decision->name, strlen(decision->name))->used;
    for (size_t i = 0; i < decision->assigned.count && !decision->relevant; i++)
        decision->relevant = decision->assigned.items[i]->used;
    for (size_t i = 0; i < decision->read.count && decision->relevant; i++)
        decision->read.items[i]->used = true;
    return decision->relevant;
}

static void mark_relevant(struct rw_analysis *a)
{
    struct rw *rw = &a->rw;

    for (size_t w = 0; w < a->count; w++) {
        for (size_t c = 0; c < a->worlds[w].count; c++) {
            const struct rw_cmd *cmd = &a->worlds[w].cmds[c];
            if (!cmd->training)
                continue;
            for (size_t f = 0; f < cmd->fields.count; f++)
                mark_used(rw, &cmd->fields.items[f].text, cmd->buf->text ? 16 : 0);
            /* All words of a text have the text's own origin. */
            if (cmd->buf->text)
                mark_used(rw, cmd->buf->text, 0);
        }
    }
    for (size_t e = 0; e < rw->env_count; e++)
        rw_var_at(rw, rw->env_names[e], strlen(rw->env_names[e]))->used = true;
    /* What the condition of a relevant one reads is used as well, and what that depends on. */
    for (bool more = true; more;) {
        more = false;
        for (size_t d = 0; d < rw->decision_count; d++)
            more |= mark_decision(rw, &rw->decisions[d]);
    }
}

static void explore(struct rw_analysis *a, const struct oom_policy *policy)
{
    struct rw *rw = &a->rw;

    walk_world(a, false, SIZE_MAX, 0);
    if (!rw->decision_count) {
        find_training(a, policy);
        return;
    }
    uint64_t steps = rw->steps;
    walk_world(a, true, SIZE_MAX, 0);
    find_training(a, policy);
    mark_relevant(a);
    uint64_t budget = rw->steps + TOTAL_STEP_LIMIT;
    int bases = steps > LARGE_SCRIPT_STEPS ? 1 : 2;
    for (size_t d = 0; d < rw->decision_count; d++) {
        if (!rw->decisions[d].relevant)
            continue;
        int choices = rw->decisions[d].choices;
        for (int choice = 0; choice < choices; choice++) {
            for (int last = 0; last < bases; last++) {
                int usual = last ? choices - 1 : 0;
                if (choice == usual || a->count >= WORLD_LIMIT || rw->steps > budget)
                    continue;
                walk_world(a, last, d, choice);
            }
        }
    }
    find_training(a, policy);
}

int rw_analyse(struct rw_analysis *a, const struct oom_script *script, const char *bytes,
               size_t length, const struct oom_policy *policy, const char *const *env_names,
               size_t env_count, const struct rw_analysis *like, const struct rw_changes *changes,
               struct oom_error *err)
{
    struct rw *rw = &a->rw;

    memset(a, 0, sizeof(*a));
    rw->arena.limit_bytes = ARENA_LIMIT_BYTES;
    rw->arena.bail = &rw->bail;
    rw->source = &script->source;
    rw->step_limit = STEP_LIMIT;
    rw->env_names = env_names;
    rw->env_count = env_count;
    rw->overlay = changes ? changes->overlay : NULL;
    if (setjmp(rw->bail)) {
        oom_errorf(err, "%s: %s", script->source.name,
                   rw->why ? rw->why : "too large or too deeply nested to be followed");
        rw_analysis_free(a);
        return -1;
    }
    if (bytes == script->root->bytes) {
        rw->root = rw_alloc(&rw->arena, sizeof(*rw->root));
        *rw->root = *script->root;
    } else {
        rw->root = rw_buf_new(rw, bytes, length, script->source.name, script->root->key);
        rw->root->editable = true;
        size_t count = changes ? changes->count : 0;
        struct rw_splice *splices = rw_alloc(&rw->arena, (count + 1) * sizeof(*splices));
        if (changes)
            count = rw_changes_splices(rw, changes, like->rw.root, splices);
        rw_parse_again(rw, rw->root, script->root, splices, count);
    }
    a->worlds = rw_alloc(&rw->arena, (WORLD_LIMIT + 2) * sizeof(*a->worlds));
    if (!like) {
        explore(a, policy);
        return 0;
    }
    for (size_t d = 0; d < like->rw.decision_count; d++)
        rw_decision_at(rw, like->rw.decisions[d].key, like->rw.decisions[d].choices, NULL)
            ->relevant = like->rw.decisions[d].relevant;
    for (size_t w = 0; w < like->count; w++)
        walk_world(a, like->worlds[w].last, like->worlds[w].flip, like->worlds[w].flip_choice);
    find_training(a, policy);
    rw_keep_as(a, like);
    return 0;
}

void rw_analysis_free(struct rw_analysis *a)
{
    rw_arena_free(&a->rw.arena);
    a->count = 0;
}
