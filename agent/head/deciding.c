/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/head/deciding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/head/checkpoint.h"
#include "agent/lib/jsonget.h"
#include "db/overrides.h"

enum { MAX_POLICIES = 4, MAX_REFUSED = 64, MAX_FROZEN = 64 };

static struct oom_policy *load_policy(struct service *service, const json_t *versions,
                                      const char *name, struct oom_error *err)
{
    char overrides[OOM_OVERRIDES_ROOM];
    int64_t version = json_get_int(versions, name, 0);

    if (!version)
        return NULL;
    json_t *document =
        overrides_resolve(service->db, versions, name, NULL, overrides, sizeof(overrides), err);
    struct oom_policy *policy = document ? oom_policy_from_json(document, name, err) : NULL;
    json_decref(document);
    if (policy) {
        oom_policy_set_version(policy, (int)version);
        oom_policy_set_overrides(policy, overrides);
    }
    return policy;
}

/* The framework's own policy first, then the general ones. */
static size_t load_policies(struct service *service, const struct deciding *input,
                            struct oom_policy **out, struct oom_error *err)
{
    const char *wanted = json_get_string(input->options, "policy", "auto");
    const char *names[MAX_POLICIES] = {input->framework, "pytorch", "host"};
    size_t count = 0;

    /* A name that is no policy's (oomrun says so) decides as "auto" does. */
    if (*wanted && json_get_int(input->versions, wanted, 0))
        names[0] = wanted;
    for (size_t i = 0; i < 3; i++) {
        if (!*names[i] || (i > 0 && strcmp(names[i], names[0]) == 0))
            continue;
        struct oom_policy *policy = load_policy(service, input->versions, names[i], err);
        if (policy)
            out[count++] = policy;
    }
    return count;
}

struct deciding_terms deciding_terms_of(const struct service *service, const json_t *options,
                                        const struct oom_policy *policy)
{
    const struct service_limits *site = service->limits;
    int most = policy ? oom_policy_max_retries(policy) : -1;
    enum oom_consent consent = policy ? oom_policy_consent(policy) : OOM_CONSENT_ASK;
    bool owner_allows = strstr(json_get_string(options, "allow", ""), "training") != NULL;
    int64_t wanted = json_get_int(options, "max_retries", most >= 0 ? most : site->default_retries);

    if (wanted < 0)
        wanted = 0;
    if (most >= 0 && wanted > most)
        wanted = most;
    if (site->max_retries && wanted > site->max_retries)
        wanted = site->max_retries;
    return (struct deciding_terms){
        .retry_limit = (int)wanted,
        .allow_training =
            consent == OOM_CONSENT_GIVEN || (consent == OOM_CONSENT_ASK && owner_allows),
    };
}

struct deciding_terms deciding_terms(struct service *service, const struct deciding *input)
{
    struct oom_policy *policies[MAX_POLICIES] = {NULL};
    size_t count = load_policies(service, input, policies, NULL);
    struct deciding_terms terms = deciding_terms_of(service, input->options, policies[0]);

    for (size_t i = 0; i < count; i++)
        oom_policy_free(policies[i]);
    return terms;
}

/* The site's own bound on memory, on top of the partition's. */
static int bound_memory(const struct service *service, struct oom_values *values)
{
    const char *known = oom_values_get(values, "slurm.mem_max_mib");
    int64_t most = service->limits->max_mem_mib;
    char text[32];

    if (most <= 0 || (known && atoll(known) <= most))
        return 0;
    snprintf(text, sizeof(text), "%lld", (long long)most);
    return oom_values_set(values, "slurm.mem_max_mib", text, OOM_SOURCE_SCHEDULER, NULL);
}

/* The framework began again by itself after running out, with the settings that made it run out:
 * where the policy wants it, the next attempt may not. */
static int turn_off_own_restarts(const struct oom_policy *policy, const struct oom_values *values,
                                 const struct oom_incident *incident, struct oom_decision *decision)
{
    const json_t *own = json_object_get(oom_policy_json(policy), "own_restarts");
    const char *knob = json_get_string(own, "knob", ""), *off = json_get_string(own, "off", "");
    const char *now = oom_values_get(values, knob);

    if (incident->own_restarts == 0 || !json_get_bool(own, "turn_off", false) || !*knob ||
        (now && strcmp(now, off) == 0))
        return 0;
    return oom_edits_add(&decision->edits, knob, now, off, NULL);
}

int deciding_run(struct service *service, const struct deciding *input,
                 struct oom_decision *decision, struct oom_error *err)
{
    struct oom_policy *policies[MAX_POLICIES] = {NULL};
    const char *refused[MAX_REFUSED + 1] = {NULL}, *refused_why[MAX_REFUSED + 1] = {NULL};
    const char *frozen[MAX_FROZEN + 1] = {NULL};
    struct oom_incident incident;
    struct oom_values values = {NULL, 0};
    enum oom_mode mode = OOM_MODE_AUTO;
    size_t i;
    json_t *item;
    int rc = -1;

    oom_incident_init(&incident);
    json_array_foreach(input->refused, i, item)
    {
        if (i >= MAX_REFUSED)
            break;
        refused[i] = json_get_string(item, "rung", "");
        refused_why[i] = json_get_string(item, "why", "");
    }
    size_t frozen_count = 0;
    json_array_foreach(json_object_get(input->resume, "frozen"), i, item)
    {
        if (json_is_string(item) && frozen_count < MAX_FROZEN)
            frozen[frozen_count++] = json_string_value(item);
    }
    size_t count = load_policies(service, input, policies, err);
    if (count == 0) {
        snprintf(decision->reason, sizeof(decision->reason), "no policy fits: %s",
                 err && *err->text ? err->text : "none is enabled");
        rc = 0;
        goto out;
    }
    if (oom_incident_from_json(input->incident, &incident, err) < 0 ||
        oom_values_from_json(input->values, &values) < 0 || bound_memory(service, &values) < 0)
        goto out;
    oom_mode_parse(json_get_string(input->options, "mode", "auto"), &mode);
    const struct deciding_terms terms = deciding_terms_of(service, input->options, policies[0]);
    struct oom_case oom_case = {
        .incident = &incident,
        .values = &values,
        .steps = input->steps,
        .step_count = input->step_count,
        .max_retries = terms.retry_limit,
        .retries_used = input->retries_used,
        .allow_training = terms.allow_training,
        .mode = mode,
        .refused = refused,
        .refused_why = refused_why,
        .frozen = frozen,
        .checkpoint = json_get_string(input->resume, "checkpoint", "?"),
    };
    rc = oom_decide((const struct oom_policy *const *)policies, count, &oom_case, decision, err);
    if (rc == 0 && decision->retry)
        rc = checkpoint_add_edits(input->resume, decision, err);
    if (rc == 0 && decision->retry &&
        turn_off_own_restarts(policies[0], &values, &incident, decision) < 0)
        rc = oom_errorf(err, "out of memory");
out:
    for (i = 0; i < count; i++)
        oom_policy_free(policies[i]);
    oom_values_free(&values);
    oom_incident_free(&incident);
    return rc;
}
