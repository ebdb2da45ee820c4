/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ctl/lineage_text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "agent/lib/humanize.h"
#include "agent/lib/jsonget.h"
#include "oomretry/incident.h"

void lineage_job(const json_t *lineage, char *out, size_t size)
{
    const json_t *jobs = json_object_get(lineage, "jobs");
    size_t count = json_array_size(jobs);

    if (count == 0 || strcmp(json_get_string(lineage, "scheduler", ""), "none") == 0)
        snprintf(out, size, "L%lld", (long long)json_get_int(lineage, "id", 0));
    else
        snprintf(out, size, "%s", json_string_value(json_array_get(jobs, count - 1)));
}

void lineage_state(const json_t *lineage, char *out, size_t size)
{
    const char *state = json_get_string(lineage, "state", "");
    const char *wish = json_get_string(lineage, "wish", "");
    bool open = strcmp(state, "running") == 0 || strcmp(state, "waiting") == 0;

    snprintf(out, size, open && *wish ? "%s (%s)" : "%s", state, wish);
}

void lineage_failure(const json_t *incident, char *out, size_t size)
{
    const json_t *numbers = json_object_get(incident, "numbers");
    int64_t tried = json_get_int(numbers, "tried", -1), left = json_get_int(numbers, "free", -1);
    const char *program = json_get_string(incident, "program", "");
    const char *phase = *program ? program : json_get_string(incident, "phase", "unknown");
    char missing[32] = "";

    out[0] = '\0';
    if (!json_get_bool(incident, "oom", false))
        return;
    if (tried >= 0 && left >= 0 && tried > left)
        humanize_bytes(tried - left, missing, sizeof(missing));
    snprintf(out, size, "%s%s%s%s%s", json_get_string(incident, "domain", "?"),
             strcmp(phase, "unknown") ? " " : "", strcmp(phase, "unknown") ? phase : "",
             *missing ? " " : "", missing);
}

void lineage_changed(const json_t *edits, char *out, size_t size)
{
    size_t used = 0, i;
    json_t *edit;

    out[0] = '\0';
    json_array_foreach(edits, i, edit)
    {
        const char *knob = json_get_string(edit, "knob", "");
        const char *old_value = json_get_string(edit, "old", NULL);
        const char *new_value = json_get_string(edit, "new", NULL);
        knob += strspn(knob, "-");
        int n;
        if (!new_value)
            n = snprintf(out + used, size - used, "%s%s off", used ? "; " : "", knob);
        else if (strcmp(new_value, "true") == 0)
            n = snprintf(out + used, size - used, "%s%s", used ? "; " : "", knob);
        else if (old_value)
            n = snprintf(out + used, size - used, "%s%s %s -> %s", used ? "; " : "", knob,
                         old_value, new_value);
        else
            n = snprintf(out + used, size - used, "%s%s %s", used ? "; " : "", knob, new_value);
        if (n < 0 || (size_t)n >= size - used)
            return;
        used += (size_t)n;
    }
}

void lineage_policy(const json_t *decision, char *out, size_t size)
{
    const char *overrides = json_get_string(decision, "overrides", "");
    int n = snprintf(out, size, "%s%s", json_get_string(decision, "policy", "?"),
                     !*overrides              ? ""
                     : strchr(overrides, ',') ? " with the overrides of "
                                              : " with the override of ");

    /* "partition=small@2, user=alice@1" */
    for (size_t at = n > 0 ? (size_t)n : size; *overrides && at + 8 < size; overrides++) {
        if (*overrides == '=')
            out[at++] = ' ';
        else if (*overrides == ',')
            at += (size_t)sprintf(out + at, " and");
        else
            out[at++] = *overrides;
        out[at] = '\0';
    }
}

void lineage_print_attempt(const json_t *lineage, const json_t *attempt, bool last)
{
    char failure[128], changed[512], policy[400], took[32] = "";
    int64_t started = json_get_int(attempt, "started_ms", -1);
    int64_t ended = json_get_int(attempt, "ended_ms", -1);
    const json_t *decision = json_object_get(attempt, "decision");
    const char *applied = json_get_string(attempt, "applied", "unknown");
    const char *outcome = json_get_string(attempt, "outcome", NULL);

    lineage_failure(json_object_get(attempt, "incident"), failure, sizeof(failure));
    lineage_changed(json_object_get(attempt, "edits"), changed, sizeof(changed));
    if (started >= 0 && ended >= 0)
        humanize_duration(ended - started, took, sizeof(took));
    printf("%s attempt %lld  %-9s %-8s %s\n", last ? "└─" : "├─",
           (long long)json_get_int(attempt, "number", 0),
           outcome ? outcome : json_get_string(attempt, "state", ""), took, failure);
    lineage_policy(decision, policy, sizeof(policy));
    if (*changed)
        printf("%s    changed: %s  (%s, rung %s)%s\n", last ? "  " : "│ ", changed, policy,
               json_get_string(decision, "rung", "?"),
               strcmp(applied, "yes") == 0  ? ", seen applied"
               : strcmp(applied, "no") == 0 ? ", NOT APPLIED"
                                            : "");
    const char *job = json_get_string(attempt, "job", "");
    if (*job && strcmp(json_get_string(lineage, "scheduler", ""), "none") != 0 &&
        json_array_size(json_object_get(lineage, "jobs")) > 1)
        printf("%s    job %s\n", last ? "  " : "│ ", job);
}

int lineage_path(const char *what, char *out, size_t size, struct oom_error *err)
{
    size_t length = strlen(what);

    for (const char *p = what; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
            return oom_errorf(err, "\"%s\" is no job id, lineage (L7) or attempt (7.2)", what);
    if (length == 0 || length > 200)
        return oom_errorf(err, "\"%s\" is no job id, lineage (L7) or attempt (7.2)", what);
    snprintf(out, size, "/v1/history/%s", what);
    return 0;
}
