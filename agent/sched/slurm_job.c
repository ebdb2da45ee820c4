/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sched/slurm_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/lib/child.h"
#include "agent/lib/elapsed.h"
#include "agent/lib/jsonget.h"
#include "agent/sched/slurm_fields.h"
#include "db/db.h"
#include "policies/jsontext.h"

enum { CALL_MS = 10000, SETTLE_MS = 20000, CLOCKS_DIFFER_MS = 60000 };

static bool is_one_of(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (strncmp(word, *list, strlen(*list)) == 0)
            return true;
    return false;
}

/* While it is COMPLETING its real state does not show: wait for that, unless the batch script is
 * known to have ended by itself. */
static char *job_text(const char *job, bool settle, struct oom_error *err)
{
    const char *show[] = {"scontrol", "-o", "show", "job", job, NULL};
    struct timespec nap = {0, 100 * 1000 * 1000};
    int64_t deadline_ms = elapsed_ms() + SETTLE_MS;
    char *text = NULL, state[64];

    while (child_expect(show, CALL_MS, &text, err) == 0) {
        if (!settle || !slurm_field(text, "JobState", state, sizeof(state)) ||
            strcmp(state, "COMPLETING") != 0 || elapsed_ms() > deadline_ms)
            return text;
        free(text);
        text = NULL;
        nanosleep(&nap, NULL);
    }
    return NULL;
}

/* Slurm does not find the tasks of an array that was cancelled as a whole before any of them began
 * (22.05: "Job 6_2 not found"): the array's only record is theirs. NULL: purged, when err says so.
 */
static char *array_text(const char *task, struct oom_error *err)
{
    char array[64];

    snprintf(array, sizeof(array), "%.*s", (int)strcspn(task, "_"), task);
    char *text = job_text(array, false, err);
    const char *feed = text ? strchr(text, '\n') : NULL;
    if (feed && feed[strspn(feed, "\n ")]) {
        free(text);
        text = NULL;
        oom_errorf(err, "Invalid job id: array %s has other tasks only", array);
    }
    return text;
}

int slurm_job_read(struct slurm_job *job, const char *id, bool settle, struct oom_error *err)
{
    char restarts[16] = "0";

    *job = (struct slurm_job){.text = job_text(id, settle, err)};
    if (!job->text && strchr(id, '_') && strstr(err->text, " not found"))
        job->text = array_text(id, err);
    if (!job->text) {
        /* Purged, or a controller that does not answer: only the former is an end. */
        job->unknown = strstr(err->text, "Invalid job id") != NULL;
        return job->unknown ? 0 : -1;
    }
    slurm_field(job->text, "JobState", job->state, sizeof(job->state));
    slurm_field(job->text, "Restarts", restarts, sizeof(restarts));
    job->restarts = atoi(restarts);
    job->over = slurm_state_is_over(job->state);
    return 0;
}

void slurm_job_free(struct slurm_job *job)
{
    free(job->text);
    job->text = NULL;
}

bool slurm_job_is_held_again(const struct slurm_job *job)
{
    char reason[64];

    return strcmp(job->state, "PENDING") == 0 &&
           slurm_field(job->text, "Reason", reason, sizeof(reason)) &&
           strcmp(reason, "job_requeued_in_held_state") == 0;
}

bool slurm_job_is_cancelled(const struct slurm_job *job)
{
    static const char *const wished[] = {"CANCELLED", "REVOKED", NULL};

    return is_one_of(job->state, wished);
}

bool slurm_job_ended_by_others(const struct slurm_job *job)
{
    static const char *const not_ours[] = {"CANCELLED", "TIMEOUT",   "PREEMPTED", "DEADLINE",
                                           "NODE_FAIL", "BOOT_FAIL", "REVOKED",   NULL};

    return is_one_of(job->state, not_ours);
}

static int64_t time_ms(const struct slurm_job *job, const char *key)
{
    struct tm when = {.tm_isdst = -1};
    char word[64];

    return slurm_field(job->text, key, word, sizeof(word)) &&
                   strptime(word, "%Y-%m-%dT%H:%M:%S", &when)
               ? (int64_t)mktime(&when) * 1000
               : -1;
}

int64_t slurm_job_ended_s_ago(const struct slurm_job *job)
{
    int64_t ended_ms = job->over ? time_ms(job, "EndTime") : -1;

    return ended_ms > 0 ? (db_now_ms() - ended_ms) / 1000 : 0;
}

/* The lineage has its name as oomrun has told it (agent/run/body.c): as far as JSON takes it. */
static bool is_renamed(const struct slurm_job *job, const json_t *lineage)
{
    const json_t *known = json_object_get(lineage, "name");
    char name[1000];

    if (!known || !slurm_field(job->text, "JobName", name, sizeof(name)))
        return false;
    json_t *now = oom_json_text(name);
    bool renamed = now && !json_equal(now, known);
    json_decref(now);
    return renamed;
}

bool slurm_job_is_another(const struct slurm_job *job, const json_t *lineage, int64_t started_ms,
                          int restart)
{
    char owner[128];
    const char *open;
    int64_t submitted_ms = time_ms(job, "SubmitTime");
    bool renamed = is_renamed(job, lineage);

    if (slurm_field(job->text, "UserId", owner, sizeof(owner)) && (open = strrchr(owner, '(')) &&
        atoll(open + 1) != json_get_int(lineage, "uid", -1))
        return true;
    if (started_ms <= 0)
        return renamed;
    if (renamed)
        return submitted_ms > started_ms;
    /* A job that was queued again has a new time of submission, and a higher restart count. */
    return job->restarts <= restart && submitted_ms > started_ms + CLOCKS_DIFFER_MS;
}

bool slurm_job_never_launched(const struct slurm_job *job, bool unbegun)
{
    char took[32];

    /* Slurm's reason JobLaunchFailure says nothing: a batch script that was killed has it, too.
     * A script that could not be restored in place runs as a copy, and the launcher's line stays;
     * such a run that ends within its first minute would be taken for none. */
    if (unbegun)
        return slurm_field(job->text, "RunTime", took, sizeof(took)) &&
               strncmp(took, "00:00:", 6) == 0;
    return strncmp(job->state, "BOOT_FAIL", 9) == 0;
}
