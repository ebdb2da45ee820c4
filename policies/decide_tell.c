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

/* " in forward", or in which program when it was not the training. */
static void place_words(const struct oom_incident *problem, char *out, size_t size)
{
    if (problem->program[0])
        snprintf(out, size, " in %s", problem->program);
    else if (problem->phase == OOM_PHASE_UNKNOWN)
        out[0] = '\0';
    else
        snprintf(out, size, " in %s", oom_phase_name(problem->phase));
}

static void tell_retry(const struct making *m, const struct oom_incident *problem,
                       const struct choice *choice, const char *diagnosis)
{
    struct oom_decision *out = m->out;
    const struct rung *rung = choice->candidate.rung;
    int64_t missing = oom_numbers_short_bytes(&problem->numbers);
    char place[128];
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
    place_words(problem, place, sizeof(place));
    set_reason(
        out, "%s%s%s: %s%s%s%s", domain_words(problem->domain), place, bytes, back, rung->about,
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
    const struct oom_start start = {
        .wanted = m->input->mode,
        .facts = m->input->values,
        .domain = m->input->incident->domain,
        .elsewhere = candidate->rung->restart,
        .edits = &choice->edits,
    };
    out->mode = oom_decide_mode(&start, out->mode_why, sizeof(out->mode_why));
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
    char place[128];

    snprintf(out->policy, sizeof(out->policy), "%s", m->policy_count ? m->policies[0]->name : "");
    place_words(problem, place, sizeof(place));
    if (tried > 0)
        set_reason(out,
                   "%s%s: after %zu change%s no rung of the ladder is left that may help "
                   "(skipped: %zu)",
                   domain_words(problem->domain), place, tried, tried == 1 ? "" : "s",
                   out->skipped_count);
    else
        set_reason(out, "%s%s: no rung of the ladder may help here (skipped: %zu)",
                   domain_words(problem->domain), place, out->skipped_count);
    advise(m, problem->domain);
    return 0;
}

int making_stop_elsewhere(struct making *m, const struct oom_incident *problem)
{
    struct oom_decision *out = m->out;
    bool host = problem->domain == OOM_DOMAIN_HOST;

    set_reason(out, "%s in %s: that is not the training, whose settings would not help it",
               domain_words(problem->domain), problem->program);
    snprintf(out->advice, sizeof(out->advice),
             "%shange what %s is given, or how much it does at a time.",
             host ? "Ask for more host memory (--mem), or c" : "C", problem->program);
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
