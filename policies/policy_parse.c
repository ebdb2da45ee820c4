/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON to policy, strictly: a key that is not known, a name that nothing defines or a value of
 * the wrong kind is an error that says where. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/near.h"
#include "policies/policy_impl.h"
#include "policies/regex.h"

#define MAX_ITEMS 400
#define MAX_PATH  256

const char *const policy_fact_names[] = {
    "incident.domain",
    "incident.phase",
    "incident.direction",
    "incident.short_bytes",
    "incident.tried_bytes",
    "incident.total_bytes",
    "incident.free_bytes",
    "incident.in_use_bytes",
    "incident.allocated_bytes",
    "incident.reserved_unallocated_bytes",
    "incident.other_bytes",
    "incident.fragmented",
    "incident.text",
    "slurm.mem_mib",
    "slurm.mem_max_mib",
    "slurm.nodes",
    "slurm.gpus",
    "slurm.time_left_s",
    "ray.memory_max_bytes",
    "attempt.seconds",
    "scheduler",
    "mode",
    "requeue_allowed",
    "fileroot_shared",
    "colocated",
    "framework",
    "world.gpus",
    "node.gpus",
    "model.heads",
    "model.kv_heads",
    NULL,
};

const char *const policy_param_names[] = {"scale", "factor", "target",  "least", "share",
                                          "cost",  "repeat", "enabled", NULL};

static const char *const kind_names[] = {"allocator", "recompute", "tokens",      "offload",
                                         "buffer",    "disk",      "concurrency", "parallelism",
                                         "optimizer", "resources", "diagnose",    NULL};

static const char *const type_names[] = {"int",    "float", "bool", "switch",
                                         "string", "enum",  "json", NULL};

/* Where the parser is, for errors: "relax.json: rungs.fewer-tokens.edits[0]". */
struct place {
    const char *document;
    char path[MAX_PATH];
    struct oom_error *err;
};

static struct place inside(const struct place *outer, const char *key)
{
    struct place place = *outer;
    size_t used = strlen(place.path);

    snprintf(place.path + used, sizeof(place.path) - used, "%s%s", used ? "." : "", key);
    return place;
}

static struct place at_index(const struct place *outer, size_t index)
{
    struct place place = *outer;
    size_t used = strlen(place.path);

    snprintf(place.path + used, sizeof(place.path) - used, "[%zu]", index);
    return place;
}

static int wrong(const struct place *place, const char *what)
{
    return oom_errorf(place->err, "%s: %s%s%s", place->document, place->path,
                      place->path[0] ? ": " : "", what);
}

/* "unknown WHAT "NAME" (did you mean "BEST"?)" */
static int wrong_name(const struct place *place, const char *what, const char *name,
                      const struct near *near)
{
    char text[512];

    if (near->best)
        snprintf(text, sizeof(text), "unknown %s \"%.100s\" (did you mean \"%.100s\"?)", what, name,
                 near->best);
    else
        snprintf(text, sizeof(text), "unknown %s \"%.100s\"", what, name);
    return wrong(place, text);
}

static int check_name(const struct place *place, const char *what, const char *name,
                      const char *const *known)
{
    struct near near;

    near_init(&near, name);
    for (const char *const *k = known; *k; k++) {
        if (strcmp(*k, name) == 0)
            return 0;
        near_offer(&near, *k);
    }
    return wrong_name(place, what, name, &near);
}

/* `keys` are separated by spaces. */
static int check_keys(const struct place *place, const json_t *object, const char *keys)
{
    char copy[512];
    const char *known[64];
    size_t count = 0;
    const char *key;
    json_t *value;

    if (!json_is_object(object))
        return wrong(place, "must be an object, { }");
    snprintf(copy, sizeof(copy), "%s", keys);
    char *rest = copy;
    for (char *word; (word = strsep(&rest, " "));)
        if (*word && count + 1 < sizeof(known) / sizeof(known[0]))
            known[count++] = word;
    known[count] = NULL;
    json_object_foreach((json_t *)object, key,
                        value) if (check_name(place, "key", key, known) != 0) return -1;
    return 0;
}

static int get_string(const struct place *place, const json_t *object, const char *key,
                      bool required, const char **out)
{
    const json_t *value = json_object_get(object, key);
    struct place here = inside(place, key);

    *out = NULL;
    if (!value)
        return required ? wrong(&here, "is missing") : 0;
    if (!json_is_string(value) || json_string_length(value) == 0)
        return wrong(&here, "must be text");
    *out = json_string_value(value);
    return 0;
}

static int get_bool(const struct place *place, const json_t *object, const char *key, bool *out)
{
    const json_t *value = json_object_get(object, key);
    struct place here = inside(place, key);

    if (!value)
        return 0;
    if (!json_is_boolean(value))
        return wrong(&here, "must be true or false");
    *out = json_is_true(value);
    return 0;
}

/* A literal as the command line spells it. NULL: null. */
static int literal_text(const struct place *place, const json_t *value, char **out)
{
    char text[64];

    *out = NULL;
    if (json_is_null(value))
        return 0;
    if (json_is_string(value))
        *out = strdup(json_string_value(value));
    else if (json_is_boolean(value))
        *out = strdup(json_is_true(value) ? "true" : "false");
    else if (json_is_integer(value))
        snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(text, sizeof(text), "%.10g", json_real_value(value));
    else
        return wrong(place, "must be text, a number, true, false or null");
    if (json_is_number(value))
        *out = strdup(text);
    return *out ? 0 : wrong(place, "out of memory");
}

struct name_check {
    const struct oom_policy *policy;
    const struct place *place;
    const char *text;
};

static bool is_param(const char *name)
{
    for (const char *const *p = policy_param_names; *p; p++)
        if (strcmp(*p, name) == 0)
            return true;
    return false;
}

static int check_expr_name(void *arg, const char *name, int column)
{
    const struct name_check *check = arg;
    const struct oom_policy *policy = check->policy;
    struct near near;
    char text[600];

    if (strncmp(name, "old.", 4) == 0)
        name += 4;
    if (policy_knob_by_id(policy, name) || is_param(name))
        return 0;
    near_init(&near, name);
    for (const char *const *fact = policy_fact_names; *fact; fact++) {
        if (strcmp(*fact, name) == 0)
            return 0;
        near_offer(&near, *fact);
    }
    for (size_t i = 0; i < policy->let_count; i++) {
        if (policy->lets[i].expr && strcmp(policy->lets[i].name, name) == 0)
            return 0;
        near_offer(&near, policy->lets[i].name);
    }
    for (size_t i = 0; i < policy->capture_count; i++) {
        if (strcmp(policy->captures[i].name, name) == 0)
            return 0;
        near_offer(&near, policy->captures[i].name);
    }
    for (size_t i = 0; i < policy->knob_count; i++)
        near_offer(&near, policy->knobs[i].id);
    snprintf(text, sizeof(text),
             "column %d of \"%.200s\": \"%.100s\" is no knob and no fact%s%.100s%s", column,
             check->text, name, near.best ? " (did you mean \"" : "", near.best ? near.best : "",
             near.best ? "\"?)" : "");
    return wrong(check->place, text);
}

/* An expression, written as text or as a plain number or boolean. */
static int get_expr(const struct oom_policy *policy, const struct place *place,
                    const json_t *object, const char *key, bool required, struct oom_expr **out)
{
    const json_t *value = json_object_get(object, key);
    struct place here = inside(place, key);
    struct name_check check = {policy, &here, NULL};
    struct oom_error why;
    char *text;

    *out = NULL;
    if (!value)
        return required ? wrong(&here, "is missing") : 0;
    if (json_is_null(value))
        return wrong(&here, "must be an expression");
    if (literal_text(&here, value, &text) != 0)
        return -1;
    *out = oom_expr_parse(text, &why);
    free(text);
    if (!*out)
        return wrong(&here, why.text);
    check.text = oom_expr_text(*out);
    if (oom_expr_names(*out, check_expr_name, &check) != 0) {
        oom_expr_free(*out);
        *out = NULL;
        return -1;
    }
    return 0;
}

static int string_array(const struct place *place, const json_t *object, const char *key)
{
    const json_t *array = json_object_get(object, key);
    struct place here = inside(place, key);
    size_t index;
    const json_t *item;

    if (!array)
        return 0;
    if (!json_is_array(array) || json_array_size(array) > MAX_ITEMS)
        return wrong(&here, "must be an array of texts");
    json_array_foreach((json_t *)array, index, item) if (!json_is_string(item)) return wrong(
        &here, "must be an array of texts");
    return 0;
}

/* Room for `count` things of an object or array. */
static int allocate(const struct place *place, size_t count, size_t size, void *out)
{
    void *room;

    if (count > MAX_ITEMS)
        return wrong(place, "has too many entries");
    room = calloc(count ? count : 1, size);
    if (!room)
        return wrong(place, "out of memory");
    memcpy(out, &room, sizeof(room));
    return 0;
}

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
    if (string_array(place, object, "aliases") != 0 ||
        allocate(place, json_array_size(array) + 1, sizeof(*knob->aliases), &knob->aliases) != 0)
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
    struct place here = inside(place, "default");

    if (check_keys(place, object,
                   "type unit default aliases negative floor ceiling step choices about") != 0)
        return -1;
    knob->info.name = name;
    knob->id = knob_id(name);
    if (!knob->id)
        return wrong(place, "out of memory");
    if (get_string(place, object, "type", true, &knob->info.type) != 0 ||
        check_name(place, "type", knob->info.type, type_names) != 0 ||
        get_string(place, object, "unit", false, &knob->unit) != 0 ||
        get_string(place, object, "about", false, &about) != 0 ||
        get_bool(place, object, "negative", &knob->info.negative) != 0 ||
        string_array(place, object, "choices") != 0 || knob_aliases(place, object, knob) != 0)
        return -1;
    knob->choices = json_object_get(object, "choices");
    value = json_object_get(object, "default");
    if (value && literal_text(&here, value, &knob->default_text) != 0)
        return -1;
    knob->info.default_value = knob->default_text;
    value = json_object_get(object, "step");
    if (value) {
        knob->step = json_number_value(value);
        if (!(knob->step > 0))
            return wrong(place, "step: must be a number above 0");
    }
    return 0;
}

/* Bounds may name any knob, so they come after all knobs are known. */
static int parse_knobs(struct oom_policy *policy, const struct place *place)
{
    const json_t *knobs = json_object_get(policy->document, "knobs");
    struct place here = inside(place, "knobs");
    const char *name;
    json_t *object;

    if (!json_is_object(knobs))
        return wrong(&here, "must be an object of knobs");
    if (allocate(&here, json_object_size(knobs), sizeof(*policy->knobs), &policy->knobs) != 0)
        return -1;
    json_object_foreach((json_t *)knobs, name, object)
    {
        struct place there = inside(&here, name);
        struct knob *knob = &policy->knobs[policy->knob_count++];
        if (parse_knob(&there, name, object, knob) != 0)
            return -1;
    }
    return 0;
}

static int parse_bounds(struct oom_policy *policy, const struct place *place)
{
    const json_t *knobs = json_object_get(policy->document, "knobs");
    struct place here = inside(place, "knobs");

    for (size_t i = 0; i < policy->knob_count; i++) {
        struct knob *knob = &policy->knobs[i];
        const json_t *object = json_object_get(knobs, knob->info.name);
        struct place there = inside(&here, knob->info.name);
        if (get_expr(policy, &there, object, "floor", false, &knob->floor) != 0 ||
            get_expr(policy, &there, object, "ceiling", false, &knob->ceiling) != 0)
            return -1;
    }
    return 0;
}

/* --- lets, captures, guards ---------------------------------------------------------------------
 */

static int parse_lets(struct oom_policy *policy, const struct place *place)
{
    const json_t *lets = json_object_get(policy->document, "let");
    struct place here = inside(place, "let");
    const char *name;
    json_t *value;

    if (!lets)
        return 0;
    if (!json_is_object(lets))
        return wrong(&here, "must be an object, { }");
    if (allocate(&here, json_object_size(lets), sizeof(*policy->lets), &policy->lets) != 0)
        return -1;
    /* Each sees only those before it, so that none can refer to itself. */
    json_object_foreach((json_t *)lets, name, value)
    {
        struct let *let = &policy->lets[policy->let_count++];
        if (policy_knob_by_id(policy, name)) {
            struct place there = inside(&here, name);
            return wrong(&there, "is the name of a knob");
        }
        let->name = name;
        if (get_expr(policy, &here, lets, name, true, &let->expr) != 0)
            return -1;
    }
    return 0;
}

static int parse_captures(struct oom_policy *policy, const struct place *place)
{
    const json_t *captures = json_object_get(policy->document, "captures");
    struct place here = inside(place, "captures");
    struct oom_error why;
    const char *name;
    json_t *value;

    if (!captures)
        return 0;
    if (!json_is_object(captures))
        return wrong(&here, "must be an object, { }");
    if (allocate(&here, json_object_size(captures), sizeof(*policy->captures), &policy->captures) !=
        0)
        return -1;
    json_object_foreach((json_t *)captures, name, value)
    {
        struct place there = inside(&here, name);
        struct capture *capture = &policy->captures[policy->capture_count];
        if (strncmp(name, "message.", 8) != 0)
            return wrong(&there, "names of captures begin with \"message.\"");
        if (!json_is_string(value))
            return wrong(&there, "must be a regular expression");
        capture->name = name;
        capture->regex = oom_regex_new(json_string_value(value), &why);
        if (!capture->regex)
            return wrong(&there, why.text);
        policy->capture_count++;
    }
    return 0;
}

static int parse_guards(struct oom_policy *policy, const struct place *place, const json_t *object,
                        const char *key, struct guard **out, size_t *count)
{
    const json_t *array = json_object_get(object, key);
    struct place here = inside(place, key);
    size_t index;
    const json_t *item;

    if (!array)
        return 0;
    if (!json_is_array(array))
        return wrong(&here, "must be an array, [ ]");
    if (allocate(&here, json_array_size(array), sizeof(**out), out) != 0)
        return -1;
    json_array_foreach((json_t *)array, index, item)
    {
        struct place there = at_index(&here, index);
        struct guard *guard = &(*out)[(*count)++];
        if (check_keys(&there, item, "require why pass_when_unknown") != 0 ||
            get_expr(policy, &there, item, "require", true, &guard->require) != 0 ||
            get_string(&there, item, "why", true, &guard->why) != 0 ||
            get_bool(&there, item, "pass_when_unknown", &guard->pass_when_unknown) != 0)
            return -1;
    }
    return 0;
}

/* --- rungs --------------------------------------------------------------------------------------
 */

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
    struct place here = inside(place, key);

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (strcmp(ranges[i].key, key) == 0)
            return wrong(&here, ranges[i].range);
    return wrong(&here, "is wrong");
}

static int parse_params(const struct place *place, const json_t *object, struct rung_params *params)
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
        return wrong_name(place, "knob", edit->knob, &near);
    }
    if (edit->set_text && knob->choices && !is_choice(knob->choices, edit->set_text))
        return wrong(place, "set: is not one of the knob's choices");
    return 0;
}

static int parse_edit(struct oom_policy *policy, const struct place *place, const json_t *object,
                      struct edit_spec *edit)
{
    const char *move;
    const json_t *set = json_object_get(object, "set");

    if (check_keys(place, object, "knob set to unset when move optional") != 0 ||
        get_string(place, object, "knob", true, &edit->knob) != 0 ||
        get_expr(policy, place, object, "to", false, &edit->to) != 0 ||
        get_expr(policy, place, object, "when", false, &edit->when) != 0 ||
        get_bool(place, object, "unset", &edit->unset) != 0 ||
        get_bool(place, object, "optional", &edit->optional) != 0 ||
        get_string(place, object, "move", false, &move) != 0)
        return -1;
    if (set && literal_text(place, set, &edit->set_text) != 0)
        return -1;
    if ((edit->set_text != NULL) + (edit->to != NULL) + edit->unset != 1)
        return wrong(place, "needs exactly one of \"set\", \"to\" and \"unset\"");
    if (move) {
        if (strcmp(move, "lower") != 0 && strcmp(move, "raise") != 0)
            return wrong(place, "move: must be \"lower\" or \"raise\"");
        edit->move = move[0] == 'l' ? MOVE_LOWER : MOVE_RAISE;
    }
    return check_edit_knob(policy, place, edit);
}

static int parse_edits(struct oom_policy *policy, const struct place *place, const json_t *object,
                       struct rung *rung)
{
    const json_t *array = json_object_get(object, "edits");
    struct place here = inside(place, "edits");
    size_t index;
    const json_t *item;

    if (!json_is_array(array))
        return wrong(&here, "must be an array of edits");
    if (json_array_size(array) == 0 && !rung->restart)
        return wrong(&here, "is empty: a rung must change something");
    if (json_array_size(array) > 0 && rung->restart)
        return wrong(&here, "must be empty: \"restart\" changes nothing");
    if (allocate(&here, json_array_size(array), sizeof(*rung->edits), &rung->edits) != 0)
        return -1;
    json_array_foreach((json_t *)array, index, item)
    {
        struct place there = at_index(&here, index);
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
        return wrong(place, "the name of a rung has at most 60 characters");
    if (check_keys(place, object,
                   "kind about edits guards frees fit restart moves_to changes_training "
                   "cost_source scale factor target least share cost repeat enabled") != 0 ||
        get_string(place, object, "kind", true, &rung->kind) != 0 ||
        check_name(place, "kind", rung->kind, kind_names) != 0 ||
        get_string(place, object, "about", true, &rung->about) != 0 ||
        get_string(place, object, "cost_source", false, &rung->cost_source) != 0 ||
        get_bool(place, object, "changes_training", &rung->changes_training) != 0 ||
        get_bool(place, object, "fit", &rung->fit) != 0 ||
        get_bool(place, object, "restart", &rung->restart) != 0 ||
        get_string(place, object, "moves_to", false, &moves_to) != 0 ||
        parse_params(place, object, &rung->params) != 0 ||
        parse_edits(policy, place, object, rung) != 0 ||
        parse_guards(policy, place, object, "guards", &rung->guards, &rung->guard_count) != 0 ||
        get_expr(policy, place, object, "frees", false, &rung->frees) != 0)
        return -1;
    if (moves_to && oom_domain_parse(moves_to, &rung->moves_to) != 0)
        return wrong(place, "moves_to: is not a domain (gpu, host, shm, kv_cache)");
    if (rung->params.cost >= 0 && !rung->cost_source)
        return wrong(place, "cost: needs \"cost_source\": who measured it");
    return 0;
}

static int parse_rungs(struct oom_policy *policy, const struct place *place)
{
    const json_t *rungs = json_object_get(policy->document, "rungs");
    struct place here = inside(place, "rungs");
    const char *name;
    json_t *object;

    if (!json_is_object(rungs))
        return wrong(&here, "must be an object of rungs");
    if (allocate(&here, json_object_size(rungs), sizeof(*policy->rungs), &policy->rungs) != 0)
        return -1;
    json_object_foreach((json_t *)rungs, name, object)
    {
        struct place there = inside(&here, name);
        if (parse_rung(policy, &there, name, object, &policy->rungs[policy->rung_count++]) != 0)
            return -1;
    }
    return 0;
}

/* --- ladders ------------------------------------------------------------------------------------
 */

static int parse_entry(const struct oom_policy *policy, const struct place *place,
                       const json_t *item, int group, struct ladder_entry *entry)
{
    const char *name = json_string_value(item);
    struct rung_params params = {0};

    entry->group = group;
    if (json_is_object(item)) {
        if (check_keys(place, item, "rung scale factor target least share cost repeat enabled") !=
                0 ||
            get_string(place, item, "rung", true, &name) != 0 ||
            parse_params(place, item, &params) != 0)
            return -1;
        entry->overrides = item;
    }
    if (!name)
        return wrong(place, "must be the name of a rung, or an object with \"rung\"");
    const char *colon = strchr(name, ':');
    if (colon) {
        /* Another policy's rung, "host:more-memory": known only when it is used. */
        entry->policy = name;
        entry->rung = colon + 1;
        return colon == name || !colon[1] ? wrong(place, "must be POLICY:RUNG") : 0;
    }
    entry->rung = name;
    if (policy_rung(policy, name))
        return 0;
    struct near near;
    near_init(&near, name);
    for (size_t i = 0; i < policy->rung_count; i++)
        near_offer(&near, policy->rungs[i].name);
    return wrong_name(place, "rung", name, &near);
}

static size_t entries_in(const json_t *array)
{
    size_t total = 0;
    size_t index;
    const json_t *item;

    json_array_foreach((json_t *)array, index, item) total +=
        json_is_array(item) ? json_array_size(item) : 1;
    return total;
}

static int parse_ladder(const struct oom_policy *policy, const struct place *place,
                        const json_t *array, struct ladder *ladder)
{
    size_t index, inner;
    const json_t *item, *member;

    if (!json_is_array(array))
        return wrong(place, "must be an array of rungs, or the name of another phase");
    if (allocate(place, entries_in(array), sizeof(*ladder->entries), &ladder->entries) != 0)
        return -1;
    json_array_foreach((json_t *)array, index, item)
    {
        struct place there = at_index(place, index);
        if (!json_is_array(item)) {
            if (parse_entry(policy, &there, item, (int)index,
                            &ladder->entries[ladder->entry_count++]) != 0)
                return -1;
            continue;
        }
        json_array_foreach((json_t *)item, inner,
                           member) if (parse_entry(policy, &there, member, (int)index,
                                                   &ladder->entries[ladder->entry_count++]) !=
                                       0) return -1;
    }
    return 0;
}

/* "backward": "forward" means the same ladder. */
static int parse_phases(struct oom_policy *policy, const struct place *place,
                        enum oom_domain domain, const json_t *phases)
{
    const char *name;
    json_t *value;

    if (!json_is_object(phases))
        return wrong(place, "must be an object of phases");
    json_object_foreach((json_t *)phases, name, value)
    {
        struct place there = inside(place, name);
        struct ladder *ladder = &policy->ladders[policy->ladder_count++];
        const json_t *array = value;
        ladder->domain = domain;
        ladder->any_phase = strcmp(name, "any") == 0;
        ladder->before = strcmp(name, "before") == 0;
        if (!ladder->any_phase && !ladder->before && oom_phase_parse(name, &ladder->phase) != 0)
            return wrong(&there, "is not a phase");
        if (json_is_string(value)) {
            array = json_object_get(phases, json_string_value(value));
            if (!json_is_array(array))
                return wrong(&there, "names a phase that has no ladder here");
        }
        if (parse_ladder(policy, &there, array, ladder) != 0)
            return -1;
    }
    return 0;
}

static int parse_ladders(struct oom_policy *policy, const struct place *place)
{
    const json_t *ladders = json_object_get(policy->document, "ladders");
    struct place here = inside(place, "ladders");
    size_t total = 0;
    const char *name;
    json_t *phases;

    if (!json_is_object(ladders))
        return wrong(&here, "must be an object of domains");
    json_object_foreach((json_t *)ladders, name, phases) total += json_object_size(phases);
    if (allocate(&here, total, sizeof(*policy->ladders), &policy->ladders) != 0)
        return -1;
    json_object_foreach((json_t *)ladders, name, phases)
    {
        struct place there = inside(&here, name);
        enum oom_domain domain;
        if (oom_domain_parse(name, &domain) != 0 || domain == OOM_DOMAIN_NONE)
            return wrong(&there, "is not a domain (gpu, host, shm, kv_cache)");
        if (parse_phases(policy, &there, domain, phases) != 0)
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
    struct place here = inside(place, "recognise");

    if (!recognise)
        return 0;
    if (check_keys(&here, recognise,
                   "programs not_programs with_argument without_argument order") != 0 ||
        string_array(&here, recognise, "programs") != 0 ||
        string_array(&here, recognise, "not_programs") != 0 ||
        string_array(&here, recognise, "with_argument") != 0 ||
        string_array(&here, recognise, "without_argument") != 0)
        return -1;
    if (order && !json_is_integer(order))
        return wrong(&here, "order: must be a whole number");
    policy->order = (int)json_integer_value(order);
    return 0;
}

/* Where the framework's configuration file is named; rewrite reads the document itself. */
static int parse_config(const struct oom_policy *policy, const struct place *place)
{
    const json_t *config = json_object_get(policy->document, "config");
    struct place here = inside(place, "config");
    bool positional;

    if (!config)
        return 0;
    return check_keys(&here, config, "flags positional") != 0 ||
                   string_array(&here, config, "flags") != 0 ||
                   get_bool(&here, config, "positional", &positional) != 0
               ? -1
               : 0;
}

static int parse_advice(const struct oom_policy *policy, const struct place *place)
{
    const json_t *advice = json_object_get(policy->document, "advice");
    struct place here = inside(place, "advice");
    const char *name;
    json_t *value;

    if (!advice)
        return 0;
    if (check_keys(&here, advice, "gpu host shm kv_cache") != 0)
        return -1;
    json_object_foreach((json_t *)advice, name,
                        value) if (!json_is_string(value)) return wrong(&here, "must hold texts");
    return 0;
}

static int known_knob(const struct oom_policy *policy, const struct place *place, const char *name)
{
    struct near near;

    if (policy_knob(policy, name))
        return 0;
    near_init(&near, name);
    for (size_t i = 0; i < oom_policy_knob_count(policy); i++)
        near_offer(&near, oom_policy_knob_at(policy, i)->name);
    return wrong_name(place, "knob", name, &near);
}

/* How the framework goes on from a checkpoint: which knob names the directory, what a complete
 * checkpoint has in it, what makes the next attempt load it, and what must not change meanwhile. */
static int parse_resume(const struct oom_policy *policy, const struct place *place)
{
    const json_t *resume = json_object_get(policy->document, "resume");
    struct place here = inside(place, "resume");
    const char *directory, *complete, *load;
    json_t *item;
    size_t i;

    if (!resume)
        return 0;
    if (check_keys(&here, resume, "directory complete load frozen") != 0 ||
        get_string(&here, resume, "directory", true, &directory) != 0 ||
        get_string(&here, resume, "complete", true, &complete) != 0 ||
        get_string(&here, resume, "load", false, &load) != 0 ||
        string_array(&here, resume, "frozen") != 0)
        return -1;
    if (strchr(complete, '/') || strcmp(complete, "..") == 0)
        return wrong(&here, "complete: is a name in the directory, without \"/\"");
    if (known_knob(policy, &here, directory) != 0 || (load && known_knob(policy, &here, load) != 0))
        return -1;
    json_array_foreach(json_object_get(resume, "frozen"), i,
                       item) if (known_knob(policy, &here, json_string_value(item)) != 0) return -1;
    return 0;
}

int policy_parse(struct oom_policy *policy, const char *name, struct oom_error *err)
{
    struct place place = {.document = name, .err = err};
    const char *family, *title;

    if (check_keys(&place, policy->document,
                   "name title family dash_alike recognise config let captures knobs rules rungs "
                   "ladders resume advice sources") != 0 ||
        get_string(&place, policy->document, "name", true, &policy->name) != 0 ||
        get_string(&place, policy->document, "title", true, &title) != 0 ||
        get_string(&place, policy->document, "family", true, &family) != 0 ||
        get_bool(&place, policy->document, "dash_alike", &policy->dash_alike) != 0 ||
        string_array(&place, policy->document, "sources") != 0)
        return -1;
    if (strlen(policy->name) > 31)
        return wrong(&place, "name: has at most 31 characters");
    if (oom_family_parse(family, &policy->family) != 0)
        return wrong(&place,
                     "family: must be argparse, hydra, omegaconf, tyro, hf, axolotl or env");
    if (policy->family == OOM_FAMILY_HF || policy->family == OOM_FAMILY_AXOLOTL ||
        policy->family == OOM_FAMILY_TYRO)
        policy->dash_alike = true;
    if (parse_recognise(policy, &place) != 0 || parse_config(policy, &place) != 0 ||
        parse_advice(policy, &place) != 0 || parse_knobs(policy, &place) != 0 ||
        parse_captures(policy, &place) != 0 || parse_lets(policy, &place) != 0 ||
        parse_bounds(policy, &place) != 0)
        return -1;
    if (parse_guards(policy, &place, policy->document, "rules", &policy->rules,
                     &policy->rule_count) != 0)
        return -1;
    if (parse_rungs(policy, &place) != 0 || parse_resume(policy, &place) != 0)
        return -1;
    return parse_ladders(policy, &place);
}
