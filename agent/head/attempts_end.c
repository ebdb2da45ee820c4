/* SPDX-License-Identifier: Apache-2.0
 *
 * An attempt ends: how it came out is stored, and in the same transaction (service.c) what comes
 * next (next_step.c). */
#include <stdlib.h>
#include <string.h>

#include "agent/head/attempts.h"
#include "agent/head/next_step.h"
#include "agent/head/rejection.h"
#include "agent/lib/jsonget.h"
#include "db/lineages.h"

/* How the attempt came out, in the words of the attempt table. */
static const char *outcome_of(const json_t *body, const json_t *attempts, int64_t number)
{
    if (json_object_get(body, "ended_by"))
        return "cancelled";
    if (json_get_bool(json_object_get(body, "incident"), "oom", false))
        return "oom";
    if (json_get_bool(body, "completed", false))
        return "completed";
    /* Who reports an end without asking what comes next would not carry it out. */
    if (json_get_bool(body, "rejected", false) &&
        rejection_found(attempts, number, json_object_get(body, "incident")))
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
    /* Who was away, or found it late, must not make it longer than it was. */
    int64_t ended_ms = db_now_ms(), ago_ms = json_get_int(body, "ended_ago_ms", 0);

    if (ago_ms > 0 && ago_ms < ended_ms)
        ended_ms -= ago_ms;
    if (gpus && attempt_set_gpus(service->db, id, number, strtoll(gpus, NULL, 10), err) < 0)
        return -1;
    if (db_run(service->db, err,
               "UPDATE attempt SET state = 'ended', "
               "ended_ms = coalesce(ended_ms, max(?, coalesce(started_ms, 0))), "
               "exit_code = ?, signal = ?, sched_state = ?, outcome = ?, incident = ?, "
               "values_json = ? WHERE lineage = ? AND number = ?",
               "iiissjjii", ended_ms, json_get_int(exit_data, "exit_code", -1),
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

int attempts_end(struct service *service, const struct service_request *request,
                 const char *const *args, json_t **reply, struct oom_error *err)
{
    const json_t *body = request->body;
    int64_t id = json_get_int(body, "lineage", 0), number = json_get_int(body, "attempt", 0);
    json_t *lineage = NULL, *attempts = NULL;
    int status = attempts_own_lineage(service, request, id, &lineage, err);

    (void)args;
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
