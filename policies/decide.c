/* SPDX-License-Identifier: Apache-2.0 */
#include "oomretry/decide.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/decide_impl.h"

#define MAX_CANDIDATES 96

struct candidate {
    const struct oom_policy *policy;
    const struct rung *rung;
    struct rung_params params;
    int group;
};

/* One decision in the making. */
struct making {
    const struct oom_policy *const *policies;
    size_t policy_count;
    const struct oom_case *input;
    struct oom_edits base; /* what is undone whatever is chosen */
    struct oom_decision *out;
    struct oom_error *err;
};

static int set_reason(struct oom_decision *out, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static int set_reason(struct oom_decision *out, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(out->reason, sizeof(out->reason), fmt, ap);
    va_end(ap);
    return 0;
}

static int add_skip(struct making *m, const char *rung, const char *why)
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
    list[(*count)++] = (struct candidate){policy, rung, policy_entry_params(rung, entry), group};
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
    return a < b ? -1 : a > b; /* glibc's qsort merges: the written order stays */
}

static void add_ladder(const struct making *m, const struct oom_policy *policy,
                       const struct ladder *ladder, int place, struct candidate *list,
                       size_t *count)
{
    for (size_t i = 0; ladder && i < ladder->entry_count; i++)
        add_candidate(m, policy, &ladder->entries[i], place * 1000 + ladder->entries[i].group, list,
                      count);
}

static size_t list_candidates(const struct making *m, const struct oom_incident *problem,
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
    qsort(list, count, sizeof(*list), by_group_and_price);
    return count;
}

static bool is_diagnosis(const struct rung *rung)
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

/* What the lineage says against a rung; "" nothing. */
static const char *history_against(const struct making *m, const struct candidate *candidate,
                                   const char *being_taken_back, char *text, size_t size)
{
    const char *policy = candidate->policy->name;
    const char *name = candidate->rung->name;
    int uses = lineage_uses(m->input, policy, name);
    const char *refused = lineage_refused(m->input, name);

    text[0] = '\0';
    if (refused)
        snprintf(text, size, "cannot be written into this script: %s", refused);
    else if (lineage_not_applied(m->input, policy, name))
        snprintf(text, size, "was tried, and the program was seen not to get it");
    else if (strcmp(being_taken_back, name) == 0)
        snprintf(text, size, "made it worse");
    else if (lineage_taken_back(m->input, policy, name))
        snprintf(text, size, "was taken back before: it made it worse");
    else if (lineage_changed_nothing(m->input, policy, name))
        snprintf(text, size,
                 "changed nothing when it was used: the same bytes were missing after it");
    else if (uses > 0 && (candidate->rung->restart || only_literals(candidate->rung)))
        snprintf(text, size, "was used already");
    else if (uses >= candidate->params.repeat)
        snprintf(text, size, "was used %d times already", uses);
    return text;
}

static int merge(struct oom_edits *into, const struct oom_edits *edits)
{
    for (size_t i = 0; i < edits->count; i++) {
        const struct oom_edit *edit = &edits->items[i];
        if (oom_edits_add(into, edit->knob, edit->old_value, edit->new_value, edit->where) != 0)
            return -1;
    }
    return 0;
}

/* Undoing one step and doing another may leave a knob where it is. */
static void drop_unchanged(struct oom_edits *edits)
{
    size_t kept = 0;

    for (size_t i = 0; i < edits->count; i++) {
        struct oom_edit *edit = &edits->items[i];
        bool same = edit->old_value && edit->new_value
                        ? strcmp(edit->old_value, edit->new_value) == 0
                        : edit->old_value == edit->new_value;
        if (!same) {
            edits->items[kept++] = *edit;
            continue;
        }
        free(edit->knob);
        free(edit->old_value);
        free(edit->new_value);
        free(edit->where);
    }
    edits->count = kept;
}

struct choice {
    bool found;
    struct candidate candidate;
    struct oom_edits edits; /* all of the attempt: base and the rung's */
    double frees_bytes;
};

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
                    const char *being_taken_back, struct choice *weak, struct choice *choice)
{
    struct decide_env env;
    struct rung_plan plan;
    struct oom_edits all = {0};
    char why[256];
    int rc = 0;

    if (history_against(m, candidate, being_taken_back, why, sizeof(why))[0])
        return add_skip(m, candidate->rung->name, why);
    env_init(&env, candidate->policy, m->policies[0], m->input, problem);
    env.base = base;
    enum rung_fit fit = rung_plan(&env, candidate->rung, &candidate->params, &plan);
    if (fit != RUNG_SKIP && (merge(&all, base) != 0 || merge(&all, &plan.edits) != 0)) {
        rc = oom_errorf(m->err, "out of memory");
    } else if (fit == RUNG_SKIP) {
        rc = add_skip(m, candidate->rung->name, plan.why);
    } else {
        drop_unchanged(&all);
        /* An identical restart answers the attempt that just failed, not one before it. */
        if ((!candidate->rung->restart || base->count > 0) && lineage_is_repeat(m->input, &all)) {
            rc = add_skip(m, candidate->rung->name,
                          "would only repeat the settings of an attempt that has failed");
        } else if (fit == RUNG_GOOD) {
            take(choice, candidate, plan.frees_bytes, &all);
            rc = 1;
        } else {
            rc = add_skip(m, candidate->rung->name, plan.why);
            if (!weak->found || plan.frees_bytes > weak->frees_bytes)
                take(weak, candidate, plan.frees_bytes, &all);
        }
    }
    oom_edits_free(&all);
    rung_plan_free(&plan);
    return rc;
}

/* `resources_only` asks only what changes nothing in the program. 1 found, 0 not, -1 error. */
static int choose(struct making *m, const struct oom_incident *problem,
                  const struct oom_edits *base, const char *being_taken_back, bool resources_only,
                  struct choice *choice)
{
    struct candidate list[MAX_CANDIDATES];
    struct choice weak = {0};
    size_t count = list_candidates(m, problem, list);
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < count; i++) {
        if (is_diagnosis(list[i].rung))
            continue;
        if (resources_only && strcmp(list[i].rung->kind, "resources") != 0)
            continue;
        rc = consider(m, problem, &list[i], base, being_taken_back, &weak, choice);
    }
    if (rc == 0 && weak.found && !resources_only) {
        /* Nothing is known to be enough: the strongest of those that fall short. */
        take(choice, &weak.candidate, weak.frees_bytes, &weak.edits);
        rc = 1;
    }
    oom_edits_free(&weak.edits);
    return rc;
}

/* --- diagnosis ----------------------------------------------------------------------------------
 */

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
static int undo_diagnosis(struct making *m)
{
    if (m->input->step_count == 0)
        return 0;
    const struct oom_step *last = &m->input->steps[m->input->step_count - 1];
    for (size_t p = 0; p < m->policy_count; p++) {
        for (size_t r = 0; r < m->policies[p]->rung_count; r++) {
            const struct rung *rung = &m->policies[p]->rungs[r];
            if (!is_diagnosis(rung) || !step_holds(m, last, rung))
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
static int add_diagnosis(struct making *m, const struct oom_incident *problem,
                         struct choice *choice, char *name, size_t size)
{
    struct candidate list[MAX_CANDIDATES];
    size_t count = list_candidates(m, problem, list);

    name[0] = '\0';
    for (size_t i = 0; i < count && !name[0]; i++) {
        struct decide_env env;
        struct rung_plan plan;
        if (!is_diagnosis(list[i].rung))
            continue;
        if (was_diagnosed(m, list[i].rung)) {
            if (add_skip(m, list[i].rung->name, "has served already") != 0)
                return -1;
            continue;
        }
        env_init(&env, list[i].policy, m->policies[0], m->input, problem);
        env.base = &choice->edits;
        enum rung_fit fit = rung_plan(&env, list[i].rung, &list[i].params, &plan);
        int rc = 0;
        if (fit == RUNG_SKIP)
            rc = add_skip(m, list[i].rung->name, plan.why);
        else if (merge(&choice->edits, &plan.edits) != 0)
            rc = oom_errorf(m->err, "out of memory");
        else
            snprintf(name, size, "%s", list[i].rung->name);
        rung_plan_free(&plan);
        if (rc != 0)
            return -1;
    }
    return 0;
}

/* --- the outcome --------------------------------------------------------------------------------
 */

static const char *domain_words(enum oom_domain domain)
{
    switch (domain) {
    case OOM_DOMAIN_GPU:
        return "GPU out of memory";
    case OOM_DOMAIN_HOST:
        return "host out of memory";
    case OOM_DOMAIN_SHM:
        return "shared memory ran out";
    case OOM_DOMAIN_KV_CACHE:
        return "the KV cache ran out";
    case OOM_DOMAIN_NONE:
        break;
    }
    return "out of memory";
}

static const char *fact(const struct making *m, const char *name)
{
    return m->input->values ? oom_values_get(m->input->values, name) : NULL;
}

static double fact_number(const struct making *m, const char *name, double otherwise)
{
    double number;
    const char *text = fact(m, name);
    return text && oom_expr_read_number(text, &number) ? number : otherwise;
}

static bool changes_resources(const struct oom_edits *edits)
{
    for (size_t i = 0; i < edits->count; i++)
        if (strncmp(edits->items[i].knob, "slurm:", 6) == 0)
            return true;
    return false;
}

/* Room to start and to reach the place where the last attempt failed. */
static bool time_is_short(const struct making *m)
{
    double left = fact_number(m, "slurm.time_left_s", -1);
    double needed = fact_number(m, "attempt.seconds", 0) + 120;
    return left >= 0 && left < needed;
}

/* A cgroup OOM kill marks the step for good; without its supervisor a job has no allocation to
 * start in. */
static bool in_place_is_out(const struct making *m, const struct choice *choice)
{
    const char *allocation = fact(m, "allocation");

    return changes_resources(&choice->edits) || fact_number(m, "attempt.oom_kills", 0) > 0 ||
           (allocation && strcmp(allocation, "gone") == 0);
}

static enum oom_mode choose_mode(const struct making *m, const struct choice *choice)
{
    const char *scheduler = fact(m, "scheduler");
    const char *requeue = fact(m, "requeue_allowed");
    bool may_requeue = !requeue || strcmp(requeue, "false") != 0;
    enum oom_mode mode = m->input->mode;

    if (!scheduler && mode == OOM_MODE_AUTO)
        return changes_resources(&choice->edits) ? OOM_MODE_REQUEUE : OOM_MODE_INPLACE;
    if (!scheduler)
        return mode;
    if (strcmp(scheduler, "none") == 0)
        return OOM_MODE_INPLACE;
    if (strcmp(scheduler, "ray") == 0)
        return mode == OOM_MODE_AUTO ? OOM_MODE_RESUBMIT : mode;
    if (mode == OOM_MODE_AUTO) {
        /* A dirty GPU asks for another node. */
        bool elsewhere = choice->candidate.rung->restart ||
                         m->input->incident->domain == OOM_DOMAIN_HOST || time_is_short(m);
        mode = elsewhere ? OOM_MODE_REQUEUE : OOM_MODE_INPLACE;
    }
    if (mode == OOM_MODE_INPLACE && in_place_is_out(m, choice))
        mode = OOM_MODE_REQUEUE;
    if (mode == OOM_MODE_REQUEUE && !may_requeue)
        mode = OOM_MODE_RESUBMIT;
    return mode;
}

static void tell_retry(const struct making *m, const struct oom_incident *problem,
                       const struct choice *choice, const char *diagnosis)
{
    struct oom_decision *out = m->out;
    const struct rung *rung = choice->candidate.rung;
    int64_t missing = oom_numbers_short_bytes(&problem->numbers);
    char bytes[48] = "";
    char back[128] = "";
    char also[128] = "";

    if (missing > 0) {
        char number[32];
        decide_format_bytes((double)missing, number, sizeof(number));
        snprintf(bytes, sizeof(bytes), ", %s short", number);
    }
    if (out->taken_back[0])
        snprintf(back, sizeof(back), "%s made it worse and is taken back; ", out->taken_back);
    if (diagnosis[0])
        snprintf(also, sizeof(also), "; %s gathers evidence in this attempt", diagnosis);
    set_reason(
        out, "%s in %s%s: %s%s%s%s", domain_words(problem->domain),
        problem->phase == OOM_PHASE_UNKNOWN ? "an unknown phase" : oom_phase_name(problem->phase),
        bytes, back, rung->about,
        rung->restart ? " (one identical restart: the cause is outside the job's settings)" : "",
        also);
}

static int finish_retry(struct making *m, const struct oom_incident *problem, struct choice *choice)
{
    struct oom_decision *out = m->out;
    const struct candidate *candidate = &choice->candidate;
    char diagnosis[64];

    if (add_diagnosis(m, problem, choice, diagnosis, sizeof(diagnosis)) != 0)
        return -1;
    out->retry = true;
    out->mode = choose_mode(m, choice);
    if (candidate->policy->version > 0)
        snprintf(out->policy, sizeof(out->policy), "%s@%d", candidate->policy->name,
                 candidate->policy->version);
    else
        snprintf(out->policy, sizeof(out->policy), "%s", candidate->policy->name);
    snprintf(out->rung, sizeof(out->rung), "%s", candidate->rung->name);
    snprintf(out->kind, sizeof(out->kind), "%s", candidate->rung->kind);
    out->changes_training = candidate->rung->changes_training;
    out->cost = candidate->params.cost;
    out->edits = choice->edits;
    memset(&choice->edits, 0, sizeof(choice->edits));
    tell_retry(m, problem, choice, diagnosis);
    /* The chosen rung may have been noted as weak on the way. */
    for (size_t i = 0; i < out->skipped_count; i++) {
        if (strcmp(out->skipped[i].rung, out->rung) != 0)
            continue;
        memmove(&out->skipped[i], &out->skipped[i + 1],
                (out->skipped_count - i - 1) * sizeof(*out->skipped));
        out->skipped_count--;
        break;
    }
    return 0;
}

static bool skipped_for(const struct oom_decision *out, const char *part, char *names, size_t size)
{
    size_t used = 0;

    names[0] = '\0';
    for (size_t i = 0; i < out->skipped_count; i++) {
        if (!strstr(out->skipped[i].why, part) || used + 3 >= size)
            continue;
        int n = snprintf(names + used, size - used, "%s%s", used ? ", " : "", out->skipped[i].rung);
        used += n > 0 ? (size_t)n : 0;
    }
    return used > 0;
}

static void advise(const struct making *m, enum oom_domain domain)
{
    struct oom_decision *out = m->out;
    char names[200];
    size_t used = 0;

    if (skipped_for(out, "--oom-allow=training", names, sizeof(names)))
        used = (size_t)snprintf(out->advice, sizeof(out->advice),
                                "With --oom-allow=training these may be tried: %s. ", names);
    for (size_t p = 0; p < m->policy_count; p++) {
        const json_t *advice = json_object_get(m->policies[p]->document, "advice");
        const char *text = json_string_value(json_object_get(advice, oom_domain_name(domain)));
        if (!text || used >= sizeof(out->advice))
            continue;
        snprintf(out->advice + used, sizeof(out->advice) - used, "%s", text);
        return;
    }
}

static int finish_stop(struct making *m, const struct oom_incident *problem)
{
    struct oom_decision *out = m->out;
    size_t tried = m->input->step_count;

    snprintf(out->policy, sizeof(out->policy), "%s", m->policy_count ? m->policies[0]->name : "");
    if (tried > 0)
        set_reason(out,
                   "%s in %s: after %zu change%s no rung of the ladder is left that may help "
                   "(skipped: %zu)",
                   domain_words(problem->domain), oom_phase_name(problem->phase), tried,
                   tried == 1 ? "" : "s", out->skipped_count);
    else
        set_reason(out, "%s in %s: no rung of the ladder may help here (skipped: %zu)",
                   domain_words(problem->domain), oom_phase_name(problem->phase),
                   out->skipped_count);
    advise(m, problem->domain);
    return 0;
}

static int stop(struct making *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int stop(struct making *m, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(m->out->reason, sizeof(m->out->reason), fmt, ap);
    va_end(ap);
    advise(m, m->input->incident->domain);
    return 0;
}

/* --- deciding -----------------------------------------------------------------------------------
 */

/* What is to be solved once a step is taken back: the problem that it answered. */
static void problem_of_step(const struct oom_case *input, const struct oom_step *step,
                            struct oom_incident *problem)
{
    const struct oom_incident *now = input->incident;

    oom_incident_init(problem);
    problem->oom = true;
    problem->domain = step->domain;
    problem->phase = step->phase;
    memcpy(problem->framework, now->framework, sizeof(problem->framework));
    if (step->domain == now->domain) {
        problem->numbers = now->numbers;
        problem->direction = now->direction;
    }
    /* Only what was missing is known of it: "tried" with nothing free. */
    if (step->short_before_bytes >= 0) {
        problem->numbers.tried_bytes = step->short_before_bytes;
        problem->numbers.free_bytes = 0;
    }
}

/* Takes a step back and solves its problem another way. 1 decided, 0 cannot, -1 error. */
static int take_back(struct making *m, int index, struct choice *choice)
{
    const struct oom_step *step = &m->input->steps[index];
    struct oom_incident problem;
    struct oom_edits base = {0};

    problem_of_step(m->input, step, &problem);
    int rc = merge(&base, &m->base) != 0 || lineage_undo(step, &base) != 0
                 ? oom_errorf(m->err, "out of memory")
                 : choose(m, &problem, &base, step->rung, false, choice);
    if (rc == 1) {
        snprintf(m->out->taken_back, sizeof(m->out->taken_back), "%s", step->rung);
        rc = finish_retry(m, &problem, choice) == 0 ? 1 : -1;
    }
    oom_edits_free(&base);
    oom_incident_free(&problem);
    return rc;
}

static int decide_ladder(struct making *m)
{
    const struct oom_incident *incident = m->input->incident;
    struct choice choice = {0};
    bool moved;
    int worse = lineage_worse_step(m->input, m->policies, m->policy_count, &moved);
    int rc = 0;

    /* More of what ran out keeps a rung that has solved the first problem. */
    if (worse >= 0 && moved)
        rc = choose(m, incident, &m->base, "", true, &choice);
    if (rc == 1)
        rc = finish_retry(m, incident, &choice) == 0 ? 1 : -1;
    if (rc == 0 && worse >= 0)
        rc = take_back(m, worse, &choice);
    /* What made it worse is never built upon; what moved the problem may be all that there is. */
    if (rc == 0 && (worse < 0 || moved)) {
        rc = choose(m, incident, &m->base, "", false, &choice);
        if (rc == 1)
            rc = finish_retry(m, incident, &choice) == 0 ? 1 : -1;
    }
    if (rc == 0)
        rc = finish_stop(m, incident);
    oom_edits_free(&choice.edits);
    return rc < 0 ? -1 : 0;
}

static int count_not_applied(const struct oom_case *input)
{
    int count = 0;

    for (size_t i = 0; i < input->step_count; i++)
        count += input->steps[i].not_applied;
    return count;
}

static int decide(struct making *m)
{
    const struct oom_case *input = m->input;

    if (!input->incident->oom || input->incident->domain == OOM_DOMAIN_NONE)
        return stop(m, "no sign of memory: %.300s",
                    input->incident->summary[0] ? input->incident->summary
                                                : "the job failed for another reason");
    if (m->policy_count == 0)
        return stop(m, "no policy knows this program");
    if (input->retries_used >= input->max_retries)
        return stop(m, "all %d retr%s of this lineage are used (--oom-max-retries)",
                    input->max_retries, input->max_retries == 1 ? "y" : "ies");
    if (count_not_applied(input) >= 2)
        return stop(m, "two changes were seen not to reach the program: the script passes its "
                       "settings in a way that cannot be followed");
    if (undo_diagnosis(m) != 0)
        return -1;
    return decide_ladder(m);
}

int oom_decide(const struct oom_policy *const *policies, size_t policy_count,
               const struct oom_case *input, struct oom_decision *out, struct oom_error *err)
{
    struct making m = {
        .policies = policies, .policy_count = policy_count, .input = input, .out = out, .err = err};

    oom_decision_init(out);
    int rc = decide(&m);
    oom_edits_free(&m.base);
    if (rc != 0)
        oom_decision_free(out);
    return rc;
}
