/* SPDX-License-Identifier: Apache-2.0
 *
 * The same job once more, with what was changed. */
#include "agent/sched/slurm_requeue.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/lib/child.h"
#include "agent/lib/elapsed.h"
#include "agent/sched/slurm_components.h"
#include "agent/sched/slurm_dependents.h"
#include "agent/sched/slurm_fields.h"
#include "agent/sched/slurm_memory.h"

enum { CALL_MS = 10000, UPDATE_FOR_MS = 4000 };

/* Not "now": while a job is COMPLETING that would be replaced by the default delay (cred_expire,
 * 120 s), and a node refuses a credential of the second in which it has revoked the job's last one
 * ("Job credential revoked": the job fails without having started). Seen on 22.05. */
static const char SOON[] = "now+2";

static int change(const char *job, const char *what, struct oom_error *err)
{
    char id[80];
    const char *argv[] = {"scontrol", "update", id, what, NULL};

    snprintf(id, sizeof(id), "JobId=%s", job);
    return child_expect(argv, CALL_MS, NULL, err);
}

/* Of a heterogeneous job, each component by itself: what is said of the first one holds for all. */
static int change_memory(const char *job, const struct oom_edit *edit,
                         const struct slurm_memory *memory, struct oom_error *err)
{
    const char *show[] = {"scontrol", "-o", "show", "job", job, NULL};
    char *text = NULL, mem[64];
    int rc = 0;

    snprintf(mem, sizeof(mem), "%s=%s", memory->field, edit->new_value);
    if (child_expect(show, CALL_MS, &text, err) < 0)
        return -1;
    if (!slurm_is_heterogeneous(text) && slurm_memory_suffices(text, memory, edit)) {
        rc = 0;
    } else if (!memory->by_update) {
        rc = oom_errorf(err, "Slurm cannot change --%s of a job that it has", memory->option);
    } else if (!slurm_is_heterogeneous(text)) {
        rc = change(job, mem, err);
    } else {
        for (char *save = NULL, *line = strtok_r(text, "\n", &save); line && rc == 0;
             line = strtok_r(NULL, "\n", &save)) {
            char id[32], component[64], offset[16];
            if (!slurm_component_is_meant(line, edit) ||
                !slurm_field(line, "HetJobId", id, sizeof(id)) ||
                !slurm_field(line, "HetJobOffset", offset, sizeof(offset)))
                continue;
            snprintf(component, sizeof(component), "%s+%s", id, offset);
            rc = change(component, mem, err);
        }
    }
    free(text);
    return rc;
}

static int update(const char *job, const struct oom_edits *resources, const char *start,
                  struct oom_error *err)
{
    const struct slurm_memory *kind = NULL;
    const struct oom_edit *memory = slurm_memory_edit(resources, &kind);
    const struct oom_edit *nodes = slurm_edit_of(resources, "slurm:exclude");
    char id[80], when[64], excluded[4200];
    const char *argv[8] = {"scontrol", "update", id};
    int n = 3;

    snprintf(id, sizeof(id), "JobId=%s", job);
    if (memory && change_memory(job, memory, kind, err) < 0)
        return -1;
    if (nodes) {
        snprintf(excluded, sizeof(excluded), "ExcNodeList=%s", nodes->new_value);
        argv[n++] = excluded;
    }
    snprintf(when, sizeof(when), "StartTime=%s", start);
    argv[n++] = when;
    argv[n] = NULL;
    return child_expect(argv, CALL_MS, NULL, err);
}

static int update_until(const char *job, const struct oom_edits *resources, const char *start,
                        struct oom_error *err)
{
    struct timespec nap = {0, 50 * 1000 * 1000};
    int64_t deadline_ms = elapsed_ms() + UPDATE_FOR_MS;

    while (update(job, resources, start, err) < 0) {
        if (elapsed_ms() > deadline_ms)
            return -1;
        nanosleep(&nap, NULL);
    }
    return 0;
}

int slurm_release(const char *job, struct oom_error *err)
{
    const char *argv[] = {"scontrol", "release", job, NULL};

    return child_expect(argv, CALL_MS, NULL, err);
}

/* Of a job that has ended: held, changed, released. Dependents that have seen it fail wait for
 * good ("DependencyNeverSatisfied") until they are pointed to it anew. */
static int requeue_ended(const char *job, const struct oom_edits *resources, struct oom_error *err)
{
    const char *again[] = {"scontrol", "requeuehold", job, NULL};

    if (child_expect(again, CALL_MS, NULL, err) < 0 ||
        update_until(job, resources, SOON, err) < 0 || slurm_dependents_repoint(job, job, err) < 0)
        return -1;
    return slurm_release(job, err);
}

/* While the job is RUNNING, requeue makes it COMPLETING, and sends CONT and TERM to all its
 * processes, also to the scontrol that asks for it: they are ignored here, which exec keeps.
 * While it is COMPLETING the owner may already change it. Seen on 22.05. */
int slurm_requeue(const char *job, int restart, const struct oom_edits *resources,
                  struct oom_error *err)
{
    const char *again[] = {"scontrol", "requeue", job, NULL};
    const char *show[] = {"scontrol", "-o", "show", "job", job, NULL};
    char *text = NULL, state[64] = "", restarts[32] = "0", reason[64] = "";
    int rc = 0;

    if (child_expect(show, CALL_MS, &text, err) < 0)
        return -1;
    slurm_field(text, "JobState", state, sizeof(state));
    slurm_field(text, "Restarts", restarts, sizeof(restarts));
    slurm_field(text, "Reason", reason, sizeof(reason));
    free(text);
    bool pending = strcmp(state, "PENDING") == 0;
    bool asked = atoi(restarts) > restart;
    if (slurm_state_is_over(state) && !asked)
        return requeue_ended(job, resources, err);
    void (*old_term)(int) = signal(SIGTERM, SIG_IGN);
    void (*old_cont)(int) = signal(SIGCONT, SIG_IGN);
    if (!pending && !asked)
        rc = child_expect(again, CALL_MS, NULL, err);
    if (rc == 0)
        rc = update_until(job, resources, SOON, err);
    /* By requeue_ended, which did not come to its end. */
    if (rc == 0 && pending && strcmp(reason, "job_requeued_in_held_state") == 0)
        rc = slurm_release(job, err);
    /* Who waits for a whole array is judged when a task has failed, be it COMPLETING: seen
     * on 22.05. */
    if (rc == 0 && strcmp(state, "COMPLETING") == 0 && strchr(job, '_'))
        rc = slurm_dependents_repoint(job, job, err) < 0 ? -1 : 0;
    if (rc < 0) {
        signal(SIGTERM, old_term);
        signal(SIGCONT, old_cont);
    }
    return rc;
}
