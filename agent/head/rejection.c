/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/head/rejection.h"

#include "agent/lib/jsonget.h"
#include "oomretry/decide.h"

const json_t *rejection_problem(const json_t *attempts, int64_t number)
{
    for (int64_t i = number - 1; i-- > 0;) {
        const json_t *incident = json_object_get(json_array_get(attempts, (size_t)i), "incident");
        if (json_get_bool(incident, "oom", false))
            return incident;
    }
    return NULL;
}

bool rejection_found(const json_t *attempts, int64_t number, const json_t *incident)
{
    const json_t *attempt = json_array_get(attempts, (size_t)number - 1);
    const char *cause = json_get_string(json_object_get(incident, "cause"), "text", "");
    struct oom_edits edits = {NULL, 0};
    bool found = false;

    if (json_is_object(json_object_get(attempt, "decision")) &&
        rejection_problem(attempts, number) &&
        oom_edits_from_json(json_object_get(attempt, "edits"), &edits) == 0)
        found = oom_edits_named(&edits, cause) != NULL;
    oom_edits_free(&edits);
    return found;
}
