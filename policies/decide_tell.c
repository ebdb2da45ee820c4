/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/decide_making.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
        snprintf(back, sizeof(back), "%s %s and is taken back; ", out->taken_back,
                 making_back_why(m));
    if (diagnosis[0])
        snprintf(also, sizeof(also), "; %s gathers evidence in this attempt", diagnosis);
    set_reason(
        out, "%s in %s%s: %s%s%s%s", domain_words(problem->domain),
        problem->phase == OOM_PHASE_UNKNOWN ? "an unknown phase" : oom_phase_name(problem->phase),
        bytes, back, rung->about,
        rung->restart ? " (one identical restart: the cause is outside the job's settings)" : "",
        also);
}

int making_retry(struct making *m, const struct oom_incident *problem, struct choice *choice)
{
    struct oom_decision *out = m->out;
    const struct candidate *candidate = &choice->candidate;
    char diagnosis[64];

    if (making_add_diagnosis(m, problem, choice, diagnosis, sizeof(diagnosis)) != 0)
        return -1;
    out->retry = true;
    out->mode = choose_mode(m, choice);
    if (candidate->policy->version > 0)
        snprintf(out->policy, sizeof(out->policy), "%s@%d", candidate->policy->name,
                 candidate->policy->version);
    else
        snprintf(out->policy, sizeof(out->policy), "%s", candidate->policy->name);
    snprintf(out->overrides, sizeof(out->overrides), "%s", candidate->policy->overrides);
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

int making_stop_ladder(struct making *m, const struct oom_incident *problem)
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

int making_stop(struct making *m, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(m->out->reason, sizeof(m->out->reason), fmt, ap);
    va_end(ap);
    advise(m, m->input->incident->domain);
    return 0;
}
