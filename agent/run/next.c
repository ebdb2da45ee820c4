/* SPDX-License-Identifier: Apache-2.0
 *
 * Between two attempts: what happened, what the head decides, and getting the next attempt ready.
 * The intention is stored by the head before anything is done here. */
#include <stdlib.h>
#include <string.h>

#include "agent/lib/jsonget.h"
#include "agent/run/body.h"
#include "agent/run/findings.h"
#include "agent/run/resume.h"
#include "agent/run/run.h"
#include "agent/run/verdict.h"
#include "policies/jsontext.h"

enum { PREFETCH_MS = 1000, MAX_REFUSED = 32 };

void next_prefetch(struct run *run, const struct attempt *attempt)
{
    struct policy_set set;

    if (!attempt->known || run->prefetched.count > 0)
        return;
    api_set_timeout(run->api, PREFETCH_MS);
    if (findings_policies(run, attempt, &set, NULL) == 0)
        run->prefetched = set;
    api_set_timeout(run->api, HEAD_DECIDES_MS);
}

void next_tell_end(struct run *run, const struct attempt *attempt,
                   const struct oom_incident *incident, const char *reason)
{
    json_t *reply = NULL, *body = body_end(run, attempt, incident, NULL, NULL, "", reason);

    if (body)
        api_call(run->api, "POST", "/v1/attempts/end", body, &reply, NULL);
    json_decref(body);
    json_decref(reply);
}

/* Asks the head until a rung can be written into the script; 0: retry, 1: stop, -1: no answer. */
static int decide(struct run *run, struct attempt *attempt, const struct oom_incident *incident,
                  const struct oom_values *values, const struct oom_policy *policy,
                  struct oom_decision *decision, struct oom_edits *total, json_t **last_reply)
{
    json_t *refused = json_array();
    char reason[5000];
    int result = -1;

    if (!incident->oom)
        verdict_reason(run, attempt, incident, reason, sizeof(reason));
    for (int i = 0; i < MAX_REFUSED; i++) {
        struct oom_error err = {""};
        json_t *body =
            body_end(run, attempt, incident, values, refused, policy ? oom_policy_name(policy) : "",
                     incident->oom ? NULL : reason);
        if (body && !incident->oom)
            json_object_set_new(body, "rejected", json_true());
        json_t *resume = policy ? resume_plan(policy, values, attempt->lineage_ms) : NULL;
        if (body && resume)
            json_object_set(body, "resume", resume);
        json_decref(resume);
        json_decref(*last_reply);
        *last_reply = NULL;
        int status =
            body ? api_call(run->api, "POST", "/v1/attempts/end", body, last_reply, &err) : -1;
        json_decref(body);
        if (status != 200) {
            run->untold = true;
            say("no decision from %s: %s", api_where(run->api), err.text);
            break;
        }
        result = 1;
        oom_decision_free(decision);
        if (strcmp(json_get_string(*last_reply, "action", ""), "retry") != 0)
            break;
        oom_edits_free(total);
        if (oom_decision_from_json(*last_reply, decision, &err) < 0 ||
            oom_edits_from_json(json_object_get(*last_reply, "total_edits"), total) < 0) {
            say("the decision of %s cannot be read: %s", api_where(run->api), err.text);
            break;
        }
        if (change_make(run, policy, total, &err) == 0 &&
            next_resources(run, decision, total, &err) == 0) {
            result = 0;
            break;
        }
        json_array_append_new(refused, json_pack("{s:s, s:o}", "rung", decision->rung, "why",
                                                 oom_json_text(err.text)));
    }
    json_decref(refused);
    return result;
}

/* Without the script there is little that a ladder can do: its reasons are not the reason. */
static void say_unreadable(const struct launch *launch)
{
    struct oom_error err = {""};
    struct oom_script *script = launch_parse(launch, &err);

    if (!script)
        say("  nothing in the script could be changed: %s", err.text);
    oom_script_free(script);
}

/* Ran out of memory, or was refused a change by the program: what comes next? */
static enum next ask(struct run *run, struct attempt *attempt, struct oom_script *script,
                     struct oom_incident *incident)
{
    struct oom_error err = {""};
    struct oom_decision decision;
    struct oom_edits total = {NULL, 0};
    json_t *reply = NULL;
    struct findings found;
    enum next next = NEXT_STOP;

    oom_decision_init(&decision);
    if (findings_collect(run, attempt, script, incident, &found, &err) < 0) {
        run->untold = true;
        say_stop(run, attempt, incident, err.text, "");
        return NEXT_STOP;
    }
    memcpy(incident->program, found.program, sizeof(incident->program));
    char nearest[96];
    const char *missed =
        policy_set_misses(&found.set, run->options.policy, nearest, sizeof(nearest));
    if (missed)
        say("no policy is called %s%s (`oomctl policy list` names them); auto is used",
            run->options.policy, missed);
    int verdict =
        decide(run, attempt, incident, &found.values, found.policy, &decision, &total, &reply);
    if (verdict == 0) {
        int64_t number = json_get_int(reply, "attempt", attempt->number + 1);
        say_incident(attempt, incident);
        say_decision(run, incident, &decision, &run->launch.written, number,
                     (int)json_get_int(reply, "max_attempts", body_max_attempts(run)));
        next = next_start(run, attempt, &decision, &total, number);
        if (next == NEXT_INPLACE && found.policy)
            change_prove_by(run, &found.set, found.index);
    } else if (verdict == 1) {
        say_stop(run, attempt, incident, json_get_string(reply, "reason", "no reason was given"),
                 json_get_string(reply, "advice", ""));
        if (!script)
            say_unreadable(&run->launch);
    }
    json_decref(reply);
    oom_edits_free(&total);
    findings_free(&found);
    oom_decision_free(&decision);
    return next;
}

enum next next_after(struct run *run, struct attempt *attempt)
{
    struct oom_error err = {""};
    struct oom_incident incident;
    enum next next = NEXT_STOP;

    proof_end(run, attempt);
    /* The head may have been away when the job began. */
    bool told_late = !attempt->known;
    bool away = told_late && attempt_begin(run, attempt, &err) < 0;
    if (away && verdict_exited_well(attempt)) {
        late_take_back(run);
        return NEXT_STOP;
    }
    if (away) {
        run->untold = run->late;
        say("%s does not answer (%s): the job ends as it would without oomrun%s",
            api_where(run->api), err.text,
            run->late ? ", and is looked at when the head is back" : "");
        return NEXT_STOP;
    }
    if (run->late)
        late_take_back(run);
    run->late = false;
    if (told_late && attempt->edits.count > 0) {
        attempt->applied = 0;
        snprintf(attempt->proof, sizeof(attempt->proof),
                 "the head did not answer when the attempt began, so it ran without its change");
    }
    if (attempt->applied >= 0) {
        next_note(run, attempt->lineage, attempt->number, "proof", attempt->proof);
        next_note(run, attempt->lineage, attempt->number, "applied",
                  attempt->applied ? "yes" : "no");
    }
    if (run->sched && !run->after && !verdict_exited_well(attempt)) {
        /* Steps run in cgroups of their own, maybe on other nodes. */
        int64_t kills = verdict_reported_kills(run, attempt);
        if (kills > 0)
            attempt->exit.cgroup_oom_kills =
                kills + (attempt->exit.cgroup_oom_kills > 0 ? attempt->exit.cgroup_oom_kills : 0);
    }
    struct oom_script *script = launch_parse(&run->launch, NULL);
    bool masked = verdict_exited_well(attempt) && script && oom_script_masks_status(script);
    attempt->exit.finished = verdict_exited_well(attempt) && !masked;
    if (attempt->exit.finished) {
        oom_script_free(script);
        next_tell_end(run, attempt, NULL, NULL);
        return NEXT_STOP;
    }
    oom_incident_init(&incident);
    if (verdict_reach(run, attempt, script, &incident, &err) < 0) {
        say("the log cannot be classified: %s", err.text);
    } else if (attempt->ended_by_signal ||
               (!incident.oom && !verdict_refuses_change(attempt, &incident))) {
        char reason[5000];
        if (verdict_exited_well(attempt)) {
            attempt->exit.finished = true;
            next_tell_end(run, attempt, NULL, NULL);
        } else {
            verdict_reason(run, attempt, &incident, reason, sizeof(reason));
            next_tell_end(run, attempt, &incident, reason);
            say_stop(run, attempt, &incident, reason, "");
        }
    } else {
        next = ask(run, attempt, script, &incident);
    }
    oom_incident_free(&incident);
    oom_script_free(script);
    return next;
}
