/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "policies/policy_read.h"

static const char *const kind_names[] = {"allocator", "recompute", "tokens",      "offload",
                                         "buffer",    "disk",      "concurrency", "parallelism",
                                         "optimizer", "resources", "diagnose",    NULL};

bool policy_param_set(struct rung_params *params, const char *key, const json_t *value)
{
    double number = json_number_value(value);

    if (strcmp(key, "enabled") == 0) {
        if (!json_is_boolean(value))
            return false;
        params->enabled = json_is_true(value);
        return true;
    }
    if (!json_is_number(value) || !isfinite(number) || number < 0)
        return false;
    if (strcmp(key, "scale") == 0 && number > 0 && number < 1)
        params->scale = number;
    else if (strcmp(key, "factor") == 0 && number > 1 && number <= 16)
        params->factor = number;
    else if (strcmp(key, "target") == 0)
        params->target = number;
    else if (strcmp(key, "least") == 0 && number > 0 && number < 1)
        params->least = number;
    else if (strcmp(key, "share") == 0 && number <= 1)
        params->share = number;
    else if (strcmp(key, "cost") == 0 && number <= 1)
        params->cost = number;
    else if (strcmp(key, "repeat") == 0 && number >= 1 && number <= 20)
        params->repeat = (int)number;
    else
        return false;
    return true;
}

static int wrong_param(const struct place *place, const char *key)
{
    static const struct {
        const char *key;
        const char *range;
    } ranges[] = {
        {"scale", "must be a number between 0 and 1"},
        {"factor", "must be a number above 1, at most 16"},
        {"target", "must be a number, 0 or more"},
        {"least", "must be a number between 0 and 1"},
        {"share", "must be a number from 0 to 1"},
        {"cost", "must be a number from 0 to 1: the share of throughput lost"},
        {"repeat", "must be a number from 1 to 20"},
        {"enabled", "must be true or false"},
    };
    struct place here = read_inside(place, key);

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (strcmp(ranges[i].key, key) == 0)
            return read_wrong(&here, ranges[i].range);
    return read_wrong(&here, "is wrong");
}

int policy_parse_params(const struct place *place, const json_t *object, struct rung_params *params)
{
    for (const char *const *key = policy_param_names; *key; key++) {
        const json_t *value = json_object_get(object, *key);
        if (value && !policy_param_set(params, *key, value))
            return wrong_param(place, *key);
    }
    return 0;
}

static bool is_choice(const json_t *choices, const char *text)
{
    size_t index;
    const json_t *choice;

    json_array_foreach((json_t *)choices, index,
                       choice) if (strcmp(json_string_value(choice), text) == 0) return true;
    return false;
}

static int check_edit_knob(const struct oom_policy *policy, const struct place *place,
                           const struct edit_spec *edit)
{
    struct near near;
    const struct knob *knob = policy_knob(policy, edit->knob);

    if (!knob) {
        near_init(&near, edit->knob);
        for (size_t i = 0; i < policy->knob_count; i++)
            near_offer(&near, policy->knobs[i].info.name);
        return read_wrong_name(place, "knob", edit->knob, &near);
    }
    if (edit->set_text && knob->choices && !is_choice(knob->choices, edit->set_text))
        return read_wrong(place, "set: is not one of the knob's choices");
    return 0;
}

static int parse_edit(struct oom_policy *policy, const struct place *place, const json_t *object,
                      struct edit_spec *edit)
{
    const char *move;
    const json_t *set = json_object_get(object, "set");

    if (read_check_keys(place, object, "knob set to unset when move optional") != 0 ||
        read_string(place, object, "knob", true, &edit->knob) != 0 ||
        read_expr(policy, place, object, "to", false, &edit->to) != 0 ||
        read_expr(policy, place, object, "when", false, &edit->when) != 0 ||
        read_bool(place, object, "unset", &edit->unset) != 0 ||
        read_bool(place, object, "optional", &edit->optional) != 0 ||
        read_string(place, object, "move", false, &move) != 0)
        return -1;
    if (set && read_literal(place, set, &edit->set_text) != 0)
        return -1;
    if ((edit->set_text != NULL) + (edit->to != NULL) + edit->unset != 1)
        return read_wrong(place, "needs exactly one of \"set\", \"to\" and \"unset\"");
    if (move) {
        if (strcmp(move, "lower") != 0 && strcmp(move, "raise") != 0)
            return read_wrong(place, "move: must be \"lower\" or \"raise\"");
        edit->move = move[0] == 'l' ? MOVE_LOWER : MOVE_RAISE;
    }
    return check_edit_knob(policy, place, edit);
}

static int parse_edits(struct oom_policy *policy, const struct place *place, const json_t *object,
                       struct rung *rung)
{
    const json_t *array = json_object_get(object, "edits");
    struct place here = read_inside(place, "edits");
    size_t index;
    const json_t *item;

    if (!json_is_array(array))
        return read_wrong(&here, "must be an array of edits");
    if (json_array_size(array) == 0 && !rung->restart)
        return read_wrong(&here, "is empty: a rung must change something");
    if (json_array_size(array) > 0 && rung->restart)
        return read_wrong(&here, "must be empty: \"restart\" changes nothing");
    if (read_room(&here, json_array_size(array), sizeof(*rung->edits), &rung->edits) != 0)
        return -1;
    json_array_foreach((json_t *)array, index, item)
    {
        struct place there = read_at(&here, index);
        if (parse_edit(policy, &there, item, &rung->edits[rung->edit_count++]) != 0)
            return -1;
    }
    return 0;
}

static int parse_rung(struct oom_policy *policy, const struct place *place, const char *name,
                      const json_t *object, struct rung *rung)
{
    const char *moves_to;

    rung->name = name;
    rung->params = (struct rung_params){.scale = 0.5,
                                        .factor = 2,
                                        .least = 0.25,
                                        .share = 0.4,
                                        .cost = -1,
                                        .repeat = 6,
                                        .enabled = true};
    if (strlen(name) > 60)
        return read_wrong(place, "the name of a rung has at most 60 characters");
    if (read_check_keys(place, object,
                        "kind about edits guards frees fit restart moves_to changes_training "
                        "cost_source scale factor target least share cost repeat enabled") != 0 ||
        read_string(place, object, "kind", true, &rung->kind) != 0 ||
        read_check_name(place, "kind", rung->kind, kind_names) != 0 ||
        read_string(place, object, "about", true, &rung->about) != 0 ||
        read_string(place, object, "cost_source", false, &rung->cost_source) != 0 ||
        read_bool(place, object, "changes_training", &rung->changes_training) != 0 ||
        read_bool(place, object, "fit", &rung->fit) != 0 ||
        read_bool(place, object, "restart", &rung->restart) != 0 ||
        read_string(place, object, "moves_to", false, &moves_to) != 0 ||
        policy_parse_params(place, object, &rung->params) != 0 ||
        parse_edits(policy, place, object, rung) != 0 ||
        policy_parse_guards(policy, place, object, "guards", &rung->guards, &rung->guard_count) !=
            0 ||
        read_expr(policy, place, object, "frees", false, &rung->frees) != 0)
        return -1;
    if (moves_to && oom_domain_parse(moves_to, &rung->moves_to) != 0)
        return read_wrong(place, "moves_to: is not a domain (gpu, host, shm, kv_cache)");
    if (rung->params.cost >= 0 && !rung->cost_source)
        return read_wrong(place, "cost: needs \"cost_source\": who measured it");
    return 0;
}

int policy_parse_rungs(struct oom_policy *policy, const struct place *place)
{
    const json_t *rungs = json_object_get(policy->document, "rungs");
    struct place here = read_inside(place, "rungs");
    const char *name;
    json_t *object;

    if (!json_is_object(rungs))
        return read_wrong(&here, "must be an object of rungs");
    if (read_room(&here, json_object_size(rungs), sizeof(*policy->rungs), &policy->rungs) != 0)
        return -1;
    json_object_foreach((json_t *)rungs, name, object)
    {
        struct place there = read_inside(&here, name);
        if (parse_rung(policy, &there, name, object, &policy->rungs[policy->rung_count++]) != 0)
            return -1;
    }
    return 0;
}
