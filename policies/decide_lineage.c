/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "policies/decide_impl.h"

/* Bytes short vary a little from run to run; only a clear growth means "worse". */
#define GROWTH 1.10

static bool is_step(const struct oom_step *step, const char *policy, const char *rung)
{
    return strcmp(step->rung, rung) == 0 &&
           (step->policy[0] == '\0' || !policy || strcmp(step->policy, policy) == 0);
}

static bool met(const struct oom_step *step, enum step_fate fate)
{
    switch (fate) {
    case STEP_TAKEN_BACK:
        return step->taken_back;
    case STEP_REJECTED:
        return step->rejected[0] != '\0';
    case STEP_NOT_APPLIED:
        return step->not_applied;
    }
    return false;
}

int lineage_uses(const struct oom_case *input, const char *policy, const char *rung)
{
    int uses = 0;

    for (size_t i = 0; i < input->step_count; i++)
        if (is_step(&input->steps[i], policy, rung) && !met(&input->steps[i], STEP_TAKEN_BACK))
            uses++;
    return uses;
}

bool lineage_met(const struct oom_case *input, const char *policy, const char *rung,
                 enum step_fate fate)
{
    for (size_t i = 0; i < input->step_count; i++)
        if (is_step(&input->steps[i], policy, rung) && met(&input->steps[i], fate))
            return true;
    return false;
}

const char *lineage_frozen(const struct oom_case *input, const struct oom_edits *edits)
{
    for (const char *const *knob = input->frozen; knob && *knob; knob++)
        for (size_t i = 0; i < edits->count; i++)
            if (strcmp(edits->items[i].knob, *knob) == 0)
                return *knob;
    return NULL;
}

const char *lineage_rejected(const struct oom_case *input, const struct oom_edits *edits)
{
    for (size_t i = 0; i < input->step_count; i++)
        for (size_t k = 0; input->steps[i].rejected[0] && k < edits->count; k++)
            if (edits->items[k].new_value &&
                strcmp(edits->items[k].knob, input->steps[i].rejected) == 0)
                return input->steps[i].rejected;
    return NULL;
}

const char *lineage_refused(const struct oom_case *input, const char *rung)
{
    for (size_t i = 0; input->refused && input->refused[i]; i++)
        if (strcmp(input->refused[i], rung) == 0)
            return input->refused_why && input->refused_why[i] ? input->refused_why[i]
                                                               : "it could not be placed";
    return NULL;
}

/* After this step the very same bytes were missing in the same place. */
static bool left_all_missing(const struct oom_case *input, size_t index)
{
    const struct oom_step *step = &input->steps[index];
    bool last = index + 1 == input->step_count;
    int64_t after =
        last ? oom_numbers_short_bytes(&input->incident->numbers) : step[1].short_before_bytes;
    enum oom_domain domain = last ? input->incident->domain : step[1].domain;
    enum oom_phase phase = last ? input->incident->phase : step[1].phase;

    return step->edits.count > 0 && step->short_before_bytes > 0 && step->domain == domain &&
           step->phase == phase && after == step->short_before_bytes;
}

bool lineage_changed_nothing(const struct oom_case *input, const char *policy, const char *rung)
{
    for (size_t i = 0; i < input->step_count; i++)
        if (is_step(&input->steps[i], policy, rung) && left_all_missing(input, i))
            return true;
    return false;
}

bool lineage_numbers_stand_still(const struct oom_case *input)
{
    const struct oom_step *first = NULL;

    for (size_t i = 0; i < input->step_count; i++) {
        if (!left_all_missing(input, i))
            continue;
        if (first && !is_step(first, input->steps[i].policy, input->steps[i].rung))
            return true;
        if (!first)
            first = &input->steps[i];
    }
    return false;
}

static bool same_value(const char *a, const char *b)
{
    double x, y;

    if (!a || !b)
        return a == b;
    if (oom_expr_read_number(a, &x) && oom_expr_read_number(b, &y))
        return fabs(x - y) < 1e-9 * fmax(1.0, fabs(x));
    return strcasecmp(a, b) == 0;
}

/* Nothing is left of these edits when each knob ends where it began. */
static bool is_nothing(const struct oom_edits *edits)
{
    for (size_t i = 0; i < edits->count; i++)
        if (!same_value(edits->items[i].old_value, edits->items[i].new_value))
            return false;
    return true;
}

/* oom_edits_add folds: the first old value stays, the last new one counts. */
static int fold(struct oom_edits *into, const struct oom_edits *edits)
{
    for (size_t i = 0; i < edits->count; i++) {
        const struct oom_edit *edit = &edits->items[i];
        if (oom_edits_add(into, edit->knob, edit->old_value, edit->new_value, NULL) != 0)
            return -1;
    }
    return 0;
}

bool lineage_is_repeat(const struct oom_case *input, const struct oom_edits *edits)
{
    bool repeat = is_nothing(edits);

    for (size_t from = 0; !repeat && from < input->step_count; from++) {
        struct oom_edits way = {0};
        bool recorded = true;
        int rc = 0;
        for (size_t i = from; rc == 0 && i < input->step_count; i++) {
            recorded = recorded && input->steps[i].edits.count > 0;
            rc = fold(&way, &input->steps[i].edits);
        }
        if (rc == 0)
            rc = fold(&way, edits);
        /* Steps that are known only by name say nothing about settings. */
        repeat = rc == 0 && recorded && is_nothing(&way);
        oom_edits_free(&way);
    }
    return repeat;
}

double lineage_between(const struct oom_case *input, const char *knob, double now, double wanted)
{
    for (size_t i = 0; i < input->step_count; i++) {
        const struct oom_edits *edits = &input->steps[i].edits;
        double before, after;
        if (input->steps[i].taken_back || input->steps[i].not_applied)
            continue;
        for (size_t j = 0; j < edits->count; j++) {
            const struct oom_edit *edit = &edits->items[j];
            if (strcmp(edit->knob, knob) != 0 || !edit->old_value || !edit->new_value ||
                !oom_expr_read_number(edit->old_value, &before) ||
                !oom_expr_read_number(edit->new_value, &after))
                continue;
            bool down_again = wanted < now && after > before && wanted <= before && before < now;
            bool up_again = wanted > now && after < before && wanted >= before && before > now;
            if (down_again || up_again)
                wanted = (before + now) / 2;
        }
    }
    return wanted;
}

/* The value that a knob had before `step` and before all taken-back steps ahead of it: a step that
 * took another one back must not bring that one's value back when it is undone itself. */
static const char *value_before(const struct oom_case *input, size_t step, const char *knob,
                                const char *value)
{
    while (step-- > 0) {
        const struct oom_edits *edits = &input->steps[step].edits;
        for (size_t i = 0; i < edits->count; i++) {
            if (strcmp(edits->items[i].knob, knob) != 0)
                continue;
            if (!input->steps[step].taken_back || !same_value(edits->items[i].new_value, value))
                return value;
            value = edits->items[i].old_value;
        }
    }
    return value;
}

int lineage_undo(const struct oom_case *input, size_t index, struct oom_edits *out)
{
    const struct oom_edits *edits = &input->steps[index].edits;

    for (size_t i = 0; i < edits->count; i++) {
        const struct oom_edit *edit = &edits->items[i];
        const char *before = value_before(input, index, edit->knob, edit->old_value);
        if (!same_value(edit->new_value, before) &&
            oom_edits_add(out, edit->knob, edit->new_value, before, NULL) != 0)
            return -1;
    }
    return 0;
}

const struct rung *lineage_rung(const struct oom_step *step,
                                const struct oom_policy *const *policies, size_t policy_count)
{
    for (size_t i = 0; i < policy_count; i++) {
        if (step->policy[0] && strcmp(policies[i]->name, step->policy) != 0)
            continue;
        const struct rung *rung = policy_rung(policies[i], step->rung);
        if (rung)
            return rung;
    }
    return NULL;
}

/* Less of something never needs more, and neither does an allocator with fewer holes: when more
 * is missing after such a rung, the attempt got further than the one before. */
static bool only_reduces(const struct rung *rung)
{
    static const char *const kinds[] = {"allocator", "tokens", "recompute", "buffer",
                                        "concurrency"};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(rung->kind, kinds[i]) == 0)
            return true;
    return false;
}

/* Only the same phase compares: optimizer state that exists from the first step on, for example,
 * is missing to the forward pass of the second. */
static bool grew(const struct oom_step *step, const struct oom_incident *incident)
{
    int64_t after = oom_numbers_short_bytes(&incident->numbers);

    if (step->domain != incident->domain || step->phase != incident->phase)
        return false;
    if (after == OOM_UNSTATED)
        after = step->short_after_bytes;
    return step->short_before_bytes > 0 && after > 0 &&
           (double)after > GROWTH * (double)step->short_before_bytes;
}

int lineage_worse_step(const struct oom_case *input, const struct oom_policy *const *policies,
                       size_t policy_count, bool *moved)
{
    *moved = false;
    if (input->step_count == 0)
        return -1;
    const struct oom_step *last = &input->steps[input->step_count - 1];
    const struct rung *last_rung = lineage_rung(last, policies, policy_count);
    if (last->rejected[0] && !last->taken_back)
        return (int)input->step_count - 1;
    if (!last->taken_back && !last->not_applied && last->edits.count > 0 &&
        !(last_rung && only_reduces(last_rung)) && grew(last, input->incident))
        return (int)input->step_count - 1;
    for (size_t i = input->step_count; i-- > 0;) {
        const struct oom_step *step = &input->steps[i];
        const struct rung *rung = lineage_rung(step, policies, policy_count);
        if (!step->taken_back && !step->not_applied && rung && step->edits.count > 0 &&
            rung->moves_to != OOM_DOMAIN_NONE && rung->moves_to == input->incident->domain &&
            step->domain != input->incident->domain) {
            *moved = true;
            return (int)i;
        }
    }
    return -1;
}
