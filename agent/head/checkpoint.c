/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/head/checkpoint.h"

#include <string.h>

#include "agent/lib/jsonget.h"

static bool edits_knob(const struct oom_edits *edits, const char *knob)
{
    for (size_t i = 0; i < edits->count; i++)
        if (strcmp(edits->items[i].knob, knob) == 0)
            return true;
    return false;
}

const char *checkpoint_frozen_knob(const json_t *resume, const struct oom_decision *decision)
{
    const json_t *frozen = json_object_get(resume, "frozen");

    for (size_t i = 0; i < json_array_size(frozen); i++) {
        const char *knob = json_string_value(json_array_get(frozen, i));
        if (knob && edits_knob(&decision->edits, knob))
            return knob;
    }
    return NULL;
}

int checkpoint_add_edits(const json_t *resume, struct oom_decision *decision, struct oom_error *err)
{
    struct oom_edits edits = {NULL, 0};
    int rc = 0;

    if (!json_is_array(json_object_get(resume, "edits")))
        return 0;
    if (oom_edits_from_json(json_object_get(resume, "edits"), &edits) < 0)
        return oom_errorf(err, "member \"resume\" is damaged");
    for (size_t i = 0; rc == 0 && i < edits.count; i++)
        rc = oom_edits_add(&decision->edits, edits.items[i].knob, edits.items[i].old_value,
                           edits.items[i].new_value, NULL);
    oom_edits_free(&edits);
    return rc == 0 ? 0 : oom_errorf(err, "out of memory");
}
