/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of an attempt as its supervisor reports it: it begins, it ends (decide.c says what
 * comes next), notes about it arrive. Everything is keyed so that a repeated report changes
 * nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/head/next_step.h"
#include "agent/head/rejection.h"
#include "agent/head/scope.h"
#include "agent/head/service.h"
#include "agent/lib/jsonget.h"
#include "db/lineages.h"

enum { MAX_TEXT_BYTES = 64 * 1024 };

/* Lines of logs are of no use later, and they are most of the database. */
#define KEEP_EVIDENCE_MS (INT64_C(180) * 24 * 3600 * 1000)

/* The lineage, if the caller may touch it. */
static int own_lineage(struct service *service, const struct service_request *request, int64_t id,
                       json_t **out, struct oom_error *err)
{
    *out = lineage_get(service->db, id, err);
    if (!*out)
        return 404;
    if (request->admin || json_get_int(*out, "uid", -1) == (int64_t)request->uid)
        return 0;
    json_decref(*out);
    *out = NULL;
    return service_refuse(403, err, "lineage %lld belongs to somebody else", (long long)id);
}

static json_t *last_of(const json_t *attempts)
{
    size_t count = json_array_size(attempts);

    return count ? json_array_get(attempts, count - 1) : NULL;
}

/* Root (the node's agent, a watcher) may begin for an owner; everybody else for himself. */
static int64_t owner_of(const struct service_request *request)
{
    return request->uid == 0 ? json_get_int(request->body, "uid", 0) : (int64_t)request->uid;
}

/* The versions that the lineage keeps. An override that does not fit its policy any more has no
 * effect, which its administrator should be able to find out. */
static json_t *versions_for(struct service *service, const struct policy_scope *scope,
                            struct oom_error *err)
{
    json_t *left_out = json_array(), *item;
    size_t i;
    json_t *versions = overrides_versions(service->db, scope, left_out, err);

    json_array_foreach(left_out, i, item)
    {
        audit_add(service->db, "oomretry", "override left out", json_get_string(item, "name", ""),
                  json_get_string(item, "why", ""), NULL);
    }
    json_decref(left_out);
    return versions;
}

static json_t *new_fields(struct service *service, const struct service_request *request,
                          struct oom_error *err)
{
    char user[SCOPE_USER_ROOM];
    const json_t *body = request->body;
    /* Who acts for everybody (the node's agent, the Ray watcher) begins for an owner; everybody
     * else for himself. */
    int64_t uid = (int64_t)request->uid;
    if (request->admin)
        uid = json_get_int(body, "uid", uid);
    const struct policy_scope scope = {
        .partition = json_get_string(body, "partition", ""),
        .account = json_get_string(body, "account", ""),
        .user = scope_user_name((uid_t)uid, user, sizeof(user)),
    };
    json_t *options = json_object_get(body, "options");
    json_t *policies = versions_for(service, &scope, err);

    if (!policies)
        return NULL;
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:o, s:O?, s:s, s:s, s:s}", "scheduler",
                     json_get_string(body, "scheduler", "none"), "cluster",
                     json_get_string(body, "cluster", service->cluster), "uid", (json_int_t)uid,
                     "user", scope.user, "name", json_get_string(body, "name", ""), "policies",
                     policies, "options", json_is_object(options) ? options : NULL, "shape",
                     json_get_string(body, "shape", ""), "partition", scope.partition, "account",
                     scope.account);
}

static int64_t create(struct service *service, const struct service_request *request,
                      const char *job, struct oom_error *err)
{
    json_t *fields = new_fields(service, request, err);
    int64_t id = fields ? lineage_create(service->db, fields, err) : -1;

    if (id > 0 && (lineage_add_job(service->db, id, json_get_string(fields, "scheduler", ""),
                                   json_get_string(fields, "cluster", ""), job, err) < 0 ||
                   attempt_insert(service->db, id, 1, "first", NULL, NULL, NULL, err) < 0 ||
                   evidence_forget(service->db, db_now_ms() - KEEP_EVIDENCE_MS, err) < 0))
        id = -1;
    json_decref(fields);
    return id;
}

/* Which attempt does this report begin? Sets *number; *insert when it is a restart that nobody
 * here decided (preemption, a user's requeue): the same settings once more. */
static void pick(const json_t *attempts, const json_t *body, int64_t *number, bool *insert)
{
    const json_t *last = last_of(attempts);
    const char *state = json_get_string(last, "state", "");
    const char *token = json_get_string(last, "token", "");

    *number = json_get_int(last, "number", 0);
    *insert = false;
    if (strcmp(state, "intended") == 0)
        return;
    if (strcmp(state, "running") == 0 && *token &&
        strcmp(token, json_get_string(body, "token", "")) == 0)
        return;
    *number += 1;
    *insert = true;
}

static int insert_restart(struct service *service, int64_t id, const json_t *last, int64_t number,
                          struct oom_error *err)
{
    if (strcmp(json_get_string(last, "state", ""), "running") == 0 &&
        db_run(service->db, err,
               "UPDATE attempt SET state = 'ended', outcome = 'lost', ended_ms = ? "
               "WHERE lineage = ? AND number = ?",
               "iii", db_now_ms(), id, number - 1) < 0)
        return -1;
    return attempt_insert(service->db, id, number, "scheduler", NULL, NULL,
                          json_object_get(last, "total_edits"), err);
}

static bool same_text(const json_t *a, const json_t *b, const char *key)
{
    return strcmp(json_get_string(a, key, ""), json_get_string(b, key, "")) == 0;
}

/* The part of the shape that says which script with which arguments it is; the number of GPUs may
 * differ from one allocation to the next. */
static bool other_script(const json_t *lineage, const json_t *body)
{
    const char *ours = json_get_string(lineage, "shape", "");
    const char *theirs = json_get_string(body, "shape", "");
    size_t length = strcspn(ours, "-");

    return *ours && *theirs &&
           (strcspn(theirs, "-") != length || memcmp(ours, theirs, length) != 0);
}

/* A job id may come back: after a cluster was set up anew, after a controller has lost its state.
 * A restart of the same job has a higher restart count; another supervisor with the same count
 * runs another job, unless it is the same script while the lineage waits: then the controller has
 * forgotten that it had started or queued it already. */
static bool same_submission(const json_t *lineage, const json_t *attempts, const json_t *body)
{
    const char *state = json_get_string(lineage, "state", "");
    const char *token = json_get_string(body, "token", "");
    int64_t restart = json_get_int(body, "restart", 0);
    bool over = strcmp(state, "running") != 0 && strcmp(state, "waiting") != 0;

    if (other_script(lineage, body))
        return false;
    if (!over && *json_get_string(body, "shape", "") && same_text(lineage, body, "name"))
        return true;
    for (size_t i = json_array_size(attempts); i-- > 0;) {
        const json_t *attempt = json_array_get(attempts, i);
        if (strcmp(json_get_string(attempt, "state", ""), "intended") == 0 ||
            strcmp(json_get_string(attempt, "job", ""), json_get_string(body, "job", "")) != 0)
            continue;
        if (strcmp(json_get_string(attempt, "token", ""), token) != 0)
            return restart > json_get_int(attempt, "restart", 0);
        break;
    }
    return !over || restart > 0;
}

/* The lineage whose job id was given to another job has no end that anybody could report. */
static int abandon(struct service *service, const json_t *lineage, struct oom_error *err)
{
    int64_t id = json_get_int(lineage, "id", 0);
    const char *state = json_get_string(lineage, "state", "");

    if (strcmp(state, "running") != 0 && strcmp(state, "waiting") != 0)
        return 0;
    if (db_run(service->db, err,
               "UPDATE attempt SET state = 'ended', outcome = 'lost', ended_ms = ? "
               "WHERE lineage = ? AND state <> 'ended'",
               "ii", db_now_ms(), id) < 0)
        return -1;
    return lineage_set_state(service->db, id, "failed",
                             "the scheduler lost this job and gave its id to another one", "", err);
}

/* A scheduler whose ids never come back says "once", and who hands in a report that found no head
 * says "late": whatever became of the job meanwhile, its attempt is the one that has this token. */
static const json_t *with_token(const json_t *attempts, const json_t *body)
{
    const char *token = json_get_string(body, "token", "");
    size_t i;
    json_t *attempt;

    json_array_foreach(attempts, i, attempt)
    {
        if (*token && strcmp(json_get_string(attempt, "token", ""), token) == 0)
            return attempt;
    }
    return NULL;
}

static json_t *begun(const json_t *lineage, const json_t *attempts, int64_t number)
{
    const json_t *attempt = json_array_get(attempts, (size_t)number - 1);
    const json_t *next = json_array_get(attempts, (size_t)number);

    return json_pack(
        "{s:O, s:O, s:I, s:s, s:s, s:s, s:O, s:O, s:O}", "lineage", json_object_get(lineage, "id"),
        "created_ms", json_object_get(lineage, "created_ms"), "attempt", (json_int_t)number,
        "state", json_get_string(attempt, "state", ""), "next_state",
        json_get_string(next, "state", ""), "acted", json_get_string(attempt, "acted", ""), "edits",
        json_object_get(attempt, "total_edits"), "options", json_object_get(lineage, "options"),
        "framework", json_object_get(lineage, "framework"));
}

static int begin(struct service *service, const struct service_request *request, json_t **reply,
                 struct oom_error *err)
{
    const json_t *body = request->body;
    const char *job = json_get_string(body, "job", "");
    const char *cluster = json_get_string(body, "cluster", service->cluster);
    json_t *lineage = NULL, *attempts = NULL;
    int64_t id = json_get_int(body, "lineage", 0), number = 1;
    bool insert = false, once = json_get_bool(body, "once", false);
    bool late = json_get_bool(body, "late", false);
    int status = -1;

    if (!*job)
        return service_refuse(400, err, "member \"job\" is missing");
    if (!id && lineage_find(service->db, json_get_string(body, "scheduler", "none"), cluster, job,
                            owner_of(request), &id, err) < 0)
        return -1;
    if (id) {
        status = own_lineage(service, request, id, &lineage, err);
        if (status)
            return status;
        attempts = lineage_attempts(service->db, id, err);
        if (!attempts)
            goto fail;
        bool told = (once || late) && with_token(attempts, body);
        if (!once && !told && !same_submission(lineage, attempts, body)) {
            if (abandon(service, lineage, err) < 0)
                goto fail;
            json_decref(lineage);
            lineage = NULL;
        }
        json_decref(attempts);
        attempts = NULL;
    }
    if (!lineage) {
        id = create(service, request, job, err);
        lineage = id > 0 ? lineage_get(service->db, id, err) : NULL;
        if (!lineage)
            return -1;
    }
    attempts = lineage_attempts(service->db, id, err);
    status = -1;
    if (!attempts)
        goto out;
    const json_t *known = once || late ? with_token(attempts, body) : NULL;
    if (known) {
        *reply = begun(lineage, attempts, json_get_int(known, "number", 1));
        status = 200;
        goto out;
    }
    pick(attempts, body, &number, &insert);
    if ((insert && insert_restart(service, id, last_of(attempts), number, err) < 0) ||
        lineage_add_job(service->db, id, json_get_string(lineage, "scheduler", ""),
                        json_get_string(lineage, "cluster", ""), job, err) < 0 ||
        attempt_start(service->db, id, number, body, err) < 0 ||
        evidence_put(service->db, id, number, "log", json_object_get(body, "log"), err) < 0)
        goto out;
    json_decref(attempts);
    attempts = lineage_attempts(service->db, id, err);
    if (!attempts)
        goto out;
    *reply = begun(lineage, attempts, number);
    status = 200;
    goto out;
fail:
    status = -1;
out:
    json_decref(lineage);
    json_decref(attempts);
    return status;
}

int attempts_begin(struct service *service, const struct service_request *request,
                   const char *const *args, json_t **reply, struct oom_error *err)
{
    (void)args;
    if (db_begin(service->db, err) < 0)
        return -1;
    int status = begin(service, request, reply, err);
    return db_end(service->db, status == 200, status == 200 ? err : NULL) < 0 ? -1 : status;
}

int attempts_policies(struct service *service, const struct service_request *request,
                      const char *const *args, json_t **reply, struct oom_error *err)
{
    json_t *lineage = NULL;
    int status = own_lineage(service, request, atoll(args[0]), &lineage, err);

    if (status)
        return status;
    json_t *list = overrides_documents(service->db, json_object_get(lineage, "policies"), err);
    json_decref(lineage);
    if (!list)
        return -1;
    *reply = json_pack("{s:o}", "policies", list);
    return 200;
}

/* How the attempt came out, in the words of the attempt table. */
static const char *outcome_of(const json_t *body, const json_t *attempts, int64_t number)
{
    if (json_object_get(body, "ended_by"))
        return "cancelled";
    if (json_get_bool(json_object_get(body, "incident"), "oom", false))
        return "oom";
    if (json_get_bool(body, "completed", false))
        return "completed";
    if (rejection_found(attempts, number, json_object_get(body, "incident")))
        return "rejected";
    return "failed";
}

static int store_end(struct service *service, const json_t *body, int64_t id, int64_t number,
                     const char *outcome, struct oom_error *err)
{
    const json_t *exit_data = json_object_get(body, "exit");
    /* What the scheduler says of the allocation goes over what the environment said at the start.
     */
    const json_t *allocated = json_object_get(json_object_get(body, "values"), "slurm.gpus");
    const char *gpus = json_get_string(allocated, "value", NULL);

    if (gpus &&
        db_run(service->db, err, "UPDATE attempt SET gpus = ? WHERE lineage = ? AND number = ?",
               "iii", (int64_t)atoll(gpus), id, number) < 0)
        return -1;
    if (db_run(service->db, err,
               "UPDATE attempt SET state = 'ended', ended_ms = coalesce(ended_ms, ?), "
               "exit_code = ?, signal = ?, sched_state = ?, outcome = ?, incident = ?, "
               "values_json = ? WHERE lineage = ? AND number = ?",
               "iiissjjii", db_now_ms(), json_get_int(exit_data, "exit_code", -1),
               json_get_int(exit_data, "signal", 0), json_get_string(exit_data, "state", ""),
               outcome, json_object_get(body, "incident"), json_object_get(body, "values"), id,
               number) < 0)
        return -1;
    if (db_run(service->db, err, "UPDATE lineage SET framework = ? WHERE id = ? AND ? <> ''", "sis",
               json_get_string(body, "framework", ""), id,
               json_get_string(body, "framework", "")) < 0)
        return -1;
    if (evidence_put(service->db, id, number, "windows", json_object_get(body, "windows"), err) <
            0 ||
        evidence_put(service->db, id, number, "explain", json_object_get(body, "explain"), err) < 0)
        return -1;
    return evidence_put(service->db, id, number, "exit", exit_data, err);
}

/* The reply to a report that came before: the decision that was stored then. */
static json_t *stored_decision(const json_t *lineage, const json_t *attempts, int64_t number)
{
    const json_t *next = json_array_get(attempts, (size_t)number);
    json_t *reply;

    if (next && json_is_object(json_object_get(next, "decision"))) {
        reply = json_copy(json_object_get(next, "decision"));
        json_object_set_new(reply, "attempt", json_integer(number + 1));
        json_object_set(reply, "total_edits", json_object_get(next, "total_edits"));
        return reply;
    }
    return json_pack("{s:s, s:O, s:O}", "action", "stop", "reason",
                     json_object_get(lineage, "reason"), "advice",
                     json_object_get(lineage, "advice"));
}

static int end(struct service *service, const struct service_request *request, json_t **reply,
               struct oom_error *err)
{
    const json_t *body = request->body;
    int64_t id = json_get_int(body, "lineage", 0), number = json_get_int(body, "attempt", 0);
    json_t *lineage = NULL, *attempts = NULL;
    int status = own_lineage(service, request, id, &lineage, err);

    if (status)
        return status;
    attempts = lineage_attempts(service->db, id, err);
    const json_t *attempt = number > 0 ? json_array_get(attempts, (size_t)number - 1) : NULL;
    const json_t *next = number > 0 ? json_array_get(attempts, (size_t)number) : NULL;
    bool again = json_array_size(json_object_get(body, "refused")) > 0;
    if (!attempt) {
        status = service_refuse(404, err, "lineage %lld has no attempt %lld", (long long)id,
                                (long long)number);
    } else if (strcmp(json_get_string(attempt, "state", ""), "ended") == 0 &&
               !(again && (!next || strcmp(json_get_string(next, "state", ""), "intended") == 0))) {
        *reply = stored_decision(lineage, attempts, number);
        status = 200;
    } else {
        const char *outcome = outcome_of(body, attempts, number);
        /* As it is about to be stored. */
        json_t *now = json_array_get(attempts, (size_t)number - 1);
        json_object_set_new(now, "outcome", json_string(outcome));
        json_object_set(now, "incident", json_object_get(body, "incident"));
        if (*json_get_string(body, "framework", ""))
            json_object_set(lineage, "framework", json_object_get(body, "framework"));
        status = store_end(service, body, id, number, outcome, err) < 0
                     ? -1
                     : next_step(service, lineage, attempts, number, outcome, body, reply, err);
    }
    json_decref(lineage);
    json_decref(attempts);
    return status;
}

int attempts_end(struct service *service, const struct service_request *request,
                 const char *const *args, json_t **reply, struct oom_error *err)
{
    (void)args;
    if (db_begin(service->db, err) < 0)
        return -1;
    int status = end(service, request, reply, err);
    return db_end(service->db, status == 200, status == 200 ? err : NULL) < 0 ? -1 : status;
}

/* What would be decided if the attempt ended like this: the same request as for its end, and
 * nothing is kept. */
int attempts_ask(struct service *service, const struct service_request *request,
                 const char *const *args, json_t **reply, struct oom_error *err)
{
    (void)args;
    if (db_begin(service->db, err) < 0)
        return -1;
    int status = end(service, request, reply, err);
    return db_end(service->db, false, NULL) < 0 ? -1 : status;
}

/* Later knowledge about an attempt: the diff that was made for it, whether its change arrived,
 * what was done to start it. "job": the scheduler is about to know the lineage by that id too. */
int attempts_note(struct service *service, const struct service_request *request,
                  const char *const *args, json_t **reply, struct oom_error *err)
{
    static const char *const columns[] = {"diff", "applied", "proof", "acted", "mode"};
    const json_t *body = request->body;
    int64_t id = json_get_int(body, "lineage", 0), number = json_get_int(body, "attempt", 0);
    json_t *lineage = NULL;
    int status = own_lineage(service, request, id, &lineage, err);

    (void)args;
    if (status)
        return status;
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        const char *text = json_get_string(body, columns[i], NULL);
        char sql[96];

        if (!text)
            continue;
        if (strlen(text) > MAX_TEXT_BYTES) {
            json_decref(lineage);
            return service_refuse(413, err, "member \"%s\" is over %d bytes", columns[i],
                                  MAX_TEXT_BYTES);
        }
        /* The column's name comes from the table above, never from the request. */
        snprintf(sql, sizeof(sql), "UPDATE attempt SET %s = ? WHERE lineage = ? AND number = ?",
                 columns[i]);
        if (db_run(service->db, err, sql, "sii", text, id, number) < 0)
            goto fail;
    }
    /* Submitted as a new job, which is held until this is known. */
    const char *job = json_get_string(body, "job", NULL);
    if (job && lineage_add_job(service->db, id, json_get_string(lineage, "scheduler", ""),
                               json_get_string(lineage, "cluster", ""), job, err) < 0)
        goto fail;
    /* What was decided could not be done: the lineage is over, and the intention with it. */
    const char *stopped = json_get_string(body, "stopped", NULL);
    if (stopped &&
        (lineage_set_state(service->db, id, "stopped", stopped, "", err) < 0 ||
         db_run(service->db, err,
                "UPDATE attempt SET state = 'ended', outcome = 'lost' WHERE lineage = ? AND "
                "number = ? AND state = 'intended'",
                "ii", id, number) < 0))
        goto fail;
    json_decref(lineage);
    *reply = json_object();
    return 200;
fail:
    json_decref(lineage);
    return -1;
}
