/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/ladder_help.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GIB 1073741824.0

json_t *ladder_document(const char *name)
{
    char path[256];
    json_error_t why;

    snprintf(path, sizeof(path), "policies/frameworks/%s.json", name);
    json_t *document = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (!document)
        fail_msg("%s:%d: %s", path, why.line, why.text);
    return document;
}

size_t ladder_shipped_count(void)
{
    glob_t found;

    assert_int_equal(glob("policies/frameworks/*.json", 0, NULL, &found), 0);
    size_t count = found.gl_pathc;
    globfree(&found);
    return count;
}

static struct oom_policy *load(const json_t *document, const char *name)
{
    struct oom_error err;
    struct oom_policy *policy = oom_policy_from_json(document, name, &err);
    if (!policy)
        fail_msg("%s", err.text);
    return policy;
}

static void set_number(struct oom_incident *incident, const char *name, const char *gib)
{
    const struct {
        const char *name;
        int64_t *slot;
    } rows[] = {
        {"tried", &incident->numbers.tried_bytes},
        {"total", &incident->numbers.total_bytes},
        {"free", &incident->numbers.free_bytes},
        {"in_use", &incident->numbers.in_use_bytes},
        {"allocated", &incident->numbers.allocated_bytes},
        {"reserved_unallocated", &incident->numbers.reserved_unallocated_bytes},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            *rows[i].slot = (int64_t)(strtod(gib, NULL) * GIB);
            return;
        }
    }
    fail_msg("no number \"%s\"", name);
}

static void set_one(struct ladder_run *run, char *setting)
{
    char *value = strchr(setting, '=');

    if (value)
        *value++ = '\0';
    if (strncmp(setting, "n.", 2) == 0) {
        set_number(&run->incident, setting + 2, value);
    } else if (strcmp(setting, "text") == 0) {
        free(run->incident.cause.text);
        run->incident.cause.text = strdup(value);
    } else if (strcmp(setting, "allow") == 0) {
        run->input.allow_training = true;
    } else if (strcmp(setting, "mode") == 0) {
        assert_int_equal(oom_mode_parse(value, &run->input.mode), 0);
    } else {
        /* "knob=" is a knob that is known not to be set. */
        const char *text = !value ? "true" : value[0] ? value : NULL;
        assert_int_equal(oom_values_set(&run->values, setting, text, OOM_SOURCE_SCRIPT, "script:1"),
                         0);
    }
}

void ladder_settings(struct ladder_run *run, const char *settings)
{
    char *copy = strdup(settings);
    char *rest = copy;

    assert_non_null(copy);
    for (char *setting; (setting = strsep(&rest, ";"));) {
        while (*setting == ' ')
            setting++;
        if (*setting)
            set_one(run, setting);
    }
    free(copy);
}

void ladder_problem(struct ladder_run *run, const char *problem)
{
    char domain[16] = "", phase[16] = "", direction[16] = "";

    assert_true(sscanf(problem, "%15s %15s %15s", domain, phase, direction) >= 2);
    assert_int_equal(oom_domain_parse(domain, &run->incident.domain), 0);
    assert_int_equal(oom_phase_parse(phase, &run->incident.phase), 0);
    assert_int_equal(oom_direction_parse(direction, &run->incident.direction), 0);
}

void ladder_begin_alone(struct ladder_run *run, const char *problem, const char *settings)
{
    memset(run, 0, sizeof(*run));
    oom_incident_init(&run->incident);
    run->incident.oom = true;
    ladder_problem(run, problem);
    ladder_settings(run, settings);
    run->input.max_retries = LADDER_STEPS;
    run->input.incident = &run->incident;
    run->input.values = &run->values;
    run->input.steps = run->steps;
}

void ladder_begin_with(struct ladder_run *run, const json_t *document, const char *problem,
                       const char *settings)
{
    static const char *const general[] = {"pytorch", "host"};

    ladder_begin_alone(run, problem, settings);
    run->policies[0] = load(document, "policy under test");
    for (size_t i = 0; i < 2; i++) {
        json_t *other = ladder_document(general[i]);
        run->policies[i + 1] = load(other, general[i]);
        json_decref(other);
    }
}

void ladder_begin(struct ladder_run *run, const char *policy, const char *problem,
                  const char *settings)
{
    json_t *document = ladder_document(policy);
    ladder_begin_with(run, document, problem, settings);
    json_decref(document);
}

void ladder_end(struct ladder_run *run)
{
    for (size_t i = 0; i < 3; i++)
        oom_policy_free(run->policies[i]);
    for (size_t i = 0; i < run->step_count; i++)
        oom_edits_free(&run->steps[i].edits);
    oom_values_free(&run->values);
    oom_incident_free(&run->incident);
}

void ladder_decide(struct ladder_run *run, struct oom_decision *out)
{
    struct oom_error err;

    run->input.incident = &run->incident;
    run->input.values = &run->values;
    run->input.steps = run->steps;
    run->input.step_count = run->step_count;
    run->input.retries_used = (int)run->step_count;
    if (oom_decide((const struct oom_policy *const *)run->policies, 3, &run->input, out, &err) != 0)
        fail_msg("%s", err.text);
}

void ladder_apply(struct ladder_run *run, const struct oom_decision *decision)
{
    struct oom_step *step = &run->steps[run->step_count];

    assert_true(decision->retry && run->step_count < LADDER_STEPS);
    if (decision->taken_back[0])
        for (size_t i = 0; i < run->step_count; i++)
            if (strcmp(run->steps[i].rung, decision->taken_back) == 0)
                run->steps[i].taken_back = true;
    run->step_count++;
    snprintf(step->rung, sizeof(step->rung), "%s", decision->rung);
    snprintf(step->policy, sizeof(step->policy), "%.*s", (int)strcspn(decision->policy, "@"),
             decision->policy);
    step->domain = run->incident.domain;
    step->phase = run->incident.phase;
    step->short_before_bytes = oom_numbers_short_bytes(&run->incident.numbers);
    step->short_after_bytes = OOM_UNSTATED;
    for (size_t i = 0; i < decision->edits.count; i++) {
        const struct oom_edit *edit = &decision->edits.items[i];
        oom_edits_add(&step->edits, edit->knob, edit->old_value, edit->new_value, NULL);
        oom_values_set(&run->values, edit->knob, edit->new_value, OOM_SOURCE_SCRIPT, "script:1");
    }
}

void ladder_edits_text(const struct oom_edits *edits, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < edits->count && used < size; i++) {
        const struct oom_edit *edit = &edits->items[i];
        int n = snprintf(out + used, size - used, "%s%s: %s -> %s", i ? "; " : "", edit->knob,
                         edit->old_value ? edit->old_value : "-",
                         edit->new_value ? edit->new_value : "-");
        used += n > 0 ? (size_t)n : 0;
    }
}

const char *ladder_skip_why(const struct oom_decision *decision, const char *rung)
{
    for (size_t i = 0; i < decision->skipped_count; i++)
        if (strcmp(decision->skipped[i].rung, rung) == 0)
            return decision->skipped[i].why;
    return NULL;
}
