/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/decide_making.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int making_skip(struct making *m, const char *rung, const char *why)
{
    struct oom_decision *out = m->out;

    for (size_t i = 0; i < out->skipped_count; i++)
        if (strcmp(out->skipped[i].rung, rung) == 0)
            return 0; /* the first reason is the nearest to the problem */
    struct oom_skip *grown =
        reallocarray(out->skipped, out->skipped_count + 1, sizeof(*out->skipped));
    if (!grown)
        return oom_errorf(m->err, "out of memory");
    out->skipped = grown;
    struct oom_skip *skip = &out->skipped[out->skipped_count++];
    snprintf(skip->rung, sizeof(skip->rung), "%s", rung);
    snprintf(skip->why, sizeof(skip->why), "%s", why);
    return 0;
}

/* --- the ladder ------------------------------------------------------------------------------- */

static const struct oom_policy *entry_policy(const struct making *m, const struct oom_policy *own,
                                             const struct ladder_entry *entry)
{
    if (!entry->policy)
        return own;
    size_t length = strcspn(entry->policy, ":");
    for (size_t i = 0; i < m->policy_count; i++) {
        const char *name = m->policies[i]->name;
        if (strlen(name) == length && strncmp(name, entry->policy, length) == 0)
            return m->policies[i];
    }
    return NULL;
}

static void add_candidate(const struct making *m, const struct oom_policy *own,
                          const struct ladder_entry *entry, int group, struct candidate *list,
                          size_t *count)
{
    const struct oom_policy *policy = entry_policy(m, own, entry);
    const struct rung *rung = policy ? policy_rung(policy, entry->rung) : NULL;

    if (!rung || *count == MAX_CANDIDATES)
        return;
    for (size_t i = 0; i < *count; i++)
        if (list[i].rung == rung)
            return;
    list[*count] =
        (struct candidate){policy, rung, policy_entry_params(rung, entry), group, *count};
    (*count)++;
}

/* Within a group the cheaper comes first; what nobody has measured comes last. */
static int by_group_and_price(const void *left, const void *right)
{
    const struct candidate *a = left;
    const struct candidate *b = right;

    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    double x = a->params.cost < 0 ? 2 : a->params.cost;
    double y = b->params.cost < 0 ? 2 : b->params.cost;
    if (x < y || x > y)
        return x < y ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

static void add_ladder(const struct making *m, const struct oom_policy *policy,
                       const struct ladder *ladder, int place, struct candidate *list,
                       size_t *count)
{
    for (size_t i = 0; ladder && i < ladder->entry_count; i++)
        add_candidate(m, policy, &ladder->entries[i], place * 1000 + ladder->entries[i].group, list,
                      count);
}

size_t making_candidates(const struct making *m, const struct oom_incident *problem,
                         struct candidate *list)
{
    size_t count = 0;

    for (size_t p = 0; p < m->policy_count; p++)
        add_ladder(m, m->policies[p], policy_before(m->policies[p], problem->domain), (int)p, list,
                   &count);
    for (size_t p = 0; p < m->policy_count; p++)
        add_ladder(m, m->policies[p],
                   policy_ladder(m->policies[p], problem->domain, problem->phase),
                   (int)(m->policy_count + p), list, &count);
    /* cppcheck-suppress uninitvar ; add_ladder fills it */
    qsort(list, count, sizeof(*list), by_group_and_price);
    return count;
}

const char *making_back_why(const struct making *m)
{
    const struct oom_case *input = m->input;

    return input->step_count > 0 && input->steps[input->step_count - 1].rejected[0]
               ? "was refused by the program"
               : "made it worse";
}

bool making_is_diagnosis(const struct rung *rung)
{
    return strcmp(rung->kind, "diagnose") == 0;
}

static bool only_literals(const struct rung *rung)
{
    for (size_t i = 0; i < rung->edit_count; i++)
        if (rung->edits[i].to)
            return false;
    return true;
}

/* Fewer tokens always make a difference: where the numbers are no measure, one more step of them
 * comes before what is left of the ladder. */
static bool deserves_another(const struct making *m, const struct candidate *candidate, int uses)
{
    return uses == 1 && strcmp(candidate->rung->kind, "tokens") == 0 &&
           lineage_numbers_stand_still(m->input);
}

/* What the lineage says against a rung; "" nothing. */
static const char *history_against(const struct making *m, const struct candidate *candidate,
                                   const char *being_taken_back, bool once_more, char *text,
                                   size_t size)
{
    const char *policy = candidate->policy->name;
    const char *name = candidate->rung->name;
    int uses = lineage_uses(m->input, policy, name);
    const char *refused = lineage_refused(m->input, name);

    text[0] = '\0';
    if (refused)
        snprintf(text, size, "cannot be written into this script: %s", refused);
    else if (lineage_met(m->input, policy, name, STEP_NOT_APPLIED))
        snprintf(text, size, "was tried, and the program was seen not to get it");
    else if (strcmp(being_taken_back, name) == 0)
        snprintf(text, size, "%s", making_back_why(m));
    else if (lineage_met(m->input, policy, name, STEP_REJECTED))
        snprintf(text, size, "was taken back before: the program refused it");
    else if (lineage_met(m->input, policy, name, STEP_TAKEN_BACK))
        snprintf(text, size, "was taken back before: it made it worse");
    else if (!once_more && lineage_changed_nothing(m->input, policy, name) &&
             !deserves_another(m, candidate, uses))
        snprintf(text, size,
                 "changed nothing when it was used: the same bytes were missing after it");
    else if (uses > 0 && (candidate->rung->restart || only_literals(candidate->rung)))
        snprintf(text, size, "was used already");
    else if (uses >= candidate->params.repeat)
        snprintf(text, size, "was used %d times already", uses);
    return text;
}

int making_merge(struct oom_edits *into, const struct oom_edits *edits)
{
    for (size_t i = 0; i < edits->count; i++) {
        const struct oom_edit *edit = &edits->items[i];
        if (oom_edits_add(into, edit->knob, edit->old_value, edit->new_value, edit->where) != 0)
            return -1;
    }
    return 0;
}

static int take(struct choice *choice, const struct candidate *candidate, double frees,
                struct oom_edits *edits)
{
    oom_edits_free(&choice->edits);
    choice->found = true;
    choice->candidate = *candidate;
    choice->frees_bytes = frees;
    choice->edits = *edits;
    memset(edits, 0, sizeof(*edits));
    return 0;
}

/* Asks one rung. 1: it is the one; 0: go on (it may be kept as the best of the weak). */
static int consider(struct making *m, const struct oom_incident *problem,
                    const struct candidate *candidate, const struct oom_edits *base,
                    const char *being_taken_back, bool once_more, struct choice *weak,
                    struct choice *choice)
{
    struct decide_env env;
    struct rung_plan plan;
    struct oom_edits all = {0};
    char why[256];
    int rc = 0;

    if (history_against(m, candidate, being_taken_back, once_more, why, sizeof(why))[0])
        return making_skip(m, candidate->rung->name, why);
    env_init(&env, candidate->policy, m->policies[0], m->input, problem);
    env.base = base;
    enum rung_fit fit = rung_plan(&env, candidate->rung, &candidate->params, &plan);
    const char *rejected = fit != RUNG_SKIP ? lineage_rejected(m->input, &plan.edits) : NULL;
    if (rejected) {
        snprintf(plan.why, sizeof(plan.why), "this version of the program refuses %.100s",
                 rejected);
        fit = RUNG_SKIP;
    }
    if (fit != RUNG_SKIP &&
        (making_merge(&all, base) != 0 || making_merge(&all, &plan.edits) != 0)) {
        rc = oom_errorf(m->err, "out of memory");
    } else if (fit == RUNG_SKIP) {
        rc = making_skip(m, candidate->rung->name, plan.why);
    } else {
        oom_edits_drop_unchanged(&all); /* one step undone, another done */
        const char *frozen = lineage_frozen(m->input, &all);
        if (frozen) {
            snprintf(why, sizeof(why), "the checkpoint in %.100s would not load with another %s",
                     m->input->checkpoint, frozen);
            rc = making_skip(m, candidate->rung->name, why);
            /* An identical restart answers the attempt that just failed, not one before it. */
        } else if ((!candidate->rung->restart || base->count > 0) &&
                   lineage_is_repeat(m->input, &all)) {
            rc = making_skip(m, candidate->rung->name,
                             "would only repeat the settings of an attempt that has failed");
        } else if (fit == RUNG_GOOD) {
            take(choice, candidate, plan.frees_bytes, &all);
            rc = 1;
        } else {
            rc = making_skip(m, candidate->rung->name, plan.why);
            if (!weak->found || plan.frees_bytes > weak->frees_bytes)
                take(weak, candidate, plan.frees_bytes, &all);
        }
    }
    oom_edits_free(&all);
    rung_plan_free(&plan);
    return rc;
}

/* `resources_only` asks only what changes nothing in the program. 1 found, 0 not, -1 error. */
int making_choose(struct making *m, const struct oom_incident *problem,
                  const struct oom_edits *base, const char *being_taken_back, bool resources_only,
                  struct choice *choice)
{
    struct candidate list[MAX_CANDIDATES];
    struct choice weak = {0};
    size_t count = making_candidates(m, problem, list);
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < count; i++) {
        if (making_is_diagnosis(list[i].rung))
            continue;
        if (resources_only && strcmp(list[i].rung->kind, "resources") != 0)
            continue;
        rc = consider(m, problem, &list[i], base, being_taken_back, false, &weak, choice);
    }
    /* Nothing else is left, and that these changed nothing is only what the numbers say. */
    bool once_more = !weak.found && !resources_only && lineage_numbers_stand_still(m->input);
    for (size_t i = 0; rc == 0 && once_more && i < count; i++)
        if (lineage_changed_nothing(m->input, list[i].policy->name, list[i].rung->name))
            rc = consider(m, problem, &list[i], base, being_taken_back, true, &weak, choice);
    if (rc == 0 && weak.found && !resources_only) {
        /* Nothing is known to be enough: the strongest of those that fall short. */
        take(choice, &weak.candidate, weak.frees_bytes, &weak.edits);
        rc = 1;
    }
    oom_edits_free(&weak.edits);
    return rc;
}
