/* SPDX-License-Identifier: Apache-2.0
 *
 * Between two attempts: what happened, what the head decides, and getting the next attempt ready.
 * The intention is stored by the head before anything is done here. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/evidence/otherlogs.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/urlquery.h"
#include "agent/run/body.h"
#include "agent/run/findings.h"
#include "agent/run/resume.h"
#include "agent/run/run.h"
#include "policies/jsontext.h"

enum { PREFETCH_MS = 1000, MAX_REFUSED = 32 };

/* Makes the next command from what the user submitted and all edits in force. */
static int prepare(struct run *run, const struct oom_policy *policy, const struct oom_edits *edits,
                   struct oom_error *err)
{
    struct oom_edits inside = {NULL, 0};
    int rc = next_edits(edits, false, &inside);

    if (rc == 0)
        rc = launch_rewrite(&run->launch, policy, &inside, err);
    oom_edits_free(&inside);
    return rc;
}

/* Without a policy nobody knows how a change is written, most often because the script cannot be
 * read: then only what the scheduler changes is left. */
static int prepare_unknown(struct run *run, const struct oom_edits *edits, struct oom_error *err)
{
    struct oom_edits inside = {NULL, 0};
    int rc = next_edits(edits, false, &inside);

    if (rc == 0 && inside.count > 0) {
        struct oom_script *script = launch_parse(&run->launch, err);
        rc = script ? oom_errorf(err, "no policy knows what it starts") : -1;
        oom_script_free(script);
    }
    oom_edits_free(&inside);
    return rc;
}

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

static void keep_proof_policy(struct run *run, struct policy_set *set, int index)
{
    oom_policy_free(run->proof_policy);
    run->proof_policy = set->items[index];
    set->items[index] = NULL;
}

/* The job was queued again with changes: they are made before its first command. */
static int resume_edits(struct run *run, struct attempt *attempt, const char *framework,
                        struct oom_error *err)
{
    struct policy_set set;
    int rc = -1;

    if (findings_policies(run, attempt, &set, err) < 0) {
        /* It went away in between: the attempt begins anew when it is back. */
        run->head_away = true;
        attempt->known = false;
        oom_edits_free(&attempt->edits);
        return -1;
    }
    struct oom_script *script = launch_parse(&run->launch, err);
    if (script) {
        int index = findings_resume(run, &set, script, framework);
        rc = index < 0 ? oom_errorf(err, "the policy of this job is gone")
                       : prepare(run, set.items[index], &attempt->edits, err);
        if (rc == 0)
            keep_proof_policy(run, &set, index);
    }
    oom_script_free(script);
    policy_set_free(&set);
    return rc;
}

int next_begin(struct run *run, struct attempt *attempt, struct oom_error *err)
{
    json_t *reply = NULL, *body = body_begin(run, attempt);
    int status = body ? api_call(run->api, "POST", "/v1/attempts/begin", body, &reply, err) : -1;

    json_decref(body);
    run->head_away = status < 0;
    if (status != 200) {
        json_decref(reply);
        return -1;
    }
    /* It answers: from now on it may take its time to decide. */
    api_set_timeout(run->api, HEAD_DECIDES_MS);
    bool prepared = attempt->edits.count > 0; /* by next_after, in this process */
    attempt->known = true;
    attempt->lineage = json_get_int(reply, "lineage", 0);
    attempt->number = json_get_int(reply, "attempt", 1);
    attempt->lineage_ms = json_get_int(reply, "created_ms", attempt->started_ms);
    if (run->sched)
        snprintf(run->handle, sizeof(run->handle), "%s", run->job);
    else
        snprintf(run->handle, sizeof(run->handle), "L%lld", (long long)attempt->lineage);
    int rc = 0;
    if (!prepared && json_array_size(json_object_get(reply, "edits")) > 0) {
        rc = oom_edits_from_json(json_object_get(reply, "edits"), &attempt->edits);
        if (rc == 0)
            rc = resume_edits(run, attempt, json_get_string(reply, "framework", ""), err);
    }
    json_decref(reply);
    return rc;
}

int64_t next_reported_kills(struct run *run, const struct attempt *attempt)
{
    char path[512];
    json_t *reply = NULL, *task;
    int64_t kills = -1;
    size_t i;

    /* The head's clock says when the attempt began and when its tasks ended. */
    snprintf(path, sizeof(path), "/v1/reports/%s?lineage=%lld&attempt=%lld", run->job,
             (long long)attempt->lineage, (long long)attempt->number);
    if (urlquery_add(path, sizeof(path), "cluster", run->cluster) == 0 &&
        api_call(run->api, "GET", path, NULL, &reply, NULL) == 200)
        json_array_foreach(json_object_get(reply, "tasks"), i, task)
        {
            int64_t count = json_get_int(task, "oom_kills", -1);
            int64_t restart = json_get_int(task, "restart", -1);
            /* What was long on its way may be of the run before this one. */
            if (count >= 0 && (restart < 0 || restart == run->restart))
                kills = (kills < 0 ? 0 : kills) + count;
        }
    json_decref(reply);
    return kills;
}

/* The verdict over the job's own output; when that shows no memory failure, over the other logs
 * that this attempt wrote. */
static int diagnose(struct run *run, struct attempt *attempt, struct oom_script *script,
                    struct oom_incident *incident, struct oom_error *err)
{
    struct oom_incident other;

    if (oom_classifier_verdict(run->classifier, &attempt->exit, incident, err) < 0)
        return -1;
    incident->own_restarts = oom_classifier_own_restarts(run->classifier);
    if (incident->oom && incident->phase != OOM_PHASE_UNKNOWN)
        return 0;
    struct oom_classifier *second = oom_classifier_new(run->signatures);
    oom_incident_init(&other);
    if (second && otherlogs_feed(second, run->marks, script, attempt->started_ms) > 0 &&
        oom_classifier_verdict(second, &attempt->exit, &other, NULL) == 0 && other.oom &&
        (!incident->oom ||
         (other.domain == incident->domain && other.phase != OOM_PHASE_UNKNOWN))) {
        other.own_restarts = incident->own_restarts;
        oom_incident_free(incident);
        *incident = other;
        oom_classifier_free(run->classifier);
        run->classifier = second;
        return 0;
    }
    oom_incident_free(&other);
    oom_classifier_free(second);
    return 0;
}

static bool exited_well(const struct attempt *attempt)
{
    return attempt->exit.exit_code == 0 && !attempt->ended_early;
}

/* Why an attempt that did not run out of memory is not retried, in words. */
static void plain_reason(const struct run *run, const struct attempt *attempt,
                         const struct oom_incident *incident, char *out, size_t size)
{
    char how[64], place[4200] = "";

    if (attempt->ended_by_signal) {
        snprintf(out, size, "it was ended from outside by signal %d (%s)", attempt->ended_by_signal,
                 strsignal(attempt->ended_by_signal));
        return;
    }
    if (attempt->exit.signal > 0)
        snprintf(how, sizeof(how), "signal %d", attempt->exit.signal);
    else
        snprintf(how, sizeof(how), "exit %d", attempt->exit.exit_code);
    if (incident->cause.text && incident->cause.line > 0)
        snprintf(place, sizeof(place), "; see %s:%lld",
                 incident->cause.file ? incident->cause.file : output_name(run->output),
                 (long long)incident->cause.line);
    snprintf(out, size, "%s, no sign of memory%s", how, place);
}

static enum next finish(struct run *run, struct attempt *attempt)
{
    json_t *body = body_end(run, attempt, NULL, NULL, NULL, "", NULL);
    json_t *reply = NULL;

    if (body)
        api_call(run->api, "POST", "/v1/attempts/end", body, &reply, NULL);
    json_decref(body);
    json_decref(reply);
    return NEXT_STOP;
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
        plain_reason(run, attempt, incident, reason, sizeof(reason));
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
        if ((policy ? prepare(run, policy, total, &err) : prepare_unknown(run, total, &err)) == 0 &&
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
            keep_proof_policy(run, &found.set, found.index);
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

/* The program's last words name a setting that it would not have without us. Whether that was this
 * attempt's change is for the head to say. */
static bool refuses_change(const struct attempt *attempt, const struct oom_incident *incident)
{
    return !exited_well(attempt) && attempt->number > 1 && incident->cause.text &&
           oom_edits_named(&attempt->edits, incident->cause.text);
}

enum next next_after(struct run *run, struct attempt *attempt)
{
    struct oom_error err = {""};
    struct oom_incident incident;
    enum next next = NEXT_STOP;

    proof_end(run, attempt);
    /* The head may have been away when the job began. */
    bool told_late = !attempt->known;
    bool away = told_late && next_begin(run, attempt, &err) < 0;
    if (away && exited_well(attempt)) {
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
    if (run->sched && !run->after && !exited_well(attempt)) {
        /* Steps run in cgroups of their own, maybe on other nodes. */
        int64_t kills = next_reported_kills(run, attempt);
        if (kills > 0)
            attempt->exit.cgroup_oom_kills =
                kills + (attempt->exit.cgroup_oom_kills > 0 ? attempt->exit.cgroup_oom_kills : 0);
    }
    struct oom_script *script = launch_parse(&run->launch, NULL);
    bool masked = exited_well(attempt) && script && oom_script_masks_status(script);
    attempt->exit.finished = exited_well(attempt) && !masked;
    if (attempt->exit.finished) {
        oom_script_free(script);
        return finish(run, attempt);
    }
    oom_incident_init(&incident);
    if (diagnose(run, attempt, script, &incident, &err) < 0) {
        say("the log cannot be classified: %s", err.text);
    } else if (attempt->ended_by_signal || (!incident.oom && !refuses_change(attempt, &incident))) {
        char reason[5000];
        if (exited_well(attempt)) {
            attempt->exit.finished = true;
            next = finish(run, attempt);
        } else {
            plain_reason(run, attempt, &incident, reason, sizeof(reason));
            json_t *reply = NULL, *body = body_end(run, attempt, &incident, NULL, NULL, "", reason);
            if (body)
                api_call(run->api, "POST", "/v1/attempts/end", body, &reply, NULL);
            json_decref(body);
            json_decref(reply);
            say_stop(run, attempt, &incident, reason, "");
        }
    } else {
        next = ask(run, attempt, script, &incident);
    }
    oom_incident_free(&incident);
    oom_script_free(script);
    return next;
}
