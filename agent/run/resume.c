/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/run/resume.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/jsonget.h"
#include "policies/jsontext.h"

json_t *resume_plan(const struct oom_policy *policy, const struct oom_values *values)
{
    const json_t *resume = json_object_get(oom_policy_json(policy), "resume");
    const char *knob = json_get_string(resume, "directory", "");
    const char *directory = oom_values_get(values, knob);
    const char *load = json_get_string(resume, "load", NULL);
    const char *loaded = load ? oom_values_get(values, load) : NULL;
    json_t *edits = json_array(), *frozen = json_object_get(resume, "frozen");
    char path[4096];

    if (directory)
        snprintf(path, sizeof(path), "%s/%s", directory, json_get_string(resume, "complete", ""));
    if (!directory || access(path, R_OK) < 0) {
        json_decref(edits);
        return NULL;
    }
    if (load && (!loaded || strcmp(loaded, directory) != 0))
        json_array_append_new(edits, json_pack("{s:s, s:o, s:s}", "knob", load, "old",
                                               loaded ? oom_json_text(loaded) : json_null(), "new",
                                               directory));
    return json_pack("{s:o, s:o, s:O?}", "checkpoint", oom_json_text(directory), "edits", edits,
                     "frozen", frozen);
}
