/* SPDX-License-Identifier: Apache-2.0
 *
 * The job that was submitted in the place of another one, before its first command: a controller
 * that was killed may have forgotten it, and nobody may have released it. */
#include <string.h>

#include "agent/lib/acted.h"
#include "agent/lib/jsonget.h"
#include "agent/run/after.h"
#include "agent/run/capture.h"
#include "agent/sched/slurm_fields.h"
#include "agent/sched/slurm_marked.h"
#include "db/db.h"

enum { ENDING_MS = 30000 };

/* When the former job, which ended before, is still known, the new one was not purged after its
 * end. The controller may have forgotten that end as well, and start the former one once more,
 * which goes on with the change; or go on calling it running, long after its batch step is gone. */
enum after_lost after_new_job_lost(const json_t *lineage, const json_t *row, const json_t *former,
                                   bool *orphan, struct oom_error *err)
{
    const char *acted = json_get_string(row, "acted", "");
    struct slurm_job before = {0};
    enum after_lost lost = AFTER_LOST_PERHAPS;

    if (!former || !acted_is_submitted(acted) || acted_once_more(acted))
        return AFTER_NOT_LOST;
    if (slurm_job_read(&before, json_get_string(former, "job", ""), false, err) < 0)
        return AFTER_LOST_PERHAPS;
    int restart = (int)json_get_int(former, "restart", 0);
    bool again = before.restarts > restart || strcmp(before.state, "PENDING") == 0;
    if (before.unknown ||
        slurm_job_is_another(&before, lineage, json_get_int(former, "started_ms", 0), restart))
        lost = AFTER_NOT_LOST;
    else if (before.over)
        lost = AFTER_LOST;
    else if (!again && db_now_ms() - json_get_int(former, "ended_ms", 0) > ENDING_MS) {
        lost = AFTER_LOST;
        *orphan = true;
    }
    slurm_job_free(&before);
    return lost;
}

int after_submit_once_more(struct run *run, struct attempt *attempt, const json_t *row,
                           const json_t *former, struct oom_error *err)
{
    const char *job = json_get_string(former, "job", "");

    capture_hand_over(run, job);
    snprintf(run->job, sizeof(run->job), "%s", job);
    run->once_more = ACTED_FORGOTTEN;
    return after_carry_out(run, attempt, row, err);
}

bool after_waits_for_release(const struct slurm_job *job, const struct attempt *attempt)
{
    char comment[4096], reason[64], mark[64];

    slurm_mark(attempt->lineage, attempt->number, mark, sizeof(mark));
    return strcmp(job->state, "PENDING") == 0 &&
           slurm_field(job->text, "Reason", reason, sizeof(reason)) &&
           strcmp(reason, "JobHeldUser") == 0 &&
           slurm_field(job->text, "Comment", comment, sizeof(comment)) &&
           slurm_mark_is_held(comment, mark);
}

int after_let_go(struct run *run, const struct attempt *attempt, const char *former,
                 struct oom_error *err)
{
    char new_job[sizeof(run->job)], acted[96];

    snprintf(new_job, sizeof(new_job), "%s", run->job);
    snprintf(run->job, sizeof(run->job), "%s", former);
    if (resubmit_let_go(run, attempt, attempt->number, new_job, err) < 0)
        return -1;
    snprintf(acted, sizeof(acted), ACTED_SUBMITTED "%s", new_job);
    next_note(run, attempt->lineage, attempt->number, "acted", acted);
    return slurm_unmark_held(new_job, err);
}
