/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON to policy, strictly: a key that is not known, a name that nothing defines or a value of
 * the wrong kind is an error that says where. */
#include <stdlib.h>
#include <string.h>

#include "policies/policy_read.h"
#include "policies/regex.h"

enum { MAX_RETRIES = 100 };

static const char *const type_names[] = {"int",    "float", "bool", "switch",
                                         "string", "enum",  "json", NULL};

/* --- knobs ------------------------------------------------------------------------------------ */

static char *knob_id(const char *name)
{
    while (*name == '-')
        name++;
    char *id = strdup(name);
    for (char *c = id; c && *c; c++) {
        if (*c == '-')
            *c = '_';
        else if (*c == ':')
            *c = '.';
    }
    return id;
}

static int knob_aliases(const struct place *place, const json_t *object, struct knob *knob)
{
    const json_t *array = json_object_get(object, "aliases");
    size_t index;
    const json_t *item;

    if (!array)
        return 0;
    if (read_strings(place, object, "aliases") != 0 ||
        read_room(place, json_array_size(array) + 1, sizeof(*knob->aliases), &knob->aliases) != 0)
        return -1;
    json_array_foreach((json_t *)array, index, item) knob->aliases[index] = json_string_value(item);
    knob->info.aliases = knob->aliases;
    return 0;
}

static int parse_knob(const struct place *place, const char *name, const json_t *object,
                      struct knob *knob)
{
    const char *about;
    const json_t *value;
    struct place here = read_inside(place, "default");

    if (read_check_keys(place, object,
                        "type unit default aliases negative floor ceiling step choices about") != 0)
        return -1;
    knob->info.name = name;
    knob->id = knob_id(name);
    if (!knob->id)
        return read_wrong(place, "out of memory");
    if (read_string(place, object, "type", true, &knob->info.type) != 0 ||
        read_check_name(place, "type", knob->info.type, type_names) != 0 ||
        read_string(place, object, "unit", false, &knob->unit) != 0 ||
        read_string(place, object, "about", false, &about) != 0 ||
        read_bool(place, object, "negative", &knob->info.negative) != 0 ||
        read_strings(place, object, "choices") != 0 || knob_aliases(place, object, knob) != 0)
        return -1;
    knob->choices = json_object_get(object, "choices");
    value = json_object_get(object, "default");
    if (value && read_literal(&here, value, &knob->default_text) != 0)
        return -1;
    knob->info.default_value = knob->default_text;
    value = json_object_get(object, "step");
    if (value) {
        knob->step = json_number_value(value);
        if (!(knob->step > 0))
            return read_wrong(place, "step: must be a number above 0");
    }
    return 0;
}

/* Bounds may name any knob, so they come after all knobs are known. */
static int parse_knobs(struct oom_policy *policy, const struct place *place)
{
    const json_t *knobs = json_object_get(policy->document, "knobs");
    struct place here = read_inside(place, "knobs");
    const char *name;
    json_t *object;

    if (!json_is_object(knobs))
        return read_wrong(&here, "must be an object of knobs");
    if (read_room(&here, json_object_size(knobs), sizeof(*policy->knobs), &policy->knobs) != 0)
        return -1;
    json_object_foreach((json_t *)knobs, name, object)
    {
        struct place there = read_inside(&here, name);
        struct knob *knob = &policy->knobs[policy->knob_count++];
        if (parse_knob(&there, name, object, knob) != 0)
            return -1;
    }
    return 0;
}

static int parse_bounds(struct oom_policy *policy, const struct place *place)
{
    const json_t *knobs = json_object_get(policy->document, "knobs");
    struct place here = read_inside(place, "knobs");

    for (size_t i = 0; i < policy->knob_count; i++) {
        struct knob *knob = &policy->knobs[i];
        const json_t *object = json_object_get(knobs, knob->info.name);
        struct place there = read_inside(&here, knob->info.name);
        if (read_expr(policy, &there, object, "floor", false, &knob->floor) != 0 ||
            read_expr(policy, &there, object, "ceiling", false, &knob->ceiling) != 0)
            return -1;
    }
    return 0;
}

/* --- lets, captures, guards ---------------------------------------------------------------------
 */

static int parse_lets(struct oom_policy *policy, const struct place *place)
{
    const json_t *lets = json_object_get(policy->document, "let");
    struct place here = read_inside(place, "let");
    const char *name;
    json_t *value;

    if (!lets)
        return 0;
    if (!json_is_object(lets))
        return read_wrong(&here, "must be an object, { }");
    if (read_room(&here, json_object_size(lets), sizeof(*policy->lets), &policy->lets) != 0)
        return -1;
    /* Each sees only those before it, so that none can refer to itself. */
    json_object_foreach((json_t *)lets, name, value)
    {
        struct let *let = &policy->lets[policy->let_count++];
        if (policy_knob_by_id(policy, name)) {
            struct place there = read_inside(&here, name);
            return read_wrong(&there, "is the name of a knob");
        }
        let->name = name;
        if (read_expr(policy, &here, lets, name, true, &let->expr) != 0)
            return -1;
    }
    return 0;
}

static int parse_captures(struct oom_policy *policy, const struct place *place)
{
    const json_t *captures = json_object_get(policy->document, "captures");
    struct place here = read_inside(place, "captures");
    struct oom_error why;
    const char *name;
    json_t *value;

    if (!captures)
        return 0;
    if (!json_is_object(captures))
        return read_wrong(&here, "must be an object, { }");
    if (read_room(&here, json_object_size(captures), sizeof(*policy->captures),
                  &policy->captures) != 0)
        return -1;
    json_object_foreach((json_t *)captures, name, value)
    {
        struct place there = read_inside(&here, name);
        struct capture *capture = &policy->captures[policy->capture_count];
        if (strncmp(name, "message.", 8) != 0)
            return read_wrong(&there, "names of captures begin with \"message.\"");
        if (!json_is_string(value))
            return read_wrong(&there, "must be a regular expression");
        capture->name = name;
        capture->regex = oom_regex_new(json_string_value(value), &why);
        if (!capture->regex)
            return read_wrong(&there, why.text);
        policy->capture_count++;
    }
    return 0;
}

int policy_parse_guards(struct oom_policy *policy, const struct place *place, const json_t *object,
                        const char *key, struct guard **out, size_t *count)
{
    const json_t *array = json_object_get(object, key);
    struct place here = read_inside(place, key);
    size_t index;
    const json_t *item;

    if (!array)
        return 0;
    if (!json_is_array(array))
        return read_wrong(&here, "must be an array, [ ]");
    if (read_room(&here, json_array_size(array), sizeof(**out), out) != 0)
        return -1;
    json_array_foreach((json_t *)array, index, item)
    {
        struct place there = read_at(&here, index);
        struct guard *guard = &(*out)[(*count)++];
        if (read_check_keys(&there, item, "require why pass_when_unknown") != 0 ||
            read_expr(policy, &there, item, "require", true, &guard->require) != 0 ||
            read_string(&there, item, "why", true, &guard->why) != 0 ||
            read_bool(&there, item, "pass_when_unknown", &guard->pass_when_unknown) != 0)
            return -1;
    }
    return 0;
}

/* --- the whole ----------------------------------------------------------------------------------
 */

static int parse_recognise(struct oom_policy *policy, const struct place *place)
{
    const json_t *recognise = json_object_get(policy->document, "recognise");
    const json_t *order = json_object_get(recognise, "order");
    struct place here = read_inside(place, "recognise");

    if (!recognise)
        return 0;
    if (read_check_keys(
            &here, recognise,
            "programs not_programs with_argument without_argument with_setting order") != 0 ||
        read_strings(&here, recognise, "programs") != 0 ||
        read_strings(&here, recognise, "not_programs") != 0 ||
        read_strings(&here, recognise, "with_argument") != 0 ||
        read_strings(&here, recognise, "without_argument") != 0 ||
        read_strings(&here, recognise, "with_setting") != 0)
        return -1;
    if (order && !json_is_integer(order))
        return read_wrong(&here, "order: must be a whole number");
    policy->order = (int)json_integer_value(order);
    return 0;
}

static int parse_advice(const struct oom_policy *policy, const struct place *place)
{
    const json_t *advice = json_object_get(policy->document, "advice");
    struct place here = read_inside(place, "advice");
    const char *name;
    json_t *value;

    if (!advice)
        return 0;
    if (read_check_keys(&here, advice, "gpu host shm kv_cache") != 0)
        return -1;
    json_object_foreach((json_t *)advice, name,
                        value) if (!json_is_string(value)) return read_wrong(&here,
                                                                             "must hold texts");
    return 0;
}

/* What an administrator allows for lineages of this policy. */
static int parse_terms(struct oom_policy *policy, const struct place *place)
{
    static const char *const consents[] = {[OOM_CONSENT_ASK] = "ask",
                                           [OOM_CONSENT_GIVEN] = "given",
                                           [OOM_CONSENT_NEVER] = "never",
                                           NULL};
    const json_t *retries = json_object_get(policy->document, "max_retries");
    const char *consent;

    policy->max_retries = -1;
    if (retries) {
        if (!json_is_integer(retries) || json_integer_value(retries) < 0 ||
            json_integer_value(retries) > MAX_RETRIES)
            return read_wrong(place, "max_retries: must be a whole number from 0 to 100");
        policy->max_retries = (int)json_integer_value(retries);
    }
    if (read_string(place, policy->document, "consent", false, &consent) != 0)
        return -1;
    if (!consent)
        return 0;
    if (read_check_name(place, "consent", consent, consents) != 0)
        return -1;
    while (strcmp(consents[policy->consent], consent) != 0)
        policy->consent++;
    return 0;
}

int policy_parse(struct oom_policy *policy, const char *name, struct oom_error *err)
{
    struct place place = {.document = name, .err = err};
    const char *family, *title;
    bool abbreviates = false;

    if (read_check_keys(
            &place, policy->document,
            "name title family dash_alike abbreviates recognise config files dump max_retries "
            "consent let captures "
            "knobs rules rungs ladders resume own_restarts advice sources") != 0 ||
        read_string(&place, policy->document, "name", true, &policy->name) != 0 ||
        read_string(&place, policy->document, "title", true, &title) != 0 ||
        read_string(&place, policy->document, "family", true, &family) != 0 ||
        read_bool(&place, policy->document, "dash_alike", &policy->dash_alike) != 0 ||
        read_bool(&place, policy->document, "abbreviates", &abbreviates) != 0 ||
        read_strings(&place, policy->document, "sources") != 0)
        return -1;
    if (strlen(policy->name) > 31)
        return read_wrong(&place, "name: has at most 31 characters");
    if (oom_family_parse(family, &policy->family) != 0)
        return read_wrong(&place,
                          "family: must be argparse, hydra, omegaconf, tyro, hf, axolotl or env");
    if (policy->family == OOM_FAMILY_HF || policy->family == OOM_FAMILY_AXOLOTL ||
        policy->family == OOM_FAMILY_TYRO)
        policy->dash_alike = true;
    if (parse_terms(policy, &place) != 0 || parse_recognise(policy, &place) != 0 ||
        policy_parse_outside(policy, &place) != 0 || parse_advice(policy, &place) != 0 ||
        parse_knobs(policy, &place) != 0 || parse_captures(policy, &place) != 0 ||
        parse_lets(policy, &place) != 0 || parse_bounds(policy, &place) != 0)
        return -1;
    if (policy_parse_guards(policy, &place, policy->document, "rules", &policy->rules,
                            &policy->rule_count) != 0)
        return -1;
    if (policy_parse_rungs(policy, &place) != 0 || policy_parse_again(policy, &place) != 0)
        return -1;
    return policy_parse_ladders(policy, &place);
}
