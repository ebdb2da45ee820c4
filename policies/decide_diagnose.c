/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/decide_making.h"

#include <stdio.h>
#include <string.h>

/* A diagnosis is known by its first edit; a remedy of the same step may make the same one. */
static bool step_holds(const struct making *m, const struct oom_step *step,
                       const struct rung *diagnosis)
{
    const char *knob = diagnosis->edits[0].knob;
    const struct rung *remedy = lineage_rung(step, m->policies, m->policy_count);

    for (size_t i = 0; remedy && i < remedy->edit_count; i++)
        if (strcmp(remedy->edits[i].knob, knob) == 0)
            return false;
    for (size_t i = 0; i < step->edits.count; i++)
        if (strcmp(step->edits.items[i].knob, knob) == 0 && step->edits.items[i].new_value)
            return true;
    return false;
}

/* Diagnostic settings serve one attempt: what the last one had is taken away again. */
int making_undo_diagnosis(struct making *m)
{
    if (m->input->step_count == 0)
        return 0;
    const struct oom_step *last = &m->input->steps[m->input->step_count - 1];
    for (size_t p = 0; p < m->policy_count; p++) {
        for (size_t r = 0; r < m->policies[p]->rung_count; r++) {
            const struct rung *rung = &m->policies[p]->rungs[r];
            if (!making_is_diagnosis(rung) || !step_holds(m, last, rung))
                continue;
            for (size_t e = 0; e < last->edits.count; e++) {
                const struct oom_edit *edit = &last->edits.items[e];
                for (size_t k = 0; k < rung->edit_count; k++)
                    if (strcmp(rung->edits[k].knob, edit->knob) == 0 &&
                        oom_edits_add(&m->base, edit->knob, edit->new_value, edit->old_value,
                                      NULL) != 0)
                        return oom_errorf(m->err, "out of memory");
            }
        }
    }
    return 0;
}

static bool was_diagnosed(const struct making *m, const struct rung *rung)
{
    for (size_t i = 0; i < m->input->step_count; i++)
        if (step_holds(m, &m->input->steps[i], rung))
            return true;
    return false;
}

/* An enabled diagnosis rides along with the remedy, once in a lineage. */
int making_add_diagnosis(struct making *m, const struct oom_incident *problem,
                         struct choice *choice, char *name, size_t size)
{
    struct candidate list[MAX_CANDIDATES];
    size_t count = making_candidates(m, problem, list);

    name[0] = '\0';
    for (size_t i = 0; i < count && !name[0]; i++) {
        struct decide_env env;
        struct rung_plan plan;
        if (!making_is_diagnosis(list[i].rung))
            continue;
        if (was_diagnosed(m, list[i].rung)) {
            if (making_skip(m, list[i].rung->name, "has served already") != 0)
                return -1;
            continue;
        }
        env_init(&env, list[i].policy, m->policies[0], m->input, problem);
        env.base = &choice->edits;
        enum rung_fit fit = rung_plan(&env, list[i].rung, &list[i].params, &plan);
        int rc = 0;
        if (fit == RUNG_SKIP)
            rc = making_skip(m, list[i].rung->name, plan.why);
        else if (making_merge(&choice->edits, &plan.edits) != 0)
            rc = oom_errorf(m->err, "out of memory");
        else
            snprintf(name, size, "%s", list[i].rung->name);
        rung_plan_free(&plan);
        if (rc != 0)
            return -1;
    }
    return 0;
}
