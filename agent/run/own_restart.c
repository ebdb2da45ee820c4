/* SPDX-License-Identifier: Apache-2.0
 *
 * A framework that begins again by itself after running out of memory does so with the settings
 * that made it run out. Its policy says at which of these restarts the attempt is ended, so that
 * the next one begins with other settings; but only when there will be a next one: else the
 * framework's own way is the only one that is left. */
#include <string.h>

#include "agent/lib/jsonget.h"
#include "agent/run/body.h"
#include "agent/run/findings.h"

enum { ASK_MS = 5000 };

#define SURE 0.8

/* What the job's policy says, else what the general one says of every PyTorch program's launcher.
 */
static const json_t *rules(const struct findings *findings)
{
    const json_t *own = findings->policy
                            ? json_object_get(oom_policy_json(findings->policy), "own_restarts")
                            : NULL;

    for (size_t i = 0; !own && i < findings->set.count; i++)
        if (strcmp(oom_policy_name(findings->set.items[i]), "pytorch") == 0)
            own = json_object_get(oom_policy_json(findings->set.items[i]), "own_restarts");
    return own;
}

/* Would the head decide for another attempt, if this one ended now? */
static bool would_retry(struct run *run, const struct attempt *attempt,
                        const struct oom_incident *incident, const struct findings *findings)
{
    const struct oom_policy *policy = findings->policy;
    json_t *body = body_end(run, attempt, incident, &findings->values, NULL,
                            policy ? oom_policy_name(policy) : "", NULL);
    json_t *reply = NULL;

    api_set_timeout(run->api, ASK_MS);
    bool yes = body && api_call(run->api, "POST", "/v1/attempts/ask", body, &reply, NULL) == 200 &&
               strcmp(json_get_string(reply, "action", ""), "retry") == 0;
    api_set_timeout(run->api, HEAD_DECIDES_MS);
    json_decref(body);
    json_decref(reply);
    return yes;
}

static bool must_end(struct run *run, struct attempt *attempt, const struct oom_incident *incident)
{
    struct oom_script *script = launch_parse(&run->launch, NULL);
    struct findings findings;
    bool yes = false;

    attempt->ended_ms = attempt_now_ms(attempt); /* as if */
    if (findings_collect(run, attempt, script, incident, &findings, NULL) == 0) {
        int64_t end_at = json_get_int(rules(&findings), "end_at", 0);
        yes = end_at > 0 && attempt->own_restarts >= end_at &&
              would_retry(run, attempt, incident, &findings);
        findings_free(&findings);
    }
    oom_script_free(script);
    return yes;
}

bool own_restart_count(const struct run *run, struct attempt *attempt)
{
    int restarts = oom_classifier_own_restarts(run->classifier);

    if (restarts <= attempt->own_restarts)
        return false;
    if (attempt->own_restarts == 0)
        attempt->own_since_ms = attempt_now_ms(attempt);
    attempt->own_restarts = restarts;
    return true;
}

bool own_restart_look(struct run *run, struct attempt *attempt)
{
    struct oom_incident incident;
    struct oom_exit as_if;
    bool yes = false;

    if (!own_restart_count(run, attempt))
        return false;
    if (!attempt->known || run->options.dry_run)
        return false;
    oom_incident_init(&incident);
    oom_exit_init(&as_if);
    as_if.exit_code = 1;
    if (oom_classifier_verdict(run->classifier, &as_if, &incident, NULL) == 0 && incident.oom &&
        incident.confidence >= SURE && must_end(run, attempt, &incident)) {
        say("%s; the framework begins again by itself with the same settings (restart %d), so the "
            "attempt is ended now",
            incident.summary, attempt->own_restarts);
        yes = true;
    }
    oom_incident_free(&incident);
    return yes;
}
