/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/head/next_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/head/lineage_steps.h"
#include "agent/lib/jsonget.h"
#include "db/lineages.h"
#include "db/policies.h"

enum { MAX_POLICIES = 4, MAX_REFUSED = 64 };

/* The lineage is over: one row says so, the reply says why. */
static int stop(struct service *service, int64_t id, const char *state, const char *reason,
                const char *advice, json_t **reply, struct oom_error *err)
{
    if (lineage_set_state(service->db, id, state, reason, advice, err) < 0)
        return -1;
    *reply = json_pack("{s:s, s:s, s:s}", "action", "stop", "reason", reason, "advice", advice);
    return 200;
}

static struct oom_policy *load_policy(struct service *service, const json_t *versions,
                                      const char *name, struct oom_error *err)
{
    int64_t version = json_get_int(versions, name, 0);

    if (!version)
        return NULL;
    json_t *document = policies_load(service->db, name, version, NULL, err);
    struct oom_policy *policy = document ? oom_policy_from_json(document, name, err) : NULL;
    json_decref(document);
    if (policy)
        oom_policy_set_version(policy, (int)version);
    return policy;
}

/* The framework's own policy first, then the general ones. */
static size_t load_policies(struct service *service, const json_t *lineage, const json_t *body,
                            struct oom_policy **out, struct oom_error *err)
{
    const json_t *versions = json_object_get(lineage, "policies");
    const char *wanted = json_get_string(json_object_get(lineage, "options"), "policy", "auto");
    const char *names[MAX_POLICIES] = {json_get_string(body, "framework", ""), "pytorch", "host"};
    size_t count = 0;

    if (*wanted && strcmp(wanted, "auto") != 0)
        names[0] = wanted;
    for (size_t i = 0; i < 3; i++) {
        if (!*names[i] || (i > 0 && strcmp(names[i], names[0]) == 0))
            continue;
        struct oom_policy *policy = load_policy(service, versions, names[i], err);
        if (policy)
            out[count++] = policy;
    }
    return count;
}

static int retry_limit(const struct service *service, const json_t *options)
{
    int64_t wanted = json_get_int(options, "max_retries", service->limits->default_retries);

    if (wanted < 0)
        wanted = 0;
    if (service->limits->max_retries && wanted > service->limits->max_retries)
        wanted = service->limits->max_retries;
    return (int)wanted;
}

/* Decided retries so far; restarts by the scheduler do not count. */
static int retries_used(const json_t *attempts, int64_t number)
{
    int used = 0;

    for (int64_t i = 1; i < number; i++)
        used += json_is_object(json_object_get(json_array_get(attempts, (size_t)i), "decision"));
    return used;
}

static bool allows_training(const json_t *options)
{
    const char *allow = json_get_string(options, "allow", "");

    return strstr(allow, "training") != NULL;
}

static int decide(struct service *service, const json_t *lineage, const json_t *attempts,
                  int64_t number, const json_t *body, struct oom_decision *decision,
                  struct oom_error *err)
{
    const json_t *options = json_object_get(lineage, "options");
    struct oom_policy *policies[MAX_POLICIES] = {NULL};
    const char *refused[MAX_REFUSED + 1] = {NULL}, *refused_why[MAX_REFUSED + 1] = {NULL};
    struct oom_incident incident;
    struct oom_values values = {NULL, 0};
    struct oom_step *steps = NULL;
    size_t step_count = 0, policy_count, i;
    json_t *item;
    int rc = -1;

    oom_incident_init(&incident);
    json_array_foreach(json_object_get(body, "refused"), i, item)
    {
        if (i >= MAX_REFUSED)
            break;
        refused[i] = json_get_string(item, "rung", "");
        refused_why[i] = json_get_string(item, "why", "");
    }
    policy_count = load_policies(service, lineage, body, policies, err);
    if (policy_count == 0) {
        snprintf(decision->reason, sizeof(decision->reason), "no policy of this lineage fits: %s",
                 *err->text ? err->text : "none is enabled");
        rc = 0;
        goto out;
    }
    if (oom_incident_from_json(json_object_get(body, "incident"), &incident, err) < 0 ||
        oom_values_from_json(json_object_get(body, "values"), &values) < 0 ||
        lineage_steps(attempts, &incident, &steps, &step_count, err) < 0)
        goto out;
    enum oom_mode mode = OOM_MODE_AUTO;
    oom_mode_parse(json_get_string(options, "mode", "auto"), &mode);
    struct oom_case input = {
        .incident = &incident,
        .values = &values,
        .steps = steps,
        .step_count = step_count,
        .max_retries = retry_limit(service, options),
        .retries_used = retries_used(attempts, number),
        .allow_training = allows_training(options),
        .mode = mode,
        .refused = refused,
        .refused_why = refused_why,
    };
    rc =
        oom_decide((const struct oom_policy *const *)policies, policy_count, &input, decision, err);
out:
    for (i = 0; i < policy_count; i++)
        oom_policy_free(policies[i]);
    lineage_steps_free(steps, step_count);
    oom_values_free(&values);
    oom_incident_free(&incident);
    return rc;
}

/* The edits of all attempts so far and these, relative to what the user submitted. */
static json_t *fold_edits(const json_t *attempt, const struct oom_edits *edits)
{
    struct oom_edits total = {NULL, 0};
    json_t *json = NULL;

    if (oom_edits_from_json(json_object_get(attempt, "total_edits"), &total) == 0) {
        size_t i;
        for (i = 0; i < edits->count; i++)
            if (oom_edits_add(&total, edits->items[i].knob, edits->items[i].old_value,
                              edits->items[i].new_value, edits->items[i].where) < 0)
                break;
        if (i == edits->count)
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

static int decided(struct service *service, const json_t *lineage, const json_t *attempts,
                   int64_t number, const json_t *body, json_t **reply, struct oom_error *err)
{
    int64_t id = json_get_int(lineage, "id", 0);
    const json_t *options = json_object_get(lineage, "options");
    struct oom_decision decision;
    int status = -1;

    oom_decision_init(&decision);
    if (decide(service, lineage, attempts, number, body, &decision, err) < 0)
        goto out;
    json_t *skipped = NULL;
    if (decision.retry && json_get_bool(options, "dry_run", false)) {
        char reason[sizeof(decision.reason) + 64];
        snprintf(reason, sizeof(reason), "dry run: rung %s of %s would be next (%s)", decision.rung,
                 decision.policy, decision.reason);
        status = stop(service, id, "stopped", reason, decision.advice, reply, err);
    } else if (decision.retry) {
        status = store_retry(service, id, attempts, number, &decision, reply, err);
    } else {
        status = stop(service, id, "stopped", decision.reason, decision.advice, reply, err);
    }
    if (status == 200) {
        json_t *full = oom_decision_to_json(&decision);
        skipped = json_incref(json_object_get(full, "skipped"));
        json_object_set(*reply, "skipped", skipped);
        if (!decision.retry || json_get_bool(options, "dry_run", false))
            evidence_put(service->db, id, number, "skipped", skipped, NULL);
        json_decref(skipped);
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
    const char *state = json_get_string(lineage, "state", "");
    const char *reason = json_get_string(body, "reason", "");
    const json_t *attempt = json_array_get(attempts, (size_t)number - 1);

    if (strcmp(outcome, "completed") == 0)
        return stop(service, id, "completed", "", "", reply, err);
    if (strcmp(outcome, "cancelled") == 0)
        return stop(service, id, "cancelled", reason, "", reply, err);
    if (strcmp(outcome, "oom") != 0)
        return stop(service, id, "failed", reason, "", reply, err);
    if (strcmp(state, "stopped") == 0 || strcmp(state, "held") == 0)
        return stop(service, id, state, json_get_string(lineage, "reason", ""), "", reply, err);
    if (strcmp(json_get_string(attempt, "applied", ""), "no") == 0)
        return stop(service, id, "stopped",
                    "the change that this attempt was to run with did not arrive at the training "
                    "program, and it ran out of memory again; another retry would repeat that",
                    json_get_string(attempt, "proof", ""), reply, err);
    return decided(service, lineage, attempts, number, body, reply, err);
}
