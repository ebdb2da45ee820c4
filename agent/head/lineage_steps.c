/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/head/lineage_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lib/jsonget.h"

void lineage_steps_free(struct oom_step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++)
        oom_edits_free(&steps[i].edits);
    free(steps);
}

/* "relax@3" -> "relax" */
static void copy_policy_name(char *out, size_t size, const char *versioned)
{
    snprintf(out, size, "%.*s", (int)strcspn(versioned, "@"), versioned);
}

static int fill(struct oom_step *step, const json_t *attempt, const struct oom_incident *before,
                const struct oom_incident *after)
{
    const json_t *decision = json_object_get(attempt, "decision");

    snprintf(step->rung, sizeof(step->rung), "%s", json_get_string(decision, "rung", ""));
    copy_policy_name(step->policy, sizeof(step->policy), json_get_string(decision, "policy", ""));
    step->domain = before->domain;
    step->phase = before->phase;
    step->short_before_bytes = oom_numbers_short_bytes(&before->numbers);
    step->short_after_bytes = after->oom ? oom_numbers_short_bytes(&after->numbers) : OOM_UNSTATED;
    step->not_applied = strcmp(json_get_string(attempt, "applied", ""), "no") == 0;
    if (oom_edits_from_json(json_object_get(attempt, "edits"), &step->edits) < 0)
        return -1;
    if (strcmp(json_get_string(attempt, "outcome", ""), "rejected") == 0) {
        const json_t *cause = json_object_get(json_object_get(attempt, "incident"), "cause");
        const char *knob = oom_edits_named(&step->edits, json_get_string(cause, "text", ""));
        snprintf(step->rejected, sizeof(step->rejected), "%s", knob ? knob : "");
    }
    return 0;
}

/* A decision that takes a rung back marks the newest step of that rung. */
static void mark_taken_back(struct oom_step *steps, size_t count, const json_t *attempt)
{
    const char *rung = json_get_string(json_object_get(attempt, "decision"), "taken_back", "");

    for (size_t i = count; *rung && i-- > 0;)
        if (strcmp(steps[i].rung, rung) == 0 && !steps[i].taken_back) {
            steps[i].taken_back = true;
            return;
        }
}

int lineage_steps(const json_t *attempts, const struct oom_incident *now, struct oom_step **out,
                  size_t *count, struct oom_error *err)
{
    size_t total = json_array_size(attempts);
    struct oom_incident before, after;
    int rc = 0;

    *count = 0;
    *out = calloc(total ? total : 1, sizeof(**out));
    if (!*out)
        return oom_errorf(err, "out of memory");
    oom_incident_init(&before);
    oom_incident_init(&after);
    for (size_t i = 1; rc == 0 && i < total; i++) {
        const json_t *attempt = json_array_get(attempts, i);
        const json_t *decision = json_object_get(attempt, "decision");

        /* The problem stays what it was while an attempt ends for another reason. */
        const json_t *earlier = json_object_get(json_array_get(attempts, i - 1), "incident");
        if (json_get_bool(earlier, "oom", false)) {
            oom_incident_free(&before);
            rc = oom_incident_from_json(earlier, &before, NULL);
        }
        /* A restart by the scheduler is no step of a ladder; an intention has not run yet. */
        if (!json_is_object(decision) ||
            strcmp(json_get_string(attempt, "state", ""), "intended") == 0)
            continue;
        oom_incident_free(&after);
        const json_t *stored = json_object_get(attempt, "incident");
        if (json_is_object(stored))
            oom_incident_from_json(stored, &after, NULL);
        mark_taken_back(*out, *count, attempt);
        if (rc == 0)
            rc = fill(&(*out)[*count], attempt, &before, i == total - 1 && now ? now : &after);
        (*count)++;
    }
    oom_incident_free(&before);
    oom_incident_free(&after);
    if (rc == 0)
        return 0;
    lineage_steps_free(*out, *count);
    *out = NULL;
    *count = 0;
    return oom_errorf(err, "a stored attempt of this lineage is damaged");
}
