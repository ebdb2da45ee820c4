/* SPDX-License-Identifier: Apache-2.0
 *
 * An attempt begins: it is the first of a new lineage, one that was decided, or a restart that
 * nobody here decided. */
#include <string.h>

#include "agent/head/attempts.h"
#include "agent/head/scope.h"
#include "agent/head/sound.h"
#include "agent/lib/jsonget.h"
#include "db/lineages.h"

enum { MAX_OPTIONS_BYTES = 16 * 1024, MAX_NAME_BYTES = 1024 };

/* Lines of logs are of no use later, and they are most of the database. */
#define KEEP_EVIDENCE_MS (INT64_C(180) * 24 * 3600 * 1000)

static json_t *last_of(const json_t *attempts)
{
    size_t count = json_array_size(attempts);

    return count ? json_array_get(attempts, count - 1) : NULL;
}

/* Who acts for everybody (the node's agent, the Ray watcher) begins for an owner; everybody else
 * for himself. */
static int64_t owner_of(const struct service_request *request)
{
    int64_t uid = (int64_t)request->uid;

    return request->admin ? json_get_int(request->body, "uid", uid) : uid;
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
    int64_t uid = owner_of(request);
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
               "UPDATE attempt SET state = 'ended', outcome = 'lost', "
               "ended_ms = max(?, coalesce(started_ms, 0)) WHERE lineage = ? AND number = ?",
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
               "UPDATE attempt SET state = 'ended', outcome = 'lost', "
               "ended_ms = max(?, coalesce(started_ms, 0)) WHERE lineage = ? AND state <> 'ended'",
               "ii", db_now_ms(), id) < 0)
        return -1;
    return lineage_set_state(service->db, id, "failed",
                             "the scheduler lost this job and gave its id to another one", "", err);
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

/* A scheduler whose ids never come back says "once", and who hands in a report that found no head
 * says "late": whatever became of the job meanwhile, its attempt is the one that has this token. */
static const json_t *with_token(const json_t *attempts, const json_t *body)
{
    const char *token = json_get_string(body, "token", "");
    size_t i;
    json_t *attempt;

    if (!*token || !(json_get_bool(body, "once", false) || json_get_bool(body, "late", false)))
        return NULL;
    json_array_foreach(attempts, i, attempt)
    {
        if (strcmp(json_get_string(attempt, "token", ""), token) == 0)
            return attempt;
    }
    return NULL;
}

/* The lineage that this report belongs to; *out stays NULL when it begins a new one. 0, or the
 * status of a refusal. */
static int find(struct service *service, const struct service_request *request, json_t **out,
                struct oom_error *err)
{
    const json_t *body = request->body;
    int64_t id = json_get_int(body, "lineage", 0);

    if (!id && lineage_find(service->db, json_get_string(body, "scheduler", "none"),
                            json_get_string(body, "cluster", service->cluster),
                            json_get_string(body, "job", ""), owner_of(request), &id, err) < 0)
        return -1;
    if (!id)
        return 0;
    int status = attempts_own_lineage(service, request, id, out, err);
    if (status)
        return status;
    json_t *attempts = lineage_attempts(service->db, id, err);
    if (!attempts)
        return -1;
    bool same = json_get_bool(body, "once", false) || with_token(attempts, body) ||
                same_submission(*out, attempts, body);
    json_decref(attempts);
    if (same)
        return 0;
    status = abandon(service, *out, err);
    json_decref(*out);
    *out = NULL;
    return status;
}

/* Makes the report's attempt a running one. Sets *number; *attempts is read anew. 0 or -1. */
static int start(struct service *service, const json_t *lineage, const json_t *body,
                 json_t **attempts, int64_t *number, struct oom_error *err)
{
    int64_t id = json_get_int(lineage, "id", 0);
    const json_t *known = with_token(*attempts, body);
    bool insert;

    if (known) {
        *number = json_get_int(known, "number", 1);
        return 0;
    }
    pick(*attempts, body, number, &insert);
    if ((insert && insert_restart(service, id, last_of(*attempts), *number, err) < 0) ||
        lineage_add_job(service->db, id, json_get_string(lineage, "scheduler", ""),
                        json_get_string(lineage, "cluster", ""), json_get_string(body, "job", ""),
                        err) < 0 ||
        attempt_start(service->db, id, *number, body, err) < 0 ||
        evidence_put(service->db, id, *number, "log", json_object_get(body, "log"), err) < 0)
        return -1;
    json_decref(*attempts);
    *attempts = lineage_attempts(service->db, id, err);
    return *attempts ? 0 : -1;
}

/* The member that is longer than anything of its kind; NULL: none. Everybody's lists show them. */
static const char *too_long(const json_t *body)
{
    static const char *const names[] = {"job",  "name",  "scheduler", "cluster", "token",
                                        "node", "shape", "partition", "account"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(json_get_string(body, names[i], "")) > MAX_NAME_BYTES)
            return names[i];
    return sound_size(json_object_get(body, "options"), MAX_OPTIONS_BYTES) ? NULL : "options";
}

int attempts_begin(struct service *service, const struct service_request *request,
                   const char *const *args, json_t **reply, struct oom_error *err)
{
    const char *job = json_get_string(request->body, "job", "");
    json_t *lineage = NULL, *attempts = NULL;
    int64_t number = 1;

    (void)args;
    if (!*job)
        return service_refuse(400, err, "member \"job\" is missing");
    if (too_long(request->body))
        return service_refuse(413, err, "member \"%s\" is too long", too_long(request->body));
    int status = find(service, request, &lineage, err);
    if (status == 0 && !lineage) {
        int64_t id = create(service, request, job, err);
        lineage = id > 0 ? lineage_get(service->db, id, err) : NULL;
    }
    if (status == 0 && lineage)
        attempts = lineage_attempts(service->db, json_get_int(lineage, "id", 0), err);
    if (status == 0)
        status = attempts && start(service, lineage, request->body, &attempts, &number, err) == 0
                     ? 200
                     : -1;
    if (status == 200)
        *reply = begun(lineage, attempts, number);
    json_decref(lineage);
    json_decref(attempts);
    return status;
}
