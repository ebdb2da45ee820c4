/* SPDX-License-Identifier: Apache-2.0
 *
 * How an attempt came out: from its exit, its logs, and what the nodes have reported. */
#include <stdlib.h>
#include <string.h>

#include "agent/evidence/otherlogs.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/urlquery.h"
#include "agent/run/run.h"
#include "agent/run/verdict.h"

int64_t verdict_reported_kills(struct run *run, const struct attempt *attempt)
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

int verdict_reach(struct run *run, struct attempt *attempt, struct oom_script *script,
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

bool verdict_exited_well(const struct attempt *attempt)
{
    return attempt->exit.exit_code == 0 && !attempt->ended_early;
}

void verdict_reason(const struct run *run, const struct attempt *attempt,
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

bool verdict_refuses_change(const struct attempt *attempt, const struct oom_incident *incident)
{
    return !verdict_exited_well(attempt) && attempt->number > 1 && incident->cause.text &&
           oom_edits_named(&attempt->edits, incident->cause.text);
}
