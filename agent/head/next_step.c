/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/head/next_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/head/budget.h"
#include "agent/head/checkpoint.h"
#include "agent/head/deciding.h"
#include "agent/head/lineage_steps.h"
#include "agent/head/rejection.h"
#include "agent/head/remember.h"
#include "agent/lib/jsonget.h"
#include "db/lineages.h"
#include "policies/jsontext.h"

/* The lineage is over: one row says so, the reply says why; an intention whose rung could not be
 * made is gone. `by` (of a stopped one): "ladder", a "bound", "dry-run", or "" for its owner's
 * wish.
 */
static int stop(struct service *service, int64_t id, const char *state, const char *by,
                const char *reason, const char *advice, json_t **reply, struct oom_error *err)
{
    if (lineage_set_state(service->db, id, state, reason, advice, err) < 0 ||
        db_run(service->db, err, "UPDATE lineage SET stopped_by = ? WHERE id = ?", "si", by, id) <
            0 ||
        db_run(service->db, err, "DELETE FROM attempt WHERE lineage = ? AND state = 'intended'",
               "i", id) < 0)
        return -1;
    *reply = json_pack("{s:s, s:o, s:o}", "action", "stop", "reason", oom_json_text(reason),
                       "advice", oom_json_text(advice));
    return 200;
}

/* Decided retries so far; restarts by the scheduler do not count. */
static int retries_used(const json_t *attempts, int64_t number)
{
    int used = 0;

    for (int64_t i = 1; i < number; i++)
        used += json_is_object(json_object_get(json_array_get(attempts, (size_t)i), "decision"));
    return used;
}

/* The remembered settings could not be written into the script. */
static bool refuses_memory(const json_t *refused, const char *rung)
{
    json_t *item;
    size_t i;

    json_array_foreach(refused, i,
                       item) if (strcmp(json_get_string(item, "rung", ""), rung) == 0) return true;
    return false;
}

/* What worked for a lineage like this one, unless its checkpoint forbids it. 1: filled, 0: nothing
 * that fits, -1: err. */
static int as_before(struct service *service, const json_t *lineage,
                     const struct oom_incident *incident, const struct deciding *input,
                     bool allow_training, enum remember_how how, struct oom_decision *decision,
                     struct oom_error *err)
{
    struct oom_values facts = {NULL, 0};
    int rc = oom_values_from_json(input->values, &facts) < 0
                 ? oom_errorf(err, "member \"values\" cannot be read")
                 : remember(service, lineage, incident, &facts, allow_training, how, decision, err);

    oom_values_free(&facts);
    if (rc != 1)
        return rc;
    if (!checkpoint_frozen_knob(input->resume, decision))
        return checkpoint_add_edits(input->resume, decision, err) < 0 ? -1 : 1;
    oom_decision_free(decision);
    oom_decision_init(decision);
    return 0;
}

static int decide(struct service *service, const json_t *lineage, const json_t *attempts,
                  int64_t number, const json_t *body, struct oom_decision *decision,
                  int *retry_limit, struct oom_error *err)
{
    struct oom_incident incident;
    struct oom_step *steps = NULL;
    const json_t *attempt = json_array_get(attempts, (size_t)number - 1);
    bool rejected = strcmp(json_get_string(attempt, "outcome", ""), "rejected") == 0;
    struct deciding input = {
        .versions = json_object_get(lineage, "policies"),
        .options = json_object_get(lineage, "options"),
        .framework = json_get_string(body, "framework", ""),
        .incident =
            rejected ? rejection_problem(attempts, number) : json_object_get(body, "incident"),
        .values = json_object_get(body, "values"),
        .refused = json_object_get(body, "refused"),
        .resume = json_object_get(body, "resume"),
        .retries_used = retries_used(attempts, number),
    };
    const struct deciding_terms terms = deciding_terms(service, &input);
    int rc = -1;

    *retry_limit = terms.retry_limit;
    oom_incident_init(&incident);
    if (oom_incident_from_json(input.incident, &incident, err) < 0)
        goto out;
    /* With one step less when the owner wishes so; then with all that worked. */
    const char *last_rung = json_get_string(json_object_get(attempt, "decision"), "rung", "");
    bool first = input.retries_used == 0, less = strcmp(last_rung, STEP_BACK) == 0;
    bool wished = first && json_get_bool(input.options, "step_back", false);
    bool may = (first || less) && !incident.program[0] && input.retries_used < terms.retry_limit;
    rc = 0;
    if (may && wished && !refuses_memory(input.refused, STEP_BACK))
        rc = as_before(service, lineage, &incident, &input, terms.allow_training, REMEMBER_LESS,
                       decision, err);
    if (rc == 0 && may && !refuses_memory(input.refused, AS_BEFORE))
        rc = as_before(service, lineage, &incident, &input, terms.allow_training,
                       less ? REMEMBER_ALL_AGAIN : REMEMBER_ALL, decision, err);
    if (rc != 0)
        goto out;
    rc = -1;
    if (lineage_steps(attempts, rejected ? NULL : &incident, &steps, &input.step_count, err) == 0) {
        input.steps = steps;
        rc = deciding_run(service, &input, decision, err);
    }
out:
    lineage_steps_free(steps, input.step_count);
    oom_incident_free(&incident);
    return rc < 0 ? -1 : 0;
}

/* The edits of all attempts so far and these, relative to what the user submitted. */
static json_t *fold_edits(const json_t *attempt, const struct oom_edits *edits)
{
    struct oom_edits total = {NULL, 0};
    json_t *json = NULL;

    if (oom_edits_from_json(json_object_get(attempt, "total_edits"), &total) == 0 &&
        oom_edits_append(&total, edits) == 0) {
        /* Otherwise a default would be written out, maybe for a program that does not know it. */
        oom_edits_drop_unchanged(&total);
        json = oom_edits_to_json(&total);
    }
    oom_edits_free(&total);
    return json;
}

static int store_retry(struct service *service, int64_t id, const json_t *attempts, int64_t number,
                       const struct oom_decision *decision, json_t **reply, struct oom_error *err)
{
    json_t *json = oom_decision_to_json(decision);
    json_t *edits = oom_edits_to_json(&decision->edits);
    json_t *total = fold_edits(json_array_get(attempts, (size_t)number - 1), &decision->edits);
    int rc = json && edits && total ? 0 : oom_errorf(err, "out of memory");

    if (rc == 0)
        rc = attempt_insert(service->db, id, number + 1, oom_mode_name(decision->mode), json, edits,
                            total, err);
    if (rc == 0)
        rc = lineage_set_state(service->db, id, "waiting", "", "", err);
    if (rc == 0) {
        *reply = json_copy(json);
        json_object_set_new(*reply, "attempt", json_integer(number + 1));
        json_object_set(*reply, "total_edits", total);
    }
    json_decref(json);
    json_decref(edits);
    json_decref(total);
    return rc == 0 ? 200 : -1;
}

/* What a retry would have been. */
static void tell_dry_run(const struct oom_decision *decision, char *out, size_t size)
{
    int n = snprintf(out, size, "dry run: rung %s of %s would be next", decision->rung,
                     decision->policy);
    size_t used = n < 0 ? 0 : (size_t)n;

    for (size_t i = 0; i < decision->edits.count && used < size; i++) {
        const struct oom_edit *edit = &decision->edits.items[i];
        n = edit->new_value
                ? snprintf(out + used, size - used, "%s %s %s -> %s", i ? "," : ":", edit->knob,
                           edit->old_value ? edit->old_value : "(not set)", edit->new_value)
                : snprintf(out + used, size - used, "%s without %s", i ? "," : ":", edit->knob);
        used += n < 0 ? 0 : (size_t)n;
    }
    if (used < size)
        snprintf(out + used, size - used, " (%s)", decision->reason);
}

static int decided(struct service *service, const json_t *lineage, const json_t *attempts,
                   int64_t number, const json_t *body, json_t **reply, struct oom_error *err)
{
    int64_t id = json_get_int(lineage, "id", 0);
    const json_t *options = json_object_get(lineage, "options");
    struct oom_decision decision;
    int status = -1, retry_limit = 0;
    char bound[400];

    oom_decision_init(&decision);
    int refused = budget_refuses(service, lineage, bound, sizeof(bound), err);
    if (refused)
        return refused < 0 ? -1 : stop(service, id, "stopped", "bound", bound, "", reply, err);
    if (decide(service, lineage, attempts, number, body, &decision, &retry_limit, err) < 0)
        goto out;
    if (decision.retry && json_get_bool(options, "dry_run", false)) {
        char reason[2048];
        tell_dry_run(&decision, reason, sizeof(reason));
        status = stop(service, id, "stopped", "dry-run", reason, decision.advice, reply, err);
    } else if (decision.retry) {
        status = store_retry(service, id, attempts, number, &decision, reply, err);
    } else {
        status =
            stop(service, id, "stopped", "ladder", decision.reason, decision.advice, reply, err);
    }
    if (status == 200 && decision.retry)
        json_object_set_new(*reply, "max_attempts", json_integer(retry_limit + 1));
    if (status == 200) {
        json_t *full = oom_decision_to_json(&decision);
        const json_t *skipped = json_object_get(full, "skipped");
        json_object_set(*reply, "skipped", json_object_get(full, "skipped"));
        if (!decision.retry || json_get_bool(options, "dry_run", false))
            evidence_put(service->db, id, number, "skipped", skipped, NULL);
        json_decref(full);
    }
out:
    oom_decision_free(&decision);
    return status;
}

int next_step(struct service *service, const json_t *lineage, const json_t *attempts,
              int64_t number, const char *outcome, const json_t *body, json_t **reply,
              struct oom_error *err)
{
    int64_t id = json_get_int(lineage, "id", 0);
    const char *wish = json_get_string(lineage, "wish", "");
    const char *reason = json_get_string(body, "reason", "");
    const json_t *attempt = json_array_get(attempts, (size_t)number - 1);

    if (strcmp(outcome, "completed") == 0)
        return stop(service, id, "completed", "", "", "", reply, err);
    if (strcmp(outcome, "cancelled") == 0)
        return stop(service, id, "cancelled", "", reason, "", reply, err);
    bool rejected = strcmp(outcome, "rejected") == 0;
    if (strcmp(outcome, "oom") != 0 && !rejected)
        return stop(service, id, "failed", "", reason, "", reply, err);
    if (strcmp(wish, "stop") == 0)
        return stop(service, id, "stopped", "", "its owner said: no more retries", "", reply, err);
    if (strcmp(wish, "hold") == 0)
        return stop(service, id, "held", "", "its owner holds the present settings", "", reply,
                    err);
    if (!rejected && strcmp(json_get_string(attempt, "applied", ""), "no") == 0)
        return stop(service, id, "stopped", "ladder",
                    "the change that this attempt was to run with did not arrive at the training "
                    "program, and it ran out of memory again; another retry would repeat that",
                    json_get_string(attempt, "proof", ""), reply, err);
    return decided(service, lineage, attempts, number, body, reply, err);
}
