/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ctl/story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ctl/lineage_text.h"
#include "agent/lib/humanize.h"
#include "agent/lib/jsonget.h"

/* A run of an hour has seen its longest batches. */
#define LONG_RUN_MS INT64_C(3600000)

static void print_indented(const char *text, const char *indent)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        printf("%s%.*s\n", indent, (int)n, text);
        text += n + (text[n] == '\n');
    }
}

static void tell_grace(const json_t *attempt)
{
    const json_t *end = json_object_get(json_object_get(attempt, "evidence"), "exit");
    int64_t saved = json_get_int(end, "saved_gpu_s", 0);

    if (saved <= 0)
        return;
    printf("  its log was silent after that, so oomrun ended what waited; up to the "
           "time limit that saved %.1f GPU-hours\n",
           (double)saved / 3600.0);
}

static void tell_incident(const json_t *attempt)
{
    const json_t *incident = json_object_get(attempt, "incident");
    const json_t *cause = json_object_get(incident, "cause");
    const json_t *numbers = json_object_get(incident, "numbers");
    const char *text = json_get_string(cause, "text", NULL);
    int64_t tried = json_get_int(numbers, "tried", -1), left = json_get_int(numbers, "free", -1);
    int64_t total = json_get_int(numbers, "total", -1);
    const char *summary = json_get_string(incident, "summary", "");
    const char *program = json_get_string(incident, "program", "");
    char a[32], b[32], c[32];

    if (!json_is_object(incident))
        return;
    /* The numbers have a line of their own. */
    const char *end = tried >= 0 && left >= 0 ? strstr(summary, ": tried to allocate") : NULL;
    const char *how = json_get_string(incident, "evidence", "");
    printf("  %.*s%s%s\n", (int)(end ? (size_t)(end - summary) : strlen(summary)), summary,
           *how ? "; known from " : "", how);
    if (*program)
        printf("  it was %s, which is not the training\n", program);
    if (tried >= 0 && left >= 0) {
        humanize_bytes(tried, a, sizeof(a));
        humanize_bytes(left, b, sizeof(b));
        humanize_bytes(tried > left ? tried - left : 0, c, sizeof(c));
        printf("  it tried to allocate %s with %s free: %s short", a, b, c);
        if (total >= 0) {
            humanize_bytes(total, a, sizeof(a));
            printf(" (of %s)", a);
        }
        putchar('\n');
    }
    if (text)
        printf("  %s:%lld\n    | %s\n", json_get_string(cause, "file", "log"),
               (long long)json_get_int(cause, "line", 0), text);
}

/* What the framework's own restarts cost. */
static void tell_own_restarts(const json_t *attempt)
{
    const json_t *how = json_object_get(json_object_get(attempt, "evidence"), "exit");
    int64_t restarts = json_get_int(how, "own_restarts", 0);
    char took[32];

    if (restarts <= 0)
        return;
    humanize_duration(json_get_int(how, "own_restarts_ms", 0), took, sizeof(took));
    if (json_get_bool(how, "ended_early", false))
        printf("  the framework began again by itself with the same settings (restart %lld), so "
               "the attempt was ended\n",
               (long long)restarts);
    else
        printf("  the framework began again by itself %lld time%s with the same settings, which "
               "took %s\n",
               (long long)restarts, restarts == 1 ? "" : "s", took);
}

static void tell_skipped(const json_t *skipped)
{
    json_t *item;
    size_t i;

    json_array_foreach(skipped, i, item)
        printf("    skipped %s: %s\n", json_get_string(item, "rung", ""),
               json_get_string(item, "why", ""));
}

/* It was decided, and then given up. */
static bool never_began(const json_t *attempt)
{
    return strcmp(json_get_string(attempt, "outcome", ""), "lost") == 0 &&
           json_get_int(attempt, "started_ms", -1) < 0;
}

static void tell_decision(const json_t *attempt)
{
    const json_t *decision = json_object_get(attempt, "decision");
    double cost = json_number_value(json_object_get(decision, "cost"));
    const char *applied = json_get_string(attempt, "applied", "unknown");
    char policy[400];
    json_t *edit;
    size_t i;

    if (!json_is_object(decision))
        return;
    printf("  because: %s\n", json_get_string(decision, "reason", ""));
    lineage_policy(decision, policy, sizeof(policy));
    /* The node's GPUs may have been taken by somebody else after the decision. */
    const char *mode = json_get_string(attempt, "mode", "");
    const char *why = strcmp(mode, json_get_string(decision, "mode", "")) == 0
                          ? json_get_string(decision, "mode_why", "")
                          : "";
    printf("  rung %s of %s (%s), %s %s%s%s\n", json_get_string(decision, "rung", ""), policy,
           json_get_string(decision, "kind", ""),
           never_began(attempt) ? "to be started" : "started", mode, *why ? ": " : "", why);
    if (cost > 0)
        printf("  cost: about %.0f %% of the throughput\n", cost * 100);
    json_array_foreach(json_object_get(attempt, "edits"), i, edit)
    {
        const char *where = json_get_string(edit, "where", NULL);
        printf("    %s: %s -> %s%s%s\n", json_get_string(edit, "knob", ""),
               json_get_string(edit, "old", "(not set)"), json_get_string(edit, "new", "(removed)"),
               where ? "   at " : "", where ? where : "");
    }
    tell_skipped(json_object_get(decision, "skipped"));
    if (strcmp(applied, "unknown") != 0)
        printf("  the change %s: %s\n", strcmp(applied, "yes") == 0 ? "arrived" : "DID NOT ARRIVE",
               json_get_string(attempt, "proof", ""));
}

/* The diff of the newest attempt is against what the user submitted: the patch to keep. */
static const char *last_diff(const json_t *attempts)
{
    const char *diff = NULL;
    json_t *attempt;
    size_t i;

    json_array_foreach(attempts, i, attempt)
    {
        const char *text = json_get_string(attempt, "diff", NULL);
        if (text && *text)
            diff = text;
    }
    return diff;
}

/* Without the last step it ran out, so that one is needed; the one before it did not help by
 * itself, and may do nothing beside the last. */
void story_advise_back(const json_t *reply)
{
    const json_t *attempts = json_object_get(reply, "attempts");
    size_t count = json_array_size(attempts);
    const json_t *last = json_array_get(attempts, count - 1);
    const json_t *before = count < 3 ? NULL : json_array_get(attempts, count - 2);
    const json_t *decision = json_object_get(before, "decision");
    const char *rung = json_get_string(decision, "rung", "");
    const char *state = json_get_string(json_object_get(reply, "lineage"), "state", "");
    int64_t ran = json_get_int(last, "ended_ms", 0) - json_get_int(last, "started_ms", 0);
    char changed[400], took[32];

    if (strcmp(state, "completed") != 0 || ran < LONG_RUN_MS || !*rung ||
        !json_is_object(json_object_get(last, "decision")) ||
        strcmp(json_get_string(json_object_get(last, "decision"), "taken_back", ""), rung) == 0)
        return;
    lineage_changed(json_object_get(before, "edits"), changed, sizeof(changed));
    humanize_duration(ran, took, sizeof(took));
    printf("It ran for %s like this. The step before the last (rung %s: %s) was not enough by "
           "itself and may be more than it needs now: to get its cost back, try without it "
           "(OOMRETRY_STEP_BACK=1 in the environment of the next submission).\n",
           took, rung, changed);
}

static void tell_end(const json_t *lineage, const json_t *attempts)
{
    const char *state = json_get_string(lineage, "state", "");
    const char *reason = json_get_string(lineage, "reason", "");
    const char *advice = json_get_string(lineage, "advice", "");
    const char *diff = last_diff(attempts);
    const json_t *last = json_array_get(attempts, json_array_size(attempts) - 1);

    printf("\nThe job is %s%s%s\n", state, *reason ? ": " : ".", reason);
    tell_skipped(json_object_get(json_object_get(last, "evidence"), "skipped"));
    if (*advice)
        printf("What could be done: %s\n", advice);
    if (diff && strcmp(state, "completed") == 0)
        printf("\nThis patch makes the working settings permanent:\n");
    else if (diff)
        printf("\nThe last attempt %s:\n", never_began(last) ? "would have run with" : "ran with");
    if (diff)
        print_indented(diff, "  ");
}

void story_explain(const json_t *reply, const char *what)
{
    const json_t *lineage = json_object_get(reply, "lineage");
    const json_t *attempts = json_object_get(reply, "attempts");
    json_t *attempt;
    size_t i;
    char job[64], when[64], took[32];

    (void)what;
    lineage_job(lineage, job, sizeof(job));
    printf("%s  %s of %s%s%s\n", job, json_get_string(lineage, "name", ""),
           json_get_string(lineage, "user", ""),
           *json_get_string(lineage, "framework", "") ? ", framework " : "",
           json_get_string(lineage, "framework", ""));
    json_array_foreach(attempts, i, attempt)
    {
        int64_t started = json_get_int(attempt, "started_ms", -1);
        int64_t ended = json_get_int(attempt, "ended_ms", -1);
        const char *outcome =
            json_get_string(attempt, "outcome", json_get_string(attempt, "state", ""));
        printf("\nAttempt %lld", (long long)json_get_int(attempt, "number", 0));
        if (started >= 0) {
            humanize_iso(started, when, sizeof(when));
            printf("  %s", when);
        }
        if (started >= 0 && ended >= 0) {
            humanize_duration(ended - started, took, sizeof(took));
            printf("  %s after %s", outcome, took);
        } else {
            printf("  %s", never_began(attempt) ? "never began" : outcome);
        }
        putchar('\n');
        tell_decision(attempt);
        tell_incident(attempt);
        tell_own_restarts(attempt);
        tell_grace(attempt);
    }
    tell_end(lineage, attempts);
    story_advise_back(reply);
}

static void print_windows(const json_t *windows)
{
    json_t *window;
    size_t i;

    json_array_foreach(windows, i, window)
    {
        printf("    %s:%lld\n", json_get_string(window, "file", ""),
               (long long)json_get_int(window, "line", 0));
        print_indented(json_get_string(window, "text", ""), "      | ");
    }
}

/* "script:12" in words; "conf/grpo.yaml:22" is what it is. */
static void print_setting(const char *knob, const json_t *value)
{
    const char *where = json_get_string(value, "where", "");
    const char *source = json_get_string(value, "source", "");
    const char *line = strncmp(where, "script:", 7) == 0 ? where + 7 : NULL;

    printf("    %s = %s   (%s%s%s)\n", knob, json_get_string(value, "value", ""), source,
           line     ? " line "
           : *where ? " "
                    : "",
           line ? line : where);
}

static void print_attempt(const json_t *attempt, bool scheduled)
{
    const json_t *evidence = json_object_get(attempt, "evidence");
    const char *diff = json_get_string(attempt, "diff", "");
    const char *knob;
    json_t *value;

    printf("attempt %lld: %s\n", (long long)json_get_int(attempt, "number", 0),
           json_get_string(attempt, "outcome", json_get_string(attempt, "state", "")));
    if (scheduled)
        printf("  job %s, restart %lld, ", json_get_string(attempt, "job", ""),
               (long long)json_get_int(attempt, "restart", 0));
    else
        printf("  ");
    printf("node %s, exit %lld, signal %lld\n", json_get_string(attempt, "node", ""),
           (long long)json_get_int(attempt, "exit_code", -1),
           (long long)json_get_int(attempt, "signal", 0));
    tell_decision(attempt);
    tell_incident(attempt);
    tell_grace(attempt);
    if (json_object_size(json_object_get(attempt, "values")) > 0)
        printf("  settings when it failed:\n");
    json_object_foreach(json_object_get(attempt, "values"), knob, value)
    {
        if (json_get_string(value, "value", NULL) &&
            strcmp(json_get_string(value, "source", ""), "default") != 0)
            print_setting(knob, value);
    }
    if (json_array_size(json_object_get(evidence, "windows")) > 0)
        printf("  the log there:\n");
    print_windows(json_object_get(evidence, "windows"));
    if (*diff)
        printf("  it ran with:\n");
    print_indented(diff, "    ");
}

/* "7.2" asks for one attempt, as the head reads it; a job may be called "1.5B-run". */
static int64_t asked_attempt(const char *what)
{
    static const char digits[] = "0123456789";
    size_t lineage = strspn(what, digits);
    const char *number = what + lineage + 1;

    if (!lineage || what[lineage] != '.' || !*number || number[strspn(number, digits)])
        return 0;
    return atoll(number);
}

void story_facts(const json_t *reply, const char *what)
{
    int64_t only = asked_attempt(what);
    bool scheduled = strcmp(json_get_string(json_object_get(reply, "lineage"), "scheduler", "none"),
                            "none") != 0;
    json_t *attempt;
    size_t i;

    json_array_foreach(json_object_get(reply, "attempts"), i,
                       attempt) if (!only || json_get_int(attempt, "number", 0) == only)
        print_attempt(attempt, scheduled);
}
