/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/head/attempts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/head/scope.h"
#include "agent/lib/jsonget.h"
#include "db/lineages.h"

enum { MAX_TEXT_BYTES = 64 * 1024 };

int attempts_own_lineage(struct service *service, const struct service_request *request, int64_t id,
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

int attempts_policies(struct service *service, const struct service_request *request,
                      const char *const *args, json_t **reply, struct oom_error *err)
{
    json_t *lineage = NULL;
    int status = attempts_own_lineage(service, request, atoll(args[0]), &lineage, err);

    if (status)
        return status;
    json_t *list = overrides_documents(service->db, json_object_get(lineage, "policies"), err);
    json_decref(lineage);
    if (!list)
        return -1;
    *reply = json_pack("{s:o}", "policies", list);
    return 200;
}

/* Later knowledge about an attempt: the diff that was made for it, whether its change arrived,
 * what was done to start it; "told": a signal that asks it to end. "job": the scheduler is about to
 * know the lineage by that id too. */
int attempts_note(struct service *service, const struct service_request *request,
                  const char *const *args, json_t **reply, struct oom_error *err)
{
    static const char *const columns[] = {"diff", "applied", "proof", "acted", "mode"};
    const json_t *body = request->body;
    int64_t id = json_get_int(body, "lineage", 0), number = json_get_int(body, "attempt", 0);
    json_t *lineage = NULL;
    int status = attempts_own_lineage(service, request, id, &lineage, err);

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
    /* The signal by which somebody has told it to end. */
    json_t *told = json_object_get(body, "told");
    if (json_is_integer(told) && evidence_put(service->db, id, number, "told", told, err) < 0)
        goto fail;
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
