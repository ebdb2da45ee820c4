/* SPDX-License-Identifier: Apache-2.0
 *
 * What users say about their lineages: stop (no more retries), hold (keep the settings as they
 * are), resume. */
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "agent/head/service.h"
#include "agent/lib/jsonget.h"
#include "db/lineages.h"

/* args[0]: lineage, args[1]: stop, hold or resume. */
int lineage_steer(struct service *service, const struct service_request *request,
                  const char *const *args, json_t **reply, struct oom_error *err)
{
    int64_t id = atoll(args[0]);
    const char *verb = args[1];
    json_t *lineage = lineage_get(service->db, id, err);
    const struct passwd *pw = getpwuid(request->uid);
    int status = 200;

    if (!lineage)
        return 404;
    const char *state = json_get_string(lineage, "state", "");
    bool over = strcmp(state, "running") != 0 && strcmp(state, "waiting") != 0 &&
                strcmp(state, "held") != 0 && strcmp(state, "stopped") != 0;
    const char *now = strcmp(verb, "stop") == 0     ? "stopped"
                      : strcmp(verb, "hold") == 0   ? "held"
                      : strcmp(verb, "resume") == 0 ? "running"
                                                    : NULL;
    const char *reason = strcmp(verb, "stop") == 0   ? "its owner said: no more retries"
                         : strcmp(verb, "hold") == 0 ? "its owner holds the present settings"
                                                     : "";
    if (!request->admin && json_get_int(lineage, "uid", -1) != (int64_t)request->uid)
        status = service_refuse(403, err, "lineage %lld belongs to somebody else", (long long)id);
    else if (!now)
        status = service_refuse(404, err, "\"%s\" is none of stop, hold, resume", verb);
    else if (over)
        status = service_refuse(409, err, "the lineage is over: it is %s", state);
    else if (lineage_set_state(service->db, id, now, reason, "", err) < 0 ||
             audit_add(service->db, pw ? pw->pw_name : "?", verb, args[0], "", err) < 0)
        status = -1;
    if (status == 200)
        *reply =
            json_pack("{s:s, s:O, s:O}", "state", now, "jobs", json_object_get(lineage, "jobs"),
                      "scheduler", json_object_get(lineage, "scheduler"));
    json_decref(lineage);
    return status;
}
