/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oomretry/decide.h"

#include "policies/jsontext.h"

#define MAX_SKIPPED 256

static const char *const mode_names[] = {
    [OOM_MODE_AUTO] = "auto",
    [OOM_MODE_INPLACE] = "inplace",
    [OOM_MODE_REQUEUE] = "requeue",
    [OOM_MODE_RESUBMIT] = "resubmit",
};
#define MODE_COUNT (sizeof(mode_names) / sizeof(mode_names[0]))

const char *oom_mode_name(enum oom_mode mode)
{
    return (size_t)mode < MODE_COUNT ? mode_names[mode] : "auto";
}

int oom_mode_parse(const char *name, enum oom_mode *out)
{
    for (size_t i = 0; i < MODE_COUNT; i++) {
        if (strcmp(mode_names[i], name) == 0) {
            *out = (enum oom_mode)i;
            return 0;
        }
    }
    return -1;
}

void oom_decision_init(struct oom_decision *decision)
{
    memset(decision, 0, sizeof(*decision));
    decision->cost = -1;
}

void oom_decision_free(struct oom_decision *decision)
{
    oom_edits_free(&decision->edits);
    free(decision->skipped);
    oom_decision_init(decision);
}

static int set_text(json_t *object, const char *key, const char *text)
{
    return text[0] ? json_object_set_new(object, key, oom_json_text(text)) : 0;
}

static json_t *skipped_to_json(const struct oom_decision *decision)
{
    json_t *array = json_array();

    for (size_t i = 0; i < decision->skipped_count; i++)
        json_array_append_new(array, json_pack("{s:s,s:o}", "rung", decision->skipped[i].rung,
                                               "why", oom_json_text(decision->skipped[i].why)));
    return array;
}

json_t *oom_decision_to_json(const struct oom_decision *decision)
{
    json_t *object =
        json_pack("{s:s,s:o,s:o,s:o}", "action", decision->retry ? "retry" : "stop", "reason",
                  oom_json_text(decision->reason), "edits", oom_edits_to_json(&decision->edits),
                  "skipped", skipped_to_json(decision));
    if (!object)
        return NULL;
    int rc = set_text(object, "policy", decision->policy) |
             set_text(object, "overrides", decision->overrides) |
             set_text(object, "rung", decision->rung) | set_text(object, "kind", decision->kind) |
             set_text(object, "taken_back", decision->taken_back) |
             set_text(object, "advice", decision->advice);
    if (decision->retry)
        rc |= set_text(object, "mode", oom_mode_name(decision->mode)) |
              set_text(object, "mode_why", decision->mode_why);
    if (decision->changes_training)
        rc |= json_object_set_new(object, "changes_training", json_true());
    if (decision->cost >= 0)
        rc |= json_object_set_new(object, "cost", json_real(decision->cost));
    if (rc != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static int get_text(const json_t *object, const char *key, char *out, size_t size,
                    struct oom_error *err)
{
    const json_t *value = json_object_get(object, key);

    out[0] = '\0';
    if (!value || json_is_null(value))
        return 0;
    if (!json_is_string(value))
        return oom_errorf(err, "decision: %s: must be text", key);
    snprintf(out, size, "%s", json_string_value(value));
    return 0;
}

static int get_skipped(const json_t *array, struct oom_decision *out, struct oom_error *err)
{
    size_t count = json_array_size(array);

    if (array && (!json_is_array(array) || count > MAX_SKIPPED))
        return oom_errorf(err, "decision: skipped: must be an array of at most %d", MAX_SKIPPED);
    out->skipped = calloc(count ? count : 1, sizeof(*out->skipped));
    if (!out->skipped)
        return oom_errorf(err, "out of memory");
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(array, i);
        struct oom_skip *skip = &out->skipped[out->skipped_count++];
        if (get_text(item, "rung", skip->rung, sizeof(skip->rung), err) != 0 ||
            get_text(item, "why", skip->why, sizeof(skip->why), err) != 0)
            return -1;
    }
    return 0;
}

int oom_decision_from_json(const json_t *json, struct oom_decision *out, struct oom_error *err)
{
    char action[16];
    char mode[16];
    const json_t *edits = json_object_get(json, "edits");
    const json_t *cost = json_object_get(json, "cost");

    oom_decision_init(out);
    if (get_text(json, "action", action, sizeof(action), err) != 0 ||
        get_text(json, "reason", out->reason, sizeof(out->reason), err) != 0 ||
        get_text(json, "policy", out->policy, sizeof(out->policy), err) != 0 ||
        get_text(json, "overrides", out->overrides, sizeof(out->overrides), err) != 0 ||
        get_text(json, "rung", out->rung, sizeof(out->rung), err) != 0 ||
        get_text(json, "kind", out->kind, sizeof(out->kind), err) != 0 ||
        get_text(json, "mode", mode, sizeof(mode), err) != 0 ||
        get_text(json, "mode_why", out->mode_why, sizeof(out->mode_why), err) != 0 ||
        get_text(json, "taken_back", out->taken_back, sizeof(out->taken_back), err) != 0 ||
        get_text(json, "advice", out->advice, sizeof(out->advice), err) != 0 ||
        get_skipped(json_object_get(json, "skipped"), out, err) != 0)
        goto fail;
    if (strcmp(action, "retry") != 0 && strcmp(action, "stop") != 0) {
        oom_errorf(err, "decision: action: must be \"retry\" or \"stop\"");
        goto fail;
    }
    out->retry = action[0] == 'r';
    if (mode[0] && oom_mode_parse(mode, &out->mode) != 0) {
        oom_errorf(err, "decision: mode: \"%s\" is none", mode);
        goto fail;
    }
    out->changes_training = json_is_true(json_object_get(json, "changes_training"));
    if (cost)
        out->cost = json_number_value(cost);
    if (edits && oom_edits_from_json(edits, &out->edits) != 0) {
        oom_errorf(err, "decision: edits: must be an array of {knob, old, new, where}");
        goto fail;
    }
    return 0;
fail:
    oom_decision_free(out);
    return -1;
}
