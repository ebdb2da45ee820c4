/* SPDX-License-Identifier: Apache-2.0
 *
 * An attempt begins: the head hears of it, and says which changes are in force. */
#include <stdlib.h>

#include "agent/lib/jsonget.h"
#include "agent/run/body.h"
#include "agent/run/findings.h"
#include "agent/run/run.h"

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
                       : change_make(run, set.items[index], &attempt->edits, err);
        if (rc == 0)
            change_prove_by(run, &set, index);
    }
    oom_script_free(script);
    policy_set_free(&set);
    return rc;
}

int attempt_begin(struct run *run, struct attempt *attempt, struct oom_error *err)
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
