/* SPDX-License-Identifier: Apache-2.0
 *
 * The decision that a lineage in this state would get, without storing anything. */
#include <stdlib.h>
#include <string.h>

#include "agent/head/deciding.h"
#include "agent/head/scope.h"
#include "agent/lib/jsonget.h"

enum { MAX_APPLIED = 32, MAX_REFUSALS = 64 };

int plan_policies(struct service *service, const struct service_request *request,
                  const char *const *args, json_t **reply, struct oom_error *err)
{
    char user[SCOPE_USER_ROOM];
    const struct policy_scope scope = scope_of(request, request->query, user, sizeof(user));
    json_t *active = overrides_versions(service->db, &scope, NULL, err);
    json_t *list = active ? overrides_documents(service->db, active, err) : NULL;

    (void)args;
    json_decref(active);
    if (!list)
        return -1;
    *reply = json_pack("{s:o}", "policies", list);
    return 200;
}

static void overlay(json_t *values, const struct oom_edits *edits)
{
    for (size_t i = 0; i < edits->count; i++) {
        const struct oom_edit *edit = &edits->items[i];
        json_object_set_new(values, edit->knob,
                            json_pack("{s:o, s:s}", "value",
                                      edit->new_value ? json_string(edit->new_value) : json_null(),
                                      "source", "script"));
    }
}

/* What the named rung would have changed: the decider is asked until it comes to that rung. */
static int replay(struct service *service, struct deciding *input, const char *rung,
                  struct oom_step *step, struct oom_error *err)
{
    json_t *refused = json_array();
    const json_t *before = input->refused;
    struct oom_decision decision;
    int rc = -1;

    oom_decision_init(&decision);
    input->refused = refused;
    for (int i = 0; i < MAX_REFUSALS; i++) {
        oom_decision_free(&decision);
        if (deciding_run(service, input, &decision, err) < 0)
            break;
        if (!decision.retry) {
            oom_errorf(err, "--applied %s: no such rung is open for this failure", rung);
            break;
        }
        if (strcmp(decision.rung, rung) != 0) {
            json_array_append_new(refused, json_pack("{s:s, s:s}", "rung", decision.rung, "why",
                                                     "another one was applied"));
            continue;
        }
        snprintf(step->rung, sizeof(step->rung), "%s", decision.rung);
        snprintf(step->policy, sizeof(step->policy), "%.*s", (int)strcspn(decision.policy, "@"),
                 decision.policy);
        step->edits = decision.edits;
        decision.edits = (struct oom_edits){NULL, 0};
        rc = 0;
        break;
    }
    input->refused = before;
    json_decref(refused);
    oom_decision_free(&decision);
    return rc;
}

static json_t *plan_reply(const struct oom_decision *decision, const struct oom_step *steps,
                          size_t count)
{
    struct oom_edits total = {NULL, 0};
    json_t *reply = oom_decision_to_json(decision);

    for (size_t s = 0; s <= count; s++)
        oom_edits_append(&total, s < count ? &steps[s].edits : &decision->edits);
    json_object_set_new(reply, "total_edits", oom_edits_to_json(&total));
    oom_edits_free(&total);
    return reply;
}

int plan_make(struct service *service, const struct service_request *request,
              const char *const *args, json_t **reply, struct oom_error *err)
{
    const json_t *body = request->body;
    char user[SCOPE_USER_ROOM];
    const struct policy_scope scope =
        scope_of(request, json_object_get(body, "for"), user, sizeof(user));
    json_t *active = overrides_versions(service->db, &scope, NULL, err);
    json_t *values = json_deep_copy(json_object_get(body, "values"));
    const json_t *applied = json_object_get(body, "applied");
    struct oom_step steps[MAX_APPLIED] = {0};
    struct oom_incident incident;
    struct oom_decision decision;
    int status = -1;
    size_t count = 0;
    struct deciding input = {
        .versions = active,
        .options = json_object_get(body, "options"),
        .framework = json_get_string(body, "framework", ""),
        .incident = json_object_get(body, "incident"),
        .values = values ? values : json_object(),
        .refused = json_object_get(body, "refused"),
        .steps = steps,
    };

    (void)args;
    oom_decision_init(&decision);
    oom_incident_init(&incident);
    if (!active || oom_incident_from_json(input.incident, &incident, err) < 0)
        goto out;
    for (size_t i = 0; i < json_array_size(applied) && i < MAX_APPLIED; i++) {
        const char *rung = json_string_value(json_array_get(applied, i));
        struct oom_step *step = &steps[i];
        if (!rung)
            oom_errorf(err, "member \"applied\" holds names of rungs");
        if (!rung || replay(service, &input, rung, step, err) < 0) {
            status = 400;
            goto out;
        }
        step->domain = incident.domain;
        step->phase = incident.phase;
        step->short_before_bytes = step->short_after_bytes = OOM_UNSTATED;
        overlay((json_t *)input.values, &step->edits);
        input.step_count = ++count;
        input.retries_used++;
    }
    if (deciding_run(service, &input, &decision, err) < 0)
        goto out;
    *reply = plan_reply(&decision, steps, count);
    status = 200;
out:
    for (size_t i = 0; i < count; i++)
        oom_edits_free(&steps[i].edits);
    oom_decision_free(&decision);
    oom_incident_free(&incident);
    json_decref((json_t *)input.values);
    json_decref(active);
    return status;
}
