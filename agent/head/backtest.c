/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/head/backtest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/head/deciding.h"
#include "agent/head/lineage_steps.h"
#include "agent/head/scope.h"
#include "agent/lib/jsonget.h"
#include "db/lineages.h"
#include "db/policy_admin.h"
#include "policies/policy_override.h"

enum { MAX_INCIDENTS = 1000, MAX_POLICIES = 3 };

/* The framework's own, then the general ones; NULL where one is not used. */
struct ladder_set {
    struct oom_policy *items[MAX_POLICIES];
};

struct backtest {
    struct service *service;
    struct policy_draft draft;
    char policy[POLICY_OVERRIDE_PART_ROOM]; /* which the draft is, or changes */
    int decided, same;
    json_t *changed;
};

/* The policy as it is for whoever that lineage belonged to; NULL where it is not used. */
static struct oom_policy *load(struct service *service, const char *name, const json_t *row,
                               const struct policy_draft *draft)
{
    const struct policy_scope scope = scope_of_lineage(row);
    bool used = false;
    json_t *versions = overrides_versions_of(service->db, name, &scope, draft, &used, NULL, NULL);
    json_t *document = versions && used
                           ? overrides_resolve(service->db, versions, name, draft, NULL, 0, NULL)
                           : NULL;
    struct oom_policy *policy = document ? oom_policy_from_json(document, name, NULL) : NULL;

    if (policy)
        oom_policy_set_version(policy, (int)json_get_int(versions, name, 0));
    json_decref(document);
    json_decref(versions);
    return policy;
}

/* False when the policy of this name has no say in the incident. */
static bool load_set(struct backtest *test, const json_t *row, const struct policy_draft *draft,
                     struct ladder_set *set)
{
    const char *names[MAX_POLICIES] = {json_get_string(row, "framework", ""), "pytorch", "host"};
    bool concerned = false;

    for (size_t i = 0; i < MAX_POLICIES; i++) {
        bool twice = i > 0 && strcmp(names[i], names[0]) == 0;
        set->items[i] = twice || !*names[i] ? NULL : load(test->service, names[i], row, draft);
        concerned |= !twice && strcmp(names[i], test->policy) == 0;
    }
    return concerned;
}

static void free_set(struct ladder_set *set)
{
    for (size_t i = 0; i < MAX_POLICIES; i++)
        oom_policy_free(set->items[i]);
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

static int decide(const struct backtest *test, const json_t *options, struct oom_case input,
                  const struct ladder_set *set, struct oom_decision *decision)
{
    const struct oom_policy *list[MAX_POLICIES];
    size_t count = 0;

    for (size_t i = 0; i < MAX_POLICIES; i++)
        if (set->items[i])
            list[count++] = set->items[i];
    input.allow_training =
        deciding_terms_of(test->service, options, count ? list[0] : NULL).allow_training;
    oom_decision_init(decision);
    if (count)
        return oom_decide(list, count, &input, decision, NULL);
    snprintf(decision->reason, sizeof(decision->reason), "no policy is used");
    return 0;
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
                    const struct ladder_set *now, const struct ladder_set *then)
{
    const json_t *options = json_object_get(row, "options");
    struct oom_decision was, would;

    if (decide(test, options, *input, now, &was) != 0)
        return;
    if (decide(test, options, *input, then, &would) == 0) {
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
    oom_decision_free(&was);
}

static void replay(struct backtest *test, const json_t *row)
{
    struct oom_incident incident;
    struct oom_values values = {NULL, 0};
    struct oom_step *steps = NULL;
    struct ladder_set now, then;
    size_t step_count = 0;
    bool concerned = load_set(test, row, NULL, &now);

    load_set(test, row, test->draft.name ? &test->draft : NULL, &then);
    json_t *attempts = concerned ? attempts_until(test->service, json_get_int(row, "lineage", 0),
                                                  json_get_int(row, "number", 0))
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
            };
            compare(test, row, &input, &now, &then);
            lineage_steps_free(steps, step_count);
        }
        oom_incident_free(&incident);
    }
    oom_values_free(&values);
    json_decref(attempts);
    free_set(&now);
    free_set(&then);
}

/* The draft must be good by itself before it is tried. */
static int check(struct service *service, const char *name, const json_t *draft,
                 struct backtest *test, struct oom_error *err)
{
    struct policy_override_name is;

    if (policy_override_is_name(name)) {
        if (policy_override_parse(name, &is, err) < 0 ||
            (draft && overrides_check(service->db, name, draft, err) < 0))
            return 400;
        snprintf(test->policy, sizeof(test->policy), "%s", is.policy);
        return 0;
    }
    struct oom_policy *policy = draft ? oom_policy_from_json(draft, name, err) : NULL;
    oom_policy_free(policy);
    snprintf(test->policy, sizeof(test->policy), "%.64s", name);
    return draft && !policy ? 400 : 0;
}

int backtest_run(struct service *service, const struct service_request *request, const char *name,
                 json_t **reply, struct oom_error *err)
{
    const json_t *draft = json_object_get(request->body, "document");
    struct backtest test = {.service = service};
    int64_t known = 0;
    size_t i;
    json_t *row;
    int status = check(service, name, draft, &test, err);

    if (status)
        return status;
    if (db_get_int(service->db, err, 0, &known, "SELECT version FROM policy WHERE name = ?", "s",
                   test.policy) < 0)
        return -1;
    if (!known && !draft)
        return service_refuse(404, err, "there is no policy \"%s\"", name);
    if (draft)
        test.draft = (struct policy_draft){name, draft};
    json_t *rows = policy_admin_incidents(service->db, request->admin ? -1 : (int64_t)request->uid,
                                          MAX_INCIDENTS, err);
    test.changed = json_array();
    json_array_foreach(rows, i, row) replay(&test, row);
    json_decref(rows);
    *reply = json_pack("{s:i, s:i, s:o}", "incidents", test.decided, "same", test.same, "changed",
                       test.changed);
    return rows ? 200 : -1;
}
