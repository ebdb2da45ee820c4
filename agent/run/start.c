/* SPDX-License-Identifier: Apache-2.0
 *
 * Doing what was decided: in this allocation, through the scheduler under the same job id, or as a
 * new job. Each deed is noted at the head before and after, and can be repeated. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/acted.h"
#include "agent/lib/files.h"
#include "agent/run/clear.h"
#include "agent/run/run.h"
#include "agent/sched/slurm_marked.h"
#include "oomretry/redact.h"
#include "policies/jsontext.h"

enum { MAX_KEPT_LOG_BYTES = 256 * 1024 * 1024 };

static bool is_resource(const char *knob)
{
    return strncmp(knob, "slurm:", 6) == 0 || strncmp(knob, "ray:", 4) == 0;
}

int next_edits(const struct oom_edits *all, bool resources, struct oom_edits *out)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct oom_edit *edit = &all->items[i];
        if (is_resource(edit->knob) == resources &&
            oom_edits_add(out, edit->knob, edit->old_value, edit->new_value, edit->where) < 0)
            return -1;
    }
    return 0;
}

int next_resources(const struct run *run, const struct oom_decision *decision,
                   const struct oom_edits *total, struct oom_error *err)
{
    struct oom_edits changed = {NULL, 0}, wanted = {NULL, 0};
    int rc = 0;

    if (!run->sched || !run->sched->accepts)
        return 0;
    if (next_edits(&decision->edits, true, &changed) == 0 && changed.count > 0 &&
        next_edits(total, true, &wanted) == 0)
        rc = run->sched->accepts(run->job, &wanted, err);
    oom_edits_free(&changed);
    oom_edits_free(&wanted);
    return rc;
}

int next_note(struct run *run, int64_t lineage, int64_t number, const char *key, const char *text)
{
    json_t *body = json_pack("{s:I, s:I, s:o}", "lineage", (json_int_t)lineage, "attempt",
                             (json_int_t)number, key, oom_json_text(text));
    json_t *reply = NULL;
    int status = body ? api_call(run->api, "POST", "/v1/attempts/note", body, &reply, NULL) : -1;

    json_decref(body);
    json_decref(reply);
    return status == 200 ? 0 : -1;
}

/* A requeue truncates the job's output unless --open-mode=append was asked for, which neither the
 * job's record nor the descriptor tells (Slurm 22.05 opens it with O_APPEND in both modes): what
 * this attempt wrote stays beside it as <output>.attempt-N. `again`: unless somebody else, who was
 * lost since, has kept it. */
static void keep_log(const char *path, int64_t number, bool again)
{
    char kept[4200];

    if (path[0] != '/')
        return;
    snprintf(kept, sizeof(kept), "%s.attempt-%lld", path, (long long)number);
    if (again && access(kept, F_OK) == 0)
        return;
    if (file_copy_tail(path, kept, MAX_KEPT_LOG_BYTES) == 0)
        say("what attempt %lld wrote is kept in %s", (long long)number, kept);
}

static void keep_logs(const struct run *run, const struct attempt *attempt, int64_t next_number)
{
    bool again = run->after && attempt->number == next_number;
    int64_t number = again ? next_number - 1 : attempt->number;

    keep_log(run->output ? output_name_of(run->output, 0) : run->log_path, number, again);
    keep_log(run->output ? output_name_of(run->output, 1) : run->error_path, number, again);
}

static enum next stopped(struct run *run, const struct attempt *attempt, int64_t number,
                         const char *why)
{
    next_note(run, attempt->lineage, number, "acted", why);
    next_note(run, attempt->lineage, number, "stopped", why);
    say("not retried: %s", why);
    return NEXT_STOP;
}

/* In the job's own place there is nothing to be started for somebody who wants it to end. */
static bool is_cancelled(struct run *run, const struct attempt *attempt, int64_t number)
{
    int signo = run->after ? 0 : cancel_pending();
    char why[160];

    if (!signo)
        return false;
    snprintf(why, sizeof(why), "it was told to end by signal %d (%s) before the next attempt began",
             signo, strsignal(signo));
    stopped(run, attempt, number, why);
    return true;
}

static bool is_set_false(const struct run *run, const char *fact)
{
    struct oom_values facts = {NULL, 0};
    bool no = false;

    if (run->sched->describe(run->job, &facts, NULL) == 0) {
        const char *text = oom_values_get(&facts, fact);
        no = text && strcmp(text, "false") == 0;
    }
    oom_values_free(&facts);
    return no;
}

/* Decided and not done, as the scheduler does not answer: the intention stays open, and the node's
 * agent carries it out when it does. */
static enum next postponed(struct run *run, const struct attempt *attempt, int64_t number,
                           const char *why)
{
    run->untold = true;
    next_note(run, attempt->lineage, number, "acted", "waiting for the scheduler");
    say("the scheduler cannot do it at present (%s): the next attempt is started when it can", why);
    return NEXT_STOP;
}

static enum next failed(struct run *run, const struct attempt *attempt, int64_t number,
                        const char *what, const struct oom_error *err)
{
    char why[1200];

    if (run->sched && run->sched->is_away && run->sched->is_away(err))
        return postponed(run, attempt, number, err->text);
    snprintf(why, sizeof(why), "%s: %s", what, err->text);
    return stopped(run, attempt, number, why);
}

/* Through the scheduler: the same job once more, or where that is not allowed, a new one. */
static enum next next_leave(struct run *run, struct attempt *attempt,
                            const struct oom_decision *decision, const struct oom_edits *total,
                            int64_t number)
{
    struct oom_edits resources = {NULL, 0};
    struct oom_error err = {""};
    const char *again = run->once_more ? run->once_more : "";
    char new_job[64], text[160];
    enum next next = NEXT_GONE;

    if (next_edits(total, true, &resources) < 0)
        return NEXT_STOP;
    if (decision->mode != OOM_MODE_RESUBMIT && !is_set_false(run, "requeue_allowed")) {
        if (!run->once_more)
            keep_logs(run, attempt, number);
        next_note(run, attempt->lineage, number, "acted", "asking the scheduler to queue it again");
        if (run->sched->requeue(run->job, run->restart, &resources, &err) == 0) {
            snprintf(text, sizeof(text), ACTED_QUEUED "%s", again);
            next_note(run, attempt->lineage, number, "acted", text);
        } else {
            next =
                failed(run, attempt, number, "the scheduler refused to queue the job again", &err);
        }
    } else {
        next_note(run, attempt->lineage, number, "acted", "submitting it as a new job");
        if (resubmit(run, attempt, &resources, number, new_job, sizeof(new_job), &err) == 0) {
            snprintf(text, sizeof(text), ACTED_SUBMITTED "%s%s", new_job, again);
            next_note(run, attempt->lineage, number, "acted", text);
            slurm_unmark_held(new_job, NULL);
            say("the next attempt is job %s", new_job);
            /* Nothing of it runs, and it would keep its allocation until Slurm notices that. */
            if (run->orphan)
                run->sched->cancel(run->job, NULL);
        } else {
            next = failed(run, attempt, number, "the job could not be submitted again", &err);
        }
    }
    oom_edits_free(&resources);
    return next;
}

/* Somebody else's process holds memory of a node's cards: the job goes to another node, where there
 * is one that it may use. False: there is none, or no scheduler to ask. */
static bool next_away(struct run *run, struct attempt *attempt, const struct oom_decision *decision,
                      const struct oom_edits *total, int64_t number,
                      const struct holder_place *holder, enum next *next)
{
    struct oom_decision elsewhere = {.mode = OOM_MODE_REQUEUE};
    struct oom_edits with = {NULL, 0};
    struct oom_values facts = {NULL, 0};
    struct oom_error err = {""};
    char excluded[4200];
    bool away = false;

    if (!run->sched || !run->sched->accepts || !*holder->node)
        return false;
    if (decision->mode == OOM_MODE_RESUBMIT)
        elsewhere.mode = OOM_MODE_RESUBMIT;
    run->sched->describe(run->job, &facts, NULL);
    const char *already = oom_values_get(&facts, "slurm.excluded");
    snprintf(excluded, sizeof(excluded), "%s%s%s", already ? already : "", already ? "," : "",
             holder->node);
    if (oom_edits_append(&with, total) == 0 &&
        oom_edits_add(&with, "slurm:exclude", already, excluded, NULL) == 0 &&
        run->sched->accepts(run->job, &with, &err) == 0) {
        say("  %s holds memory of this job's GPUs on %s: the job is queued again without that node",
            holder->who, holder->node);
        next_note(run, attempt->lineage, number, "mode", oom_mode_name(elsewhere.mode));
        *next = next_leave(run, attempt, &elsewhere, &with, number);
        away = true;
    }
    oom_edits_free(&with);
    oom_values_free(&facts);
    return away;
}

enum next next_start(struct run *run, struct attempt *attempt, const struct oom_decision *decision,
                     struct oom_edits *total, int64_t number)
{
    if (run->launch.diff) {
        /* The lines around a change are the user's and may hold anything. */
        char *clean = oom_redact(run->launch.diff, strlen(run->launch.diff));
        if (clean)
            next_note(run, attempt->lineage, number, "diff", clean);
        free(clean);
    }
    /* Without the old supervisor there is no allocation to start in. */
    bool leave = run->sched && (run->after || decision->mode != OOM_MODE_INPLACE);
    if (is_cancelled(run, attempt, number))
        return NEXT_STOP;
    if (leave)
        return next_leave(run, attempt, decision, total, number);
    struct oom_error err = {""};
    if (clear_allocation(run, attempt->started_ms, &err) < 0)
        return failed(run, attempt, number, "the allocation is not free", &err);
    struct holder_place holder = {"", ""};
    enum next next;
    if (!clear_cards(run, attempt->started_ms, &holder)) {
        if (next_away(run, attempt, decision, total, number, &holder, &next))
            return next;
        say("  %s holds memory of this job's GPUs%s%s, and there is no other node to go to",
            holder.who, *holder.node ? " on " : "", holder.node);
    }
    if (is_cancelled(run, attempt, number))
        return NEXT_STOP;
    oom_edits_free(&attempt->edits);
    attempt->edits = *total;
    *total = (struct oom_edits){NULL, 0};
    return NEXT_INPLACE;
}
