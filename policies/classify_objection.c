/* SPDX-License-Identifier: Apache-2.0
 *
 * How the attempt ended, and why an event that was noted does not make it a failure of memory. */
#include <stdio.h>
#include <string.h>

#include "policies/classify_private.h"

#define SLURM_SIG_OOM_EXIT 253 /* 0:125 as DerivedExitCode, 253 as SLURM_JOB_DERIVED_EC */

static bool is_end_by_scheduler(const char *state)
{
    static const char *const states[] = {"TIMEOUT", "PREEMPTED", "NODE_FAIL", "CANCELLED",
                                         "DEADLINE"};

    for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
        if (strcmp(state, states[i]) == 0)
            return true;
    return false;
}

struct ending oom_ending_read(const struct oom_exit *x)
{
    struct ending e = {.running = !x};

    if (!x)
        return e;
    bool oom_state = strcmp(x->state, "OUT_OF_MEMORY") == 0;
    e.finished = x->finished;
    e.known = x->exit_code >= 0 || x->signal > 0 || x->state[0];
    e.well = x->finished || (x->exit_code == 0 && x->signal <= 0) ||
             (x->exit_code < 0 && x->signal <= 0 && strcmp(x->state, "COMPLETED") == 0);
    e.by_scheduler = is_end_by_scheduler(x->state);
    e.by_kill = x->exit_code == 137 || x->signal == 9;
    if (x->cgroup_oom_kills > 0)
        e.kill_source = "cgroup";
    else if (x->kernel_oom_kills > 0)
        e.kill_source = "kernel";
    else if (oom_state || x->derived_exit_code == SLURM_SIG_OOM_EXIT || x->derived_exit_code == 125)
        e.kill_source = "scheduler";
    e.killed = e.kill_source != NULL;
    return e;
}

static bool kill_in_log(const struct oom_classifier *c)
{
    for (size_t i = 0; i < c->pending_count; i++)
        if (c->pending[i]->sig->kill)
            return true;
    return false;
}

/* A process of this job's was killed, or has died as Ray says. */
static bool has_died(const struct oom_classifier *c, const struct ending *end)
{
    for (size_t i = 0; i < c->pending_count; i++)
        if (c->pending[i]->sig->kind == SIG_SUSPECT)
            return true;
    for (size_t i = 0; i < c->set->count; i++)
        if (c->set->items[i].died && c->tallies[i].count > 0)
            return true;
    return end->killed || end->by_kill;
}

/* --- other failures that came first ----------------------------------------------------------- */

static bool is_same_log(const struct oom_classifier *c, const struct event *a,
                        const struct event *b)
{
    return oom_stream_now(c, a->stream) == oom_stream_now(c, b->stream);
}

/* Does an event come before another one, of the same log or by the clock? */
static bool came_before(const struct oom_classifier *c, const struct event *a,
                        const struct event *b)
{
    if (is_same_log(c, a, b))
        return a->stream < b->stream || (a->stream == b->stream && a->line < b->line);
    return a->time && b->time && a->time < b->time;
}

/* torch puts "[rank3]: " before what nobody caught. */
static bool is_uncaught(const struct event *f)
{
    char mark[32];

    snprintf(mark, sizeof(mark), "[rank%d]: ", f->rank);
    return strstr(f->text, mark) != NULL;
}

/* A failure that no other process's end can lead to, and that was not survived: in another rank,
 * or the end that the scheduler had decided. */
static bool has_failed_before(const struct oom_classifier *c, const struct event *e,
                              const struct ending *end)
{
    for (size_t i = 0; i < c->failure_count; i++) {
        const struct event *f = c->failures[i];
        if (!f->sig->root || f->progress >= PROGRESS_PROVES || !came_before(c, f, e))
            continue;
        if (f->sig->traceback ? e->rank >= 0 && f->rank != e->rank && is_uncaught(f)
                              : end->by_scheduler)
            return true;
    }
    return false;
}

/* --- reports of a whole node ------------------------------------------------------------------ */

/* The report of a node is about any job there. What this job says of itself goes before it. */
static bool is_of_another_job(const struct oom_classifier *c, const struct event *e,
                              const struct ending *end)
{
    for (size_t i = 0; i < c->pending_count; i++) {
        const struct event *own = c->pending[i];
        if (own->sig->kind == SIG_OOM && !own->sig->shared && own->domain != e->domain &&
            !oom_objection(c, own, end))
            return true;
    }
    return c->failure_count > 0 && !has_died(c, end);
}

/* The kernel's log is a file of its own, and the job's tells of a failure that no kill leads to. */
static bool is_kill_of_another_job(const struct oom_classifier *c, const struct event *e,
                                   const struct ending *end)
{
    if (!e->sig->kernel || has_died(c, end))
        return false;
    for (size_t i = 0; i < c->failure_count; i++) {
        const struct event *f = c->failures[i];
        if (f->sig->root && f->sig->traceback && f->progress < PROGRESS_PROVES &&
            !is_same_log(c, f, e))
            return true;
    }
    return false;
}

/* --- objections ------------------------------------------------------------------------------- */

/* Of the same directory, that is. */
static bool is_later_attempt(const struct stream *a, const struct stream *than)
{
    return a->attempt > than->attempt && a->attempt_place == than->attempt_place &&
           memcmp(a->file, than->file, a->attempt_place) == 0;
}

/* A file of a later attempt shows that there was one. */
bool oom_event_is_of_earlier(const struct oom_classifier *c, const struct event *e)
{
    const struct stream *own = &c->streams[e->stream];

    for (int i = 0; i < c->stream_count && own->attempt >= 0; i++)
        if (c->streams[i].lived && is_later_attempt(&c->streams[i], own))
            return true;
    return false;
}

/* Ranks write files of their own, and another one says that the work is done. */
static bool have_peers_finished(const struct oom_classifier *c, const struct event *e)
{
    if (c->streams[e->stream].file_rank < 0)
        return false;
    for (int i = 0; i < c->stream_count; i++)
        if (c->streams[i].file_rank >= 0 && c->streams[i].finished_line > 0)
            return true;
    return false;
}

const char *oom_objection(const struct oom_classifier *c, const struct event *e,
                          const struct ending *end)
{
    if (e->sig->kind == SIG_SUSPECT && !(end->killed && !end->well) && !kill_in_log(c))
        return "no sign of memory beside it: a kill has many senders";
    if (e->sig->kind == SIG_SUSPECT && e->sig->priority == 0 && kill_in_log(c))
        return "the kill itself is recorded elsewhere";
    if (end->finished)
        return "the work is known to have finished";
    if (oom_event_is_of_earlier(c, e))
        return OOM_OF_EARLIER;
    if (e->sig->kill && end->well)
        return "the work ended well: something beside it was killed";
    if (e->sig->kill && e->after_finish && (!end->known || end->well))
        return "the work had finished: something beside it was killed";
    if (end->well && (e->hinted || e->progress > 0 || have_peers_finished(c, e)))
        return "caught: the work ended well";
    if (e->sig->shared && is_of_another_job(c, e, end))
        return "told to every job on the node: this one failed otherwise";
    if (is_kill_of_another_job(c, e, end))
        return "of the whole node: nothing of this job was killed, and it failed otherwise";
    if (has_failed_before(c, e, end))
        return "the attempt had failed before it, and otherwise";
    return NULL;
}
