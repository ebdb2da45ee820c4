/* SPDX-License-Identifier: Apache-2.0
 *
 * What users say about their lineages: stop (no more retries), hold (keep the settings as they
 * are), resume (take either back). The attempt that runs goes on in any case. */
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "agent/head/attempts.h"
#include "agent/lib/jsonget.h"
#include "db/lineages.h"

static const struct verb {
    const char *name, *wish;
} verbs[] = {{"stop", "stop"}, {"hold", "hold"}, {"resume", ""}};

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

static bool is_going_on(const char *state)
{
    return strcmp(state, "running") == 0 || strcmp(state, "waiting") == 0;
}

/* A lineage that ended without the retry which its failure called for: its last attempt counts as
 * open again, and the agent, which finds that its job is over, does what its supervisor would have
 * done. 1: reopened, 0: there is nothing to go on from, -1: err. */
static int reopen(struct service *service, int64_t id, struct oom_error *err)
{
    if (db_run(service->db, err,
               "UPDATE attempt SET state = 'running', outcome = NULL, claimed_by = NULL "
               "WHERE lineage = ?1 AND outcome = 'oom' "
               "AND number = (SELECT max(number) FROM attempt WHERE lineage = ?1) "
               "AND EXISTS (SELECT 1 FROM lineage WHERE id = ?1 AND scheduler = 'slurm' "
               "AND state IN ('stopped', 'held'))",
               "i", id) < 0)
        return -1;
    if (sqlite3_changes(service->db->sql) == 0)
        return 0;
    return lineage_set_state(service->db, id, "running", "", "", err) < 0 ? -1 : 1;
}

static int set_wish(struct service *service, const struct service_request *request,
                    const json_t *lineage, const struct verb *verb, bool *reopened,
                    struct oom_error *err)
{
    const struct passwd *pw = getpwuid(request->uid);
    const char *state = json_get_string(lineage, "state", "");
    int64_t id = json_get_int(lineage, "id", 0);
    char object[32];

    snprintf(object, sizeof(object), "%lld", (long long)id);
    if (!is_going_on(state)) {
        int rc = *verb->wish ? 0 : reopen(service, id, err);
        if (rc < 0)
            return -1;
        if (rc == 0)
            return service_refuse(409, err, "it is over: lineage L%s is %s", object, state);
        *reopened = true;
    }
    if (db_run(service->db, err, "UPDATE lineage SET wish = ? WHERE id = ?", "si", verb->wish, id) <
            0 ||
        audit_add(service->db, pw ? pw->pw_name : "?", verb->name, object, "", err) < 0)
        return -1;
    return 200;
}

/* args[0]: lineage, args[1]: stop, hold or resume. */
int lineage_steer(struct service *service, const struct service_request *request,
                  const char *const *args, json_t **reply, struct oom_error *err)
{
    const struct verb *verb = find_verb(args[1]);
    bool reopened = false;
    json_t *lineage = NULL;
    int status = attempts_own_lineage(service, request, atoll(args[0]), &lineage, err);

    if (status)
        return status;
    status = verb ? set_wish(service, request, lineage, verb, &reopened, err)
                  : service_refuse(404, err, "\"%s\" is none of stop, hold, resume", args[1]);
    if (status == 200)
        *reply = json_pack("{s:s, s:b, s:O, s:O}", "wish", verb->wish, "reopened", reopened, "jobs",
                           json_object_get(lineage, "jobs"), "scheduler",
                           json_object_get(lineage, "scheduler"));
    json_decref(lineage);
    return status;
}
