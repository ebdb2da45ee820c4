/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/elapsed.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/log.h"
#include "agent/node/ray_watch.h"
#include "oomretry/decide.h"
#include "policies/jsontext.h"

enum {
    LOOK_EVERY_MS = 5000,
    KEEP_EVERY_MS = 200000, /* Ray's time is 600 s */
    MAX_MODULES = 16,
    UNREAD_MS = 120000,           /* a log that cannot be read for so long is done without */
    LOOK_BYTES = 8 * 1024 * 1024, /* at a time; the rest at the next look */
    END_BYTES = 512 * 1024 * 1024,
};

/* Kept by the head as what was done to the attempt, so that after a restart a job that we have
 * stopped is not taken for one that its user has. */
static const char stopping[] = "stopped: nothing new in its log for ";

static json_t *begin_body(const struct ray_cluster *cluster, const json_t *job,
                          const struct ray_wish *wish)
{
    const char *id = json_get_string(job, "submission_id", "");
    const json_t *metadata = json_object_get(job, "metadata");
    const json_t *driver = json_object_get(job, "driver_info");
    json_t *options =
        json_pack("{s:s, s:s, s:s, s:b, s:s}", "policy", wish->policy, "mode", wish->mode, "allow",
                  wish->allow, "dry_run", (int)wish->dry_run, "dashboard", cluster->options.url);

    if (options && wish->max_retries >= 0)
        json_object_set_new(options, "max_retries", json_integer(wish->max_retries));
    return json_pack("{s:s, s:s, s:s, s:s, s:b, s:s, s:s, s:I, s:o}", "scheduler", "ray", "cluster",
                     cluster->session, "job", id, "token", id, "once", 1, "name",
                     json_get_string(metadata, "job_name", id), "node",
                     json_get_string(driver, "node_ip_address", ""), "uid",
                     (json_int_t)cluster->owner, "options", options);
}

struct ray_follow *ray_follow_begin(struct ray_cluster *cluster, const json_t *job,
                                    const struct ray_wish *wish, bool *over, struct oom_error *err)
{
    json_t *reply = NULL, *body = begin_body(cluster, job, wish);
    int status = body ? api_call(cluster->head, "POST", "/v1/attempts/begin", body, &reply, err)
                      : oom_errorf(err, "the job's record cannot be put into JSON");

    json_decref(body);
    struct ray_follow *follow = status == 200 ? calloc(1, sizeof(*follow)) : NULL;
    if (!follow) {
        json_decref(reply);
        return NULL;
    }
    snprintf(follow->id, sizeof(follow->id), "%s", json_get_string(job, "submission_id", ""));
    follow->wish = *wish;
    follow->lineage = json_get_int(reply, "lineage", 0);
    follow->attempt = json_get_int(reply, "attempt", 1);
    follow->grew_ms = elapsed_ms();
    oom_edits_from_json(json_object_get(reply, "edits"), &follow->edits);
    follow->classifier = oom_classifier_new(cluster->signatures);
    /* Decided, and the next submission not made: that is still to be done. */
    *over = strcmp(json_get_string(reply, "state", ""), "ended") == 0 &&
            strcmp(json_get_string(reply, "next_state", ""), "intended") != 0;
    follow->ours =
        strncmp(json_get_string(reply, "acted", ""), stopping, sizeof(stopping) - 1) == 0;
    json_decref(reply);
    char name[300];
    snprintf(name, sizeof(name), "job-driver-%s.log", follow->id);
    follow->stream = follow->classifier ? oom_classifier_open(follow->classifier, name, 1) : -1;
    if (follow->stream >= 0)
        return follow;
    ray_follow_free(follow);
    oom_errorf(err, "out of memory");
    return NULL;
}

void ray_follow_free(struct ray_follow *follow)
{
    if (!follow)
        return;
    oom_edits_free(&follow->edits);
    oom_classifier_free(follow->classifier);
    free(follow);
}

/* --- while it runs ------------------------------------------------------------------------------
 */

static int feed(void *arg, const char *bytes, size_t length)
{
    struct ray_follow *follow = arg;

    oom_classifier_feed(follow->classifier, follow->stream, bytes, length);
    return 0;
}

static int note_stopping(struct ray_cluster *cluster, const struct ray_follow *follow, int grace_s,
                         struct oom_error *err)
{
    char text[160];

    snprintf(text, sizeof(text), "%s%d s after it had run out of memory", stopping, grace_s);
    json_t *reply = NULL,
           *body = json_pack("{s:I, s:I, s:s}", "lineage", (json_int_t)follow->lineage, "attempt",
                             (json_int_t)follow->attempt, "acted", text);
    int status =
        body ? api_call(cluster->head, "POST", "/v1/attempts/note", body, &reply, err) : -1;
    json_decref(body);
    json_decref(reply);
    return status == 200 ? 0 : -1;
}

/* One rank has run out, the others wait for it forever. */
static void end_if_hung(struct ray_cluster *cluster, struct ray_follow *follow, int64_t now)
{
    struct oom_incident incident;
    struct oom_error err = {""};

    int grace_s = follow->wish.grace_s >= 0 ? follow->wish.grace_s : cluster->options.grace_s;

    if (follow->asked || grace_s == 0 || now - follow->grew_ms < (int64_t)grace_s * 1000)
        return;
    follow->grew_ms = now; /* the next look is as far away */
    oom_incident_init(&incident);
    if (oom_classifier_verdict(follow->classifier, NULL, &incident, NULL) == 0 && incident.oom) {
        follow->ours |= note_stopping(cluster, follow, grace_s, &err) == 0;
        follow->asked = follow->ours && ray_stop(cluster->client, follow->id, &err) == 0;
        log_line(LOG_NOTICE, "ray job %s: %s, and nothing new for %d s: %s", follow->id,
                 incident.summary, grace_s, follow->asked ? "stopped" : err.text);
    }
    oom_incident_free(&incident);
}

/* Packages outlive their last job only for as long as somebody has asked for them: the next attempt
 * needs them again. */
static void keep_packages(struct ray_cluster *cluster, struct ray_follow *follow, const json_t *job,
                          int64_t now)
{
    const json_t *env = json_object_get(job, "runtime_env");
    const json_t *modules = json_object_get(env, "py_modules");
    size_t count = json_array_size(modules);

    if (follow->kept_ms && now - follow->kept_ms < KEEP_EVERY_MS)
        return;
    follow->kept_ms = now;
    for (size_t i = 0; i <= count && i <= MAX_MODULES; i++) {
        const char *uri = i == 0 ? json_get_string(env, "working_dir", "")
                                 : json_string_value(json_array_get(modules, i - 1));
        if (uri && strncmp(uri, "gcs://", 6) == 0)
            ray_package_keep(cluster->client, uri + 6, NULL);
    }
}

void ray_follow_look(struct ray_cluster *cluster, struct ray_follow *follow, const json_t *job)
{
    int64_t now = elapsed_ms(), before = follow->offset;

    keep_packages(cluster, follow, job, now);
    if (now - follow->looked_ms < LOOK_EVERY_MS ||
        !json_is_string(json_object_get(job, "driver_agent_http_address")))
        return;
    follow->looked_ms = now;
    ray_driver_log(cluster->client, job, &follow->offset, LOOK_BYTES, feed, follow, NULL);
    if (follow->offset > before)
        follow->grew_ms = now;
    end_if_hung(cluster, follow, now);
}

/* --- at its end ---------------------------------------------------------------------------------
 */

static json_t *exit_json(const struct oom_exit *e)
{
    return json_pack("{s:i, s:i, s:s}", "exit_code", e->exit_code, "signal", e->signal, "state",
                     e->state);
}

json_t *ray_follow_end_body(struct ray_follow *follow, const struct ray_end *end)
{
    json_t *body =
        json_pack("{s:I, s:I, s:o, s:b, s:s}", "lineage", (json_int_t)follow->lineage, "attempt",
                  (json_int_t)follow->attempt, "exit", exit_json(end->exit), "completed",
                  (int)end->exit->finished, "framework", end->framework ? end->framework : "");

    if (!body)
        return NULL;
    if (end->ended_by)
        json_object_set_new(body, "ended_by", json_string(end->ended_by));
    if (end->reason)
        json_object_set_new(body, "reason", oom_json_text(end->reason));
    if (end->rejected)
        json_object_set_new(body, "rejected", json_true());
    if (end->values)
        json_object_set_new(body, "values", oom_values_to_json(end->values));
    if (end->refused)
        json_object_set_new(body, "refused", json_deep_copy(end->refused));
    if (end->incident) {
        json_object_set_new(body, "incident", oom_incident_to_json(end->incident));
        json_object_set_new(body, "windows", oom_classifier_windows(follow->classifier));
        json_object_set_new(body, "explain", oom_classifier_explain(follow->classifier));
    }
    return body;
}

/* True when the head has taken it. */
static bool tell_end(struct ray_cluster *cluster, struct ray_follow *follow,
                     const struct ray_end *end)
{
    struct oom_error err = {""};
    json_t *reply = NULL, *body = ray_follow_end_body(follow, end);
    int status =
        body ? api_call(cluster->head, "POST", "/v1/attempts/end", body, &reply, &err) : -1;

    if (status != 200)
        log_line(LOG_WARNING, "ray job %s: its end is not stored yet: %s", follow->id, err.text);
    json_decref(body);
    json_decref(reply);
    return status == 200;
}

static void read_exit(const json_t *job, struct oom_exit *out)
{
    const char *status = json_get_string(job, "status", "");
    int64_t code = json_get_int(job, "driver_exit_code", -1);

    oom_exit_init(out);
    snprintf(out->state, sizeof(out->state), "%s", status);
    out->finished = strcmp(status, "SUCCEEDED") == 0;
    /* As Python has it: minus the signal. */
    if (json_is_integer(json_object_get(job, "driver_exit_code")) && code < 0 && code > -65) {
        out->signal = (int)-code;
    } else {
        out->exit_code = out->finished ? 0 : (int)code;
        out->signal = 0;
    }
}

/* True: it will do without what Ray does not give. A driver's node may be gone for good. */
static bool do_without(struct ray_cluster *cluster, struct ray_follow *follow, const json_t *job)
{
    int64_t now = elapsed_ms();

    if (follow->unread_ms == 0)
        follow->unread_ms = now;
    return ray_other_driver(cluster, job, follow->classifier) == 0 ||
           now - follow->unread_ms > UNREAD_MS;
}

/* The rest of the log. Ray's own message counts when it is not just the end of that log: it tells
 * that the entrypoint could not be started, or that its supervisor was killed. */
static int feed_rest(struct ray_cluster *cluster, struct ray_follow *follow, const json_t *job,
                     struct oom_error *err)
{
    const char *type = json_get_string(job, "error_type", "");
    const char *message = json_get_string(job, "message", "");

    if (json_is_string(json_object_get(job, "driver_agent_http_address")) &&
        ray_driver_log(cluster->client, job, &follow->offset, END_BYTES, feed, follow, err) < 0 &&
        !do_without(cluster, follow, job))
        return -1;
    if (strcmp(type, "JOB_ENTRYPOINT_COMMAND_ERROR") == 0 || !*message)
        return 0;
    int stream = oom_classifier_open(follow->classifier, "status message", 1);
    if (stream >= 0)
        oom_classifier_feed(follow->classifier, stream, message, strlen(message));
    return 0;
}

/* The verdict over the driver's log; when that does not settle it, over the workers' too. */
static int diagnose(struct ray_cluster *cluster, struct ray_follow *follow, const json_t *job,
                    const struct oom_exit *exit_data, struct oom_incident *incident,
                    struct oom_error *err)
{
    struct oom_incident other;

    if (oom_classifier_verdict(follow->classifier, exit_data, incident, err) < 0)
        return -1;
    if (incident->oom && incident->phase != OOM_PHASE_UNKNOWN)
        return 0;
    struct oom_classifier *second = oom_classifier_new(cluster->signatures);
    oom_incident_init(&other);
    if (second && ray_other_feed(cluster, job, second) > 0 &&
        oom_classifier_verdict(second, exit_data, &other, NULL) == 0 && other.oom &&
        (!incident->oom ||
         (other.domain == incident->domain && other.phase != OOM_PHASE_UNKNOWN))) {
        oom_incident_free(incident);
        *incident = other;
        oom_classifier_free(follow->classifier);
        follow->classifier = second;
        return 0;
    }
    oom_incident_free(&other);
    oom_classifier_free(second);
    return 0;
}

static void plain_reason(const struct ray_follow *follow, const struct oom_exit *exit_data,
                         const struct oom_incident *incident, char *out, size_t size)
{
    char how[64] = "the job failed", place[400] = "";

    if (exit_data->signal > 0)
        snprintf(how, sizeof(how), "signal %d", exit_data->signal);
    else if (exit_data->exit_code >= 0)
        snprintf(how, sizeof(how), "exit %d", exit_data->exit_code);
    if (incident->cause.text && incident->cause.line > 0)
        snprintf(place, sizeof(place), "; see line %lld of `ray job logs %s`",
                 (long long)incident->cause.line, follow->id);
    snprintf(out, size, "%s, no sign of memory%s", how, place);
}

static bool failed(struct ray_cluster *cluster, struct ray_follow *follow, const json_t *job,
                   const struct oom_exit *exit_data)
{
    struct oom_incident incident;
    struct oom_error err = {""};
    bool done = false;

    if (feed_rest(cluster, follow, job, &err) < 0) {
        log_line(LOG_WARNING, "ray job %s: its log cannot be read yet: %s", follow->id, err.text);
        return false;
    }
    oom_incident_init(&incident);
    if (diagnose(cluster, follow, job, exit_data, &incident, &err) < 0) {
        log_line(LOG_ERROR, "ray job %s: its log cannot be classified: %s", follow->id, err.text);
    } else if (incident.oom) {
        done = ray_again(cluster, follow, job, exit_data, &incident, NULL);
    } else {
        char reason[600];
        plain_reason(follow, exit_data, &incident, reason, sizeof(reason));
        struct ray_end end = {.exit = exit_data, .incident = &incident, .reason = reason};
        if (incident.cause.text && oom_edits_named(&follow->edits, incident.cause.text))
            done = ray_again(cluster, follow, job, exit_data, &incident, reason);
        else if ((done = tell_end(cluster, follow, &end)))
            log_line(LOG_NOTICE, "ray job %s: not retried: %s", follow->id, reason);
    }
    oom_incident_free(&incident);
    return done;
}

bool ray_follow_end(struct ray_cluster *cluster, struct ray_follow *follow, const json_t *job)
{
    struct oom_exit exit_data;
    struct ray_end end = {.exit = &exit_data};

    read_exit(job, &exit_data);
    if (exit_data.finished)
        return tell_end(cluster, follow, &end);
    if (strcmp(exit_data.state, "STOPPED") == 0 && !follow->ours) {
        end.ended_by = "stop";
        end.reason = "it was stopped by its user (ray job stop)";
        log_line(LOG_NOTICE, "ray job %s: not retried: %s", follow->id, end.reason);
        return tell_end(cluster, follow, &end);
    }
    return failed(cluster, follow, job, &exit_data);
}

int ray_follow_lost(struct ray_cluster *cluster, int64_t lineage, int64_t attempt,
                    const char *reason, struct oom_error *err)
{
    json_t *body = json_pack("{s:I, s:I, s:{s:i, s:s}, s:b, s:o}", "lineage", (json_int_t)lineage,
                             "attempt", (json_int_t)attempt, "exit", "exit_code", -1, "state",
                             "LOST", "completed", 0, "reason", oom_json_text(reason));
    json_t *reply = NULL;
    int status = body ? api_call(cluster->head, "POST", "/v1/attempts/end", body, &reply, err) : -1;

    json_decref(body);
    json_decref(reply);
    return status == 200 ? 0 : -1;
}
