/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/head/backtest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/head/lineage_steps.h"
#include "agent/lib/jsonget.h"
#include "db/lineages.h"
#include "db/policies.h"
#include "db/policy_admin.h"
#include "oomretry/decide.h"

enum { MAX_INCIDENTS = 1000, MAX_POLICIES = 3 };

struct backtest {
    struct service *service;
    const char *name;
    struct oom_policy *draft;
    int decided, same;
    json_t *changed;
};

static struct oom_policy *load_active(struct service *service, const char *name)
{
    int64_t version = 0;
    json_t *document = policies_load(service->db, name, 0, &version, NULL);
    struct oom_policy *policy = document ? oom_policy_from_json(document, name, NULL) : NULL;

    if (policy)
        oom_policy_set_version(policy, (int)version);
    json_decref(document);
    return policy;
}

/* The attempts up to and with this one. */
static json_t *attempts_until(struct service *service, int64_t lineage, int64_t number)
{
    json_t *all = lineage_attempts(service->db, lineage, NULL);

    for (size_t i = json_array_size(all); i-- > 0;)
        if (json_get_int(json_array_get(all, i), "number", 0) > number)
            json_array_remove(all, i);
    return all;
}

static int decide(const struct oom_case *input, struct oom_policy *const *policies,
                  struct oom_decision *decision)
{
    const struct oom_policy *list[MAX_POLICIES];
    size_t count = 0;

    for (size_t i = 0; i < MAX_POLICIES; i++)
        if (policies[i])
            list[count++] = policies[i];
    return count ? oom_decide(list, count, input, decision, NULL) : -1;
}

static json_t *describe(const struct oom_decision *decision)
{
    json_t *edits = oom_edits_to_json(&decision->edits);

    return json_pack("{s:s, s:s, s:s, s:o}", "action", decision->retry ? "retry" : "stop", "rung",
                     decision->rung, "reason", decision->reason, "edits", edits);
}

static bool alike(const struct oom_decision *a, const struct oom_decision *b)
{
    json_t *x = oom_edits_to_json(&a->edits);
    json_t *y = oom_edits_to_json(&b->edits);
    bool same = a->retry == b->retry && strcmp(a->rung, b->rung) == 0 && json_equal(x, y);

    json_decref(x);
    json_decref(y);
    return same;
}

static void compare(struct backtest *test, const json_t *row, const struct oom_case *input,
                    struct oom_policy **policies, size_t at)
{
    struct oom_decision was, would;
    struct oom_policy *active = policies[at];

    if (decide(input, policies, &was) != 0)
        return;
    policies[at] = test->draft;
    if (decide(input, policies, &would) == 0) {
        test->decided++;
        if (alike(&was, &would))
            test->same++;
        else
            json_array_append_new(test->changed,
                                  json_pack("{s:O, s:O, s:s, s:o, s:o}", "lineage",
                                            json_object_get(row, "lineage"), "attempt",
                                            json_object_get(row, "number"), "incident",
                                            input->incident->summary, "was", describe(&was),
                                            "would_be", describe(&would)));
        oom_decision_free(&would);
    }
    policies[at] = active;
    oom_decision_free(&was);
}

static void replay(struct backtest *test, const json_t *row)
{
    const char *names[MAX_POLICIES] = {json_get_string(row, "framework", ""), "pytorch", "host"};
    struct oom_policy *policies[MAX_POLICIES] = {NULL};
    const json_t *options = json_object_get(row, "options");
    struct oom_incident incident;
    struct oom_values values = {NULL, 0};
    struct oom_step *steps = NULL;
    size_t step_count = 0, at = MAX_POLICIES;
    int64_t lineage = json_get_int(row, "lineage", 0);

    for (size_t i = 0; i < MAX_POLICIES; i++) {
        bool twice = i > 0 && strcmp(names[i], names[0]) == 0;
        if (!twice && strcmp(names[i], test->name) == 0)
            at = i;
        policies[i] = twice || !*names[i] ? NULL : load_active(test->service, names[i]);
    }
    json_t *attempts = at < MAX_POLICIES && policies[at]
                           ? attempts_until(test->service, lineage, json_get_int(row, "number", 0))
                           : NULL;
    if (attempts &&
        oom_incident_from_json(json_object_get(row, "incident"), &incident, NULL) == 0) {
        if (oom_values_from_json(json_object_get(row, "values"), &values) == 0 &&
            lineage_steps(attempts, &incident, &steps, &step_count, NULL) == 0) {
            const struct oom_case input = {
                .incident = &incident,
                .values = &values,
                .steps = steps,
                .step_count = step_count,
                .max_retries = (int)step_count + 1, /* the ladder's answer, not the budget's */
                .retries_used = (int)step_count,
                .allow_training = strstr(json_get_string(options, "allow", ""), "training") != NULL,
            };
            compare(test, row, &input, policies, at);
            lineage_steps_free(steps, step_count);
        }
        oom_incident_free(&incident);
    }
    oom_values_free(&values);
    json_decref(attempts);
    for (size_t i = 0; i < MAX_POLICIES; i++)
        oom_policy_free(policies[i]);
}

int backtest_run(struct service *service, const char *name, const json_t *draft, json_t **reply,
                 struct oom_error *err)
{
    struct backtest test = {.service = service, .name = name};
    size_t i;
    json_t *row;

    test.draft = draft ? oom_policy_from_json(draft, name, err) : load_active(service, name);
    if (!test.draft)
        return draft ? 400 : service_refuse(404, err, "there is no policy \"%s\"", name);
    json_t *rows = policy_admin_incidents(service->db, MAX_INCIDENTS, err);
    test.changed = json_array();
    json_array_foreach(rows, i, row) replay(&test, row);
    oom_policy_free(test.draft);
    json_decref(rows);
    *reply = json_pack("{s:i, s:i, s:o}", "incidents", test.decided, "same", test.same, "changed",
                       test.changed);
    return rows ? 200 : -1;
}
