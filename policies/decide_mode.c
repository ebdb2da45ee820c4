/* SPDX-License-Identifier: Apache-2.0
 *
 * How the next attempt is started: in place where nothing speaks against it, for that is cheapest.
 */
#include <stdio.h>
#include <string.h>

#include "oomretry/decide.h"
#include "policies/expr.h"

/* Beside the time that the last attempt needed to fail. */
enum { ROOM_S = 120 };

static const char *fact(const struct oom_start *start, const char *name)
{
    return start->facts ? oom_values_get(start->facts, name) : NULL;
}

static double fact_number(const struct oom_start *start, const char *name, double otherwise)
{
    double number;
    const char *text = fact(start, name);

    return text && oom_expr_read_number(text, &number) ? number : otherwise;
}

static bool changes_resources(const struct oom_edits *edits)
{
    for (size_t i = 0; i < edits->count; i++)
        if (strncmp(edits->items[i].knob, "slurm:", 6) == 0)
            return true;
    return false;
}

/* Slurm changes memory by node and by CPU of a job that it has, and not by GPU. */
static bool needs_new_job(const struct oom_edits *edits)
{
    for (size_t i = 0; i < edits->count; i++)
        if (strcmp(edits->items[i].knob, "slurm:mem-per-gpu") == 0)
            return true;
    return false;
}

static const char *minutes(double seconds, char *text, size_t size)
{
    snprintf(text, size, seconds < 90 ? "%.0f s" : "%.0f min",
             seconds < 90 ? seconds : seconds / 60);
    return text;
}

/* What makes it impossible in this allocation; NULL: nothing. A cgroup OOM kill marks the step for
 * good; without its supervisor a job has no allocation to start in. */
static const char *impossible_here(const struct oom_start *start)
{
    const char *allocation = fact(start, "allocation");

    if (changes_resources(start->edits))
        return "what the scheduler gives to the job changes";
    if (fact_number(start, "attempt.oom_kills", 0) > 0)
        return "the kernel has killed for memory in this job, which marks its step for good";
    if (allocation && strcmp(allocation, "gone") == 0)
        return "its supervisor or its allocation is gone";
    return NULL;
}

/* What makes another allocation better; "" nothing. */
static void better_elsewhere(const struct oom_start *start, char *why, size_t size)
{
    double left = fact_number(start, "slurm.time_left_s", -1);
    double took = fact_number(start, "attempt.seconds", 0);
    char a[24], b[24];

    why[0] = '\0';
    if (start->elsewhere)
        snprintf(why, size, "the cause may be this node"); /* a dirty GPU, say */
    else if (start->domain == OOM_DOMAIN_HOST)
        snprintf(why, size, "host memory ran out");
    else if (left >= 0 && left < took + ROOM_S)
        snprintf(why, size, "%s of wall time are left, and this attempt took %s to fail",
                 minutes(left, a, sizeof(a)), minutes(took, b, sizeof(b)));
}

enum oom_mode oom_decide_mode(const struct oom_start *start, char *why, size_t size)
{
    static const char no_requeue[] = "this job may not be queued again (--no-requeue)";
    const char *scheduler = fact(start, "scheduler"), *requeue = fact(start, "requeue_allowed");
    const char *impossible = impossible_here(start);
    double left = fact_number(start, "slurm.time_left_s", -1);
    enum oom_mode mode = start->wanted;
    char elsewhere[160], time[24];

    snprintf(why, size, "as asked by --oom-mode");
    if (scheduler && strcmp(scheduler, "none") == 0) {
        snprintf(why, size, "there is no scheduler");
        return OOM_MODE_INPLACE;
    }
    if (scheduler && strcmp(scheduler, "ray") == 0) {
        if (mode == OOM_MODE_AUTO)
            snprintf(why, size, "Ray's jobs are submitted again");
        return mode == OOM_MODE_AUTO ? OOM_MODE_RESUBMIT : mode;
    }
    better_elsewhere(start, elsewhere, sizeof(elsewhere));
    if (mode == OOM_MODE_AUTO) {
        mode = *elsewhere && scheduler ? OOM_MODE_REQUEUE : OOM_MODE_INPLACE;
        if (mode == OOM_MODE_REQUEUE)
            snprintf(why, size, "%s", elsewhere);
        else if (left >= 0)
            snprintf(why, size, "only settings change, and %s of wall time are left",
                     minutes(left, time, sizeof(time)));
        else
            snprintf(why, size, "only settings change");
    } else if (!scheduler) {
        return mode;
    }
    if (mode == OOM_MODE_INPLACE && impossible) {
        mode = OOM_MODE_REQUEUE;
        snprintf(why, size, "%s", impossible);
    }
    if (mode == OOM_MODE_REQUEUE && needs_new_job(start->edits)) {
        mode = OOM_MODE_RESUBMIT;
        snprintf(why, size, "memory by GPU cannot be changed of a job that Slurm has");
    }
    if (mode == OOM_MODE_REQUEUE && requeue && strcmp(requeue, "false") == 0) {
        mode = OOM_MODE_RESUBMIT;
        snprintf(why, size, "%s", no_requeue);
    }
    return mode;
}
