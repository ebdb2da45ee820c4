/* SPDX-License-Identifier: Apache-2.0
 *
 * Frame rules: which function of which file tells the phase. */
#include <stdio.h>
#include <stdlib.h>

#include "policies/classify_schema.h"

int oom_schema_rule_append(const struct reading *r, const struct frame_rule *rule)
{
    if (r->set->rule_count >= FRAME_RULES_MAX)
        return oom_errorf(r->err, "%s: too many frame rules", r->document);
    struct frame_rule *grown =
        realloc(r->set->rules, (r->set->rule_count + 1) * sizeof(*r->set->rules));
    if (!grown)
        return oom_errorf(r->err, "%s: out of memory", r->document);
    r->set->rules = grown;
    grown[r->set->rule_count++] = *rule;
    return 0;
}

static const char *const frame_keys[] = {
    "function", "functions", "file",  "phase",     "strength", "reset",
    "covers",   "domain",    "about", "direction", NULL,
};

static int frame_add(struct reading *r, json_t *object, const char *function)
{
    struct frame_rule rule = {.function = function, .strength = STRENGTH_SCOPE};
    const char *word = NULL;

    if (oom_schema_take_string(r, object, "file", &rule.file) ||
        oom_schema_take_bool(r, object, "reset", &rule.reset) ||
        oom_schema_take_bool(r, object, "covers", &rule.covers) ||
        oom_schema_take_string(r, object, "phase", &word))
        return -1;
    if (!rule.function && !rule.file)
        return oom_errorf(r->err, "%s: %s: a rule needs \"function\" or \"file\"", r->document,
                          r->id);
    if (word && oom_phase_parse(word, &rule.phase))
        return oom_schema_refuse_word(r, "phase", word, oom_schema_phases);
    bool phase = word != NULL;
    word = NULL;
    if (oom_schema_take_string(r, object, "domain", &word))
        return -1;
    if (word && oom_domain_parse(word, &rule.domain))
        return oom_schema_refuse_word(r, "domain", word, oom_schema_domains);
    if (!phase && !word && !rule.reset)
        return oom_schema_refuse(r, "phase", "is needed (or \"domain\", or \"reset\": true)");
    word = NULL;
    if (oom_schema_take_string(r, object, "strength", &word))
        return -1;
    if (word && oom_strength_parse(word, &rule.strength))
        return oom_schema_refuse_word(r, "strength", word, oom_schema_strengths);
    word = NULL;
    if (oom_schema_take_string(r, object, "direction", &word))
        return -1;
    if (word && oom_direction_parse(word, &rule.direction))
        return oom_schema_refuse_word(r, "direction", word, oom_schema_directions);
    return oom_schema_rule_append(r, &rule);
}

int oom_schema_take_frame(struct reading *r, json_t *object, size_t index)
{
    const char *function = NULL;
    json_t *functions;

    snprintf(r->place, sizeof(r->place), "rule %zu of \"frames\"", index + 1);
    r->id = r->place;
    if (!json_is_object(object))
        return oom_errorf(r->err, "%s: \"frames\" must hold objects", r->document);
    if (oom_schema_check_keys(r, object, frame_keys) ||
        oom_schema_take_string(r, object, "function", &function))
        return -1;
    functions = json_object_get(object, "functions");
    if (!functions)
        return frame_add(r, object, function);
    if (!json_is_array(functions) || function)
        return oom_schema_refuse(r, "functions", "must be an array, and the only one of both keys");
    for (size_t i = 0; i < json_array_size(functions); i++) {
        function = json_string_value(json_array_get(functions, i));
        if (!function)
            return oom_schema_refuse(r, "functions", "must hold strings");
        if (frame_add(r, object, function))
            return -1;
    }
    return 0;
}
