/* SPDX-License-Identifier: Apache-2.0
 *
 * What people read in the job's own output. Few lines, to standard error, each begins with
 * "oomrun:". */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/humanize.h"
#include "agent/run/run.h"

void say(const char *fmt, ...)
{
    char line[2048];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    /* One write: lines of several ranks do not mix. Control characters come from logs. */
    char out[2200] = "oomrun: ";
    size_t used = strlen(out);
    for (const char *p = line; *p && used < sizeof(out) - 2; p++)
        out[used++] = (unsigned char)*p < ' ' && *p != '\t' ? ' ' : *p;
    out[used++] = '\n';
    if (write(2, out, used) < 0)
        return;
}

void say_incident(const struct attempt *attempt, const struct oom_incident *incident)
{
    char took[32], tried[32], left[32], total[32], shortage[32];
    const struct oom_numbers *n = &incident->numbers;

    humanize_duration(attempt->ended_ms - attempt->started_ms, took, sizeof(took));
    /* The numbers have a line of their own. */
    const char *numbers = n->tried_bytes >= 0 && n->free_bytes >= 0
                              ? strstr(incident->summary, ": tried to allocate")
                              : NULL;
    if (!incident->oom) {
        say("attempt %lld ended after %s: the program does not take its change",
            (long long)attempt->number, took);
        say("  %s", incident->cause.text);
        return;
    }
    int length = numbers ? (int)(numbers - incident->summary) : (int)strlen(incident->summary);
    say("attempt %lld ended after %s: %.*s", (long long)attempt->number, took, length,
        incident->summary);
    if (n->tried_bytes >= 0 && n->free_bytes >= 0) {
        humanize_bytes(n->tried_bytes, tried, sizeof(tried));
        humanize_bytes(n->free_bytes, left, sizeof(left));
        humanize_bytes(oom_numbers_short_bytes(n), shortage, sizeof(shortage));
        if (n->total_bytes >= 0) {
            humanize_bytes(n->total_bytes, total, sizeof(total));
            say("  tried to allocate %s with %s free of %s: %s short", tried, left, total,
                shortage);
        } else {
            say("  tried to allocate %s with %s free: %s short", tried, left, shortage);
        }
    }
    if (attempt->own_restarts > 0 && !attempt->ended_early) {
        humanize_duration(attempt->ended_ms - attempt->own_since_ms, took, sizeof(took));
        say("  the framework began again by itself %d time%s with the same settings, which took %s",
            attempt->own_restarts, attempt->own_restarts == 1 ? "" : "s", took);
    }
}

static const char *shown(const char *value)
{
    return value ? value : "(not set)";
}

/* oomctl has to be told of a database that is not the default one. */
static const char *db_name(const struct run *run)
{
    return run->options.db_path ? run->options.db_path : "";
}

static const char *db_option(const struct run *run)
{
    return run->options.db_path ? " --db " : "";
}

void say_decision(const struct run *run, const struct oom_incident *incident,
                  const struct oom_decision *decision, const struct oom_edits *written,
                  int64_t next_number, int max_attempts)
{
    char cost[64] = "";

    if (decision->cost > 0)
        snprintf(cost, sizeof(cost), "; about %.0f %% slower", decision->cost * 100);
    if (decision->taken_back[0])
        say("  rung %s %s and is taken back", decision->taken_back,
            incident->oom ? "made it worse" : "was refused by the program");
    for (size_t i = 0; i < decision->edits.count; i++) {
        const struct oom_edit *edit = &decision->edits.items[i];
        const char *where = edit->where;
        for (size_t k = 0; !where && written && k < written->count; k++)
            if (strcmp(written->items[k].knob, edit->knob) == 0)
                where = written->items[k].where;
        char line[600] = "";
        if (where && strncmp(where, "script:", 7) == 0)
            snprintf(line, sizeof(line), "script line %s: ", where + 7);
        else if (where && *where)
            snprintf(line, sizeof(line), "%s: ", where);
        if (edit->new_value && !edit->old_value)
            say("  %sadd %s %s   (%s, rung %s%s)", line, edit->knob, edit->new_value,
                decision->policy, decision->rung, cost);
        else if (!edit->new_value)
            say("  %sremove %s   (%s, rung %s%s)", line, edit->knob, decision->policy,
                decision->rung, cost);
        else
            say("  %s%s %s -> %s   (%s, rung %s%s)", line, edit->knob, shown(edit->old_value),
                edit->new_value, decision->policy, decision->rung, cost);
    }
    const char *how = decision->mode == OOM_MODE_REQUEUE    ? "is queued under the same job id"
                      : decision->mode == OOM_MODE_RESUBMIT ? "is submitted as a new job"
                      : run->in_job_allocation              ? "starts now in this allocation"
                                                            : "starts now";
    if (decision->edits.count == 0)
        say("  nothing is changed: %s", decision->reason);
    say("attempt %lld of at most %d %s. oomctl explain %s%s%s", (long long)next_number,
        max_attempts, how, run->handle, db_option(run), db_name(run));
}

void say_stop(const struct run *run, const struct attempt *attempt,
              const struct oom_incident *incident, const char *reason, const char *advice)
{
    if (incident->oom)
        say_incident(attempt, incident);
    say("not retried: %s", reason);
    if (advice && *advice)
        say("  what could be done: %s", advice);
    if (incident->oom)
        say("  oomctl explain %s%s%s tells the whole story", run->handle, db_option(run),
            db_name(run));
}
