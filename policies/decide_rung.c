/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "policies/decide_impl.h"

/* A change smaller than this is not worth an attempt. */
#define LEAST_CHANGE 0.02

/* Bytes short are a lower bound: what is allocated next is not in the message. */
#define MARGIN 1.25

void decide_format_bytes(double bytes, char *out, size_t size)
{
    if (bytes >= 1073741824.0)
        snprintf(out, size, "%.2f GiB", bytes / 1073741824.0);
    else
        snprintf(out, size, "%.1f MiB", bytes / 1048576.0);
}

void rung_plan_free(struct rung_plan *plan)
{
    oom_edits_free(&plan->edits);
}

static enum rung_fit skip(struct rung_plan *out, const char *why)
{
    snprintf(out->why, sizeof(out->why), "%s", why);
    return RUNG_SKIP;
}

static bool guards_hold(struct decide_env *env, const struct rung *rung, struct rung_plan *out)
{
    for (size_t i = 0; i < rung->guard_count; i++) {
        const struct guard *guard = &rung->guards[i];
        int truth = env_truth(env, guard->require);
        if (truth == 1 || (truth == -1 && guard->pass_when_unknown))
            continue;
        snprintf(out->why, sizeof(out->why), "%s%s", guard->why,
                 truth == -1 ? " (cannot be known here)" : "");
        return false;
    }
    return true;
}

/* How many bytes follow the value that a "fit" rung lowers. */
static double moving_bytes(const struct decide_env *env, const struct rung_params *params)
{
    const struct oom_numbers *n = &env->incident->numbers;
    int64_t held = n->allocated_bytes;

    if (held == OOM_UNSTATED)
        held = n->in_use_bytes;
    if (held == OOM_UNSTATED && n->total_bytes != OOM_UNSTATED && n->free_bytes != OOM_UNSTATED)
        held = n->total_bytes - n->free_bytes;
    if (held == OOM_UNSTATED || n->tried_bytes == OOM_UNSTATED)
        return -1;
    return params->share * (double)held + (double)n->tried_bytes;
}

/* Lowers `scale` as far as the missing bytes ask for. They are a lower bound, since the allocation
 * that failed was one of several: a second use takes a larger step than the first. */
static void fit_scale(const struct decide_env *env, const struct rung *rung,
                      struct rung_params *params)
{
    int64_t missing = oom_numbers_short_bytes(&env->incident->numbers);
    double moving = moving_bytes(env, params);

    if (rung->fit && lineage_uses(env->input, env->policy->name, rung->name) > 0)
        params->scale = fmin(params->scale, fmax(params->scale * params->scale, params->least));
    if (!rung->fit || missing <= 0 || moving <= 0)
        return;
    double needed = 1.0 - MARGIN * (double)missing / moving;
    if (needed < params->scale)
        params->scale = fmax(needed, params->least);
}

/* Fixes a new number to the knob's step and bounds. False: it cannot be had; out->why says. */
static bool bound_number(struct decide_env *env, const struct knob *knob, enum move move,
                         double *number, struct rung_plan *out)
{
    double floor_value = 0, ceiling_value = 0;
    bool has_floor = knob->floor && env_number(env, knob->floor, &floor_value);
    bool has_ceiling = knob->ceiling && env_number(env, knob->ceiling, &ceiling_value);

    if (knob->floor && !has_floor && move == MOVE_LOWER) {
        snprintf(out->why, sizeof(out->why), "the floor of %s cannot be known: %.120s",
                 knob->info.name, oom_expr_text(knob->floor));
        return false;
    }
    if (knob->ceiling && !has_ceiling && move == MOVE_RAISE) {
        snprintf(out->why, sizeof(out->why), "the ceiling of %s cannot be known: %.120s",
                 knob->info.name, oom_expr_text(knob->ceiling));
        return false;
    }
    if (knob->step > 0) {
        double steps = *number / knob->step;
        steps = move == MOVE_RAISE   ? ceil(steps - 1e-6)
                : move == MOVE_LOWER ? floor(steps + 1e-6)
                                     : round(steps);
        *number = steps * knob->step;
    }
    if (strcmp(knob->info.type, "int") == 0)
        *number = move == MOVE_RAISE ? ceil(*number - 1e-6) : floor(*number + 1e-6);
    if (has_floor && *number < floor_value)
        *number = strcmp(knob->info.type, "int") == 0 ? ceil(floor_value - 1e-6) : floor_value;
    if (has_ceiling && *number > ceiling_value)
        *number = strcmp(knob->info.type, "int") == 0 ? floor(ceiling_value + 1e-6) : ceiling_value;
    return true;
}

static void format_number(const struct knob *knob, double number, char *out, size_t size)
{
    if (strcmp(knob->info.type, "int") == 0) {
        snprintf(out, size, "%.0f", number);
        return;
    }
    snprintf(out, size, "%.4f", number);
    size_t n = strlen(out);
    while (n > 2 && out[n - 1] == '0' && out[n - 2] != '.')
        out[--n] = '\0';
}

/* The rung only helps when the value really goes this way. */
static bool moves_enough(const struct knob *knob, enum move move, double now, double number,
                         struct rung_plan *out)
{
    char text[64];
    bool lower = move == MOVE_LOWER;

    if (lower ? number < now - LEAST_CHANGE * fabs(now) : number > now + LEAST_CHANGE * fabs(now))
        return true;
    format_number(knob, now, text, sizeof(text));
    snprintf(out->why, sizeof(out->why), "%s is at its %s already (%s%s%.100s)", knob->info.name,
             lower ? "floor" : "ceiling", text, (lower ? knob->floor : knob->ceiling) ? "; " : "",
             (lower ? knob->floor : knob->ceiling)
                 ? oom_expr_text(lower ? knob->floor : knob->ceiling)
                 : "");
    return false;
}

static bool compute_number(struct decide_env *env, const struct edit_spec *edit,
                           const struct knob *knob, double number, char *text, size_t size,
                           struct rung_plan *out)
{
    struct oom_expr_value now;

    env_knob_value(env, knob, false, &now);
    bool known = now.kind == OOM_EXPR_NUMBER;
    if (known && edit->move != MOVE_ANY)
        number = lineage_between(env->input, knob->info.name, now.number, number);
    if (!bound_number(env, knob, edit->move, &number, out))
        return false;
    if (known && edit->move != MOVE_ANY && !moves_enough(knob, edit->move, now.number, number, out))
        return false;
    format_number(knob, number, text, size);
    return true;
}

/* The new text of one edit. False: it cannot be had, and with it the rung. */
static bool compute(struct decide_env *env, const struct edit_spec *edit, const struct knob *knob,
                    char *text, size_t size, struct rung_plan *out)
{
    struct oom_expr_value value;

    oom_expr_eval(edit->to, env_resolve, env, &value);
    switch (value.kind) {
    case OOM_EXPR_NUMBER:
        return compute_number(env, edit, knob, value.number, text, size, out);
    case OOM_EXPR_STRING:
        snprintf(text, size, "%s", value.text);
        return true;
    case OOM_EXPR_BOOL:
        snprintf(text, size, "%s", value.truth ? "true" : "false");
        return true;
    case OOM_EXPR_NULL:
    case OOM_EXPR_UNKNOWN:
        break;
    }
    snprintf(out->why, sizeof(out->why), "the new value of %s cannot be worked out: %.120s",
             knob->info.name, oom_expr_text(edit->to));
    return false;
}

/* Absent and "false" are the same for a switch; numbers and booleans compare by what they say. */
static bool is_same(const struct decide_env *env, const struct knob *knob, const char *text)
{
    struct oom_edit as_if = {(char *)knob->info.name, NULL, (char *)text, NULL};
    struct oom_edits edits = {&as_if, 1};
    struct decide_env with = *env;
    struct oom_expr_value before, after;

    with.edits = &edits;
    env_knob_value(env, knob, false, &before);
    env_knob_value(&with, knob, false, &after);
    if (before.kind != after.kind || before.kind == OOM_EXPR_UNKNOWN)
        return false;
    switch (before.kind) {
    case OOM_EXPR_NUMBER:
        return fabs(before.number - after.number) <= 1e-9 * fmax(1.0, fabs(before.number));
    case OOM_EXPR_BOOL:
        return before.truth == after.truth;
    case OOM_EXPR_STRING:
        return strcasecmp(before.text, after.text) == 0;
    default:
        return true;
    }
}

static bool plan_edit(struct decide_env *env, const struct edit_spec *edit, struct rung_plan *out)
{
    char text[OOM_EXPR_TEXT];
    const char *new_value = NULL;
    const struct knob *knob = policy_knob(env->policy, edit->knob);

    if (edit->when && env_truth(env, edit->when) != 1)
        return true;
    if (edit->to) {
        if (!compute(env, edit, knob, text, sizeof(text), out))
            return edit->optional;
        new_value = text;
    } else if (!edit->unset) {
        new_value = edit->set_text;
    }
    /* A switch is switched off by taking it away, except where each has its --no-. */
    if (new_value && strcmp(knob->info.type, "switch") == 0 && strcmp(new_value, "false") == 0 &&
        oom_policy_family(env->policy) != OOM_FAMILY_AXOLOTL)
        new_value = NULL;
    if (is_same(env, knob, new_value))
        return true;
    if (oom_edits_add(&out->edits, knob->info.name, env_knob_text(env, knob, false), new_value,
                      NULL) != 0) {
        skip(out, "out of memory");
        return false;
    }
    return true;
}

/* The framework's own checks at start, on the settings as they would be. One that does not hold
 * already is not this rung's doing. */
static bool rules_hold(struct decide_env *after, struct rung_plan *out)
{
    const struct oom_policy *policy = after->policy;
    struct decide_env before = *after;

    before.edits = NULL;
    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct guard *rule = &policy->rules[i];
        if (env_truth(after, rule->require) != 0 || env_truth(&before, rule->require) == 0)
            continue;
        snprintf(out->why, sizeof(out->why), "would be refused at start: %s", rule->why);
        return false;
    }
    return true;
}

static double predicted_bytes(struct decide_env *env, const struct rung *rung,
                              const struct rung_plan *plan, const struct rung_params *params)
{
    double bytes, before, after;

    if (rung->frees)
        return env_number(env, rung->frees, &bytes) ? bytes : -1;
    double moving = moving_bytes(env, params);
    if (!rung->fit || moving <= 0 || plan->edits.count == 0)
        return -1;
    const struct oom_edit *edit = &plan->edits.items[0];
    if (!edit->old_value || !edit->new_value || !oom_expr_read_number(edit->old_value, &before) ||
        !oom_expr_read_number(edit->new_value, &after) || before <= 0)
        return -1;
    /* Generous: this only tells apart what surely cannot be enough. */
    return fmin(1.0, 2.0 * (1.0 - after / before)) * moving;
}

enum rung_fit rung_plan(const struct decide_env *outer, const struct rung *rung,
                        const struct rung_params *entry_params, struct rung_plan *out)
{
    struct decide_env env = *outer;
    struct rung_params params = *entry_params;
    char need[32], gain[32];

    memset(out, 0, sizeof(*out));
    out->frees_bytes = -1;
    env.params = &params;
    if (!params.enabled)
        return skip(out, "switched off in this policy");
    if (!guards_hold(&env, rung, out))
        return RUNG_SKIP;
    if (rung->changes_training && !env.input->allow_training)
        return skip(out, "changes what is trained; needs the owner's --oom-allow=training");
    fit_scale(&env, rung, &params);
    env.edits = &out->edits;
    for (size_t i = 0; i < rung->edit_count; i++)
        if (!plan_edit(&env, &rung->edits[i], out))
            return RUNG_SKIP;
    if (rung->restart)
        return RUNG_GOOD;
    if (out->edits.count == 0)
        return out->why[0] ? RUNG_SKIP : skip(out, "is so already");
    if (!rules_hold(&env, out))
        return RUNG_SKIP;
    out->frees_bytes = predicted_bytes(&env, rung, out, &params);
    int64_t missing = oom_numbers_short_bytes(&env.incident->numbers);
    if (out->frees_bytes < 0 || missing <= 0 || out->frees_bytes >= (double)missing)
        return RUNG_GOOD;
    decide_format_bytes(out->frees_bytes, gain, sizeof(gain));
    decide_format_bytes((double)missing, need, sizeof(need));
    snprintf(out->why, sizeof(out->why), "would free about %s of the %s missing", gain, need);
    return RUNG_WEAK;
}
