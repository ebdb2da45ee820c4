/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/policy_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ITEMS 400

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
    "package.liger_kernel",
    NULL,
};

const char *const policy_param_names[] = {"scale", "factor", "target",  "least", "share",
                                          "cost",  "repeat", "enabled", NULL};

struct place read_inside(const struct place *outer, const char *key)
{
    struct place place = *outer;
    size_t used = strlen(place.path);

    snprintf(place.path + used, sizeof(place.path) - used, "%s%s", used ? "." : "", key);
    return place;
}

struct place read_at(const struct place *outer, size_t index)
{
    struct place place = *outer;
    size_t used = strlen(place.path);

    snprintf(place.path + used, sizeof(place.path) - used, "[%zu]", index);
    return place;
}

int read_wrong(const struct place *place, const char *what)
{
    return oom_errorf(place->err, "%s: %s%s%s", place->document, place->path,
                      place->path[0] ? ": " : "", what);
}

/* "unknown WHAT "NAME" (did you mean "BEST"?)" */
int read_wrong_name(const struct place *place, const char *what, const char *name,
                    const struct near *near)
{
    char text[512];

    if (near->best)
        snprintf(text, sizeof(text), "unknown %s \"%.100s\" (did you mean \"%.100s\"?)", what, name,
                 near->best);
    else
        snprintf(text, sizeof(text), "unknown %s \"%.100s\"", what, name);
    return read_wrong(place, text);
}

int read_check_name(const struct place *place, const char *what, const char *name,
                    const char *const *known)
{
    struct near near;

    near_init(&near, name);
    for (const char *const *k = known; *k; k++) {
        if (strcmp(*k, name) == 0)
            return 0;
        near_offer(&near, *k);
    }
    return read_wrong_name(place, what, name, &near);
}

/* `keys` are separated by spaces. */
int read_check_keys(const struct place *place, const json_t *object, const char *keys)
{
    char copy[512];
    const char *known[64];
    size_t count = 0;
    const char *key;
    json_t *value;

    if (!json_is_object(object))
        return read_wrong(place, "must be an object, { }");
    snprintf(copy, sizeof(copy), "%s", keys);
    char *rest = copy;
    for (char *word; (word = strsep(&rest, " "));)
        if (*word && count + 1 < sizeof(known) / sizeof(known[0]))
            known[count++] = word;
    known[count] = NULL;
    json_object_foreach((json_t *)object, key,
                        value) if (read_check_name(place, "key", key, known) != 0) return -1;
    return 0;
}

int read_string(const struct place *place, const json_t *object, const char *key, bool required,
                const char **out)
{
    const json_t *value = json_object_get(object, key);
    struct place here = read_inside(place, key);

    *out = NULL;
    if (!value)
        return required ? read_wrong(&here, "is missing") : 0;
    if (!json_is_string(value) || json_string_length(value) == 0)
        return read_wrong(&here, "must be text");
    *out = json_string_value(value);
    return 0;
}

int read_bool(const struct place *place, const json_t *object, const char *key, bool *out)
{
    const json_t *value = json_object_get(object, key);
    struct place here = read_inside(place, key);

    if (!value)
        return 0;
    if (!json_is_boolean(value))
        return read_wrong(&here, "must be true or false");
    *out = json_is_true(value);
    return 0;
}

/* A literal as the command line spells it. NULL: null. */
int read_literal(const struct place *place, const json_t *value, char **out)
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
        return read_wrong(place, "must be text, a number, true, false or null");
    if (json_is_number(value))
        *out = strdup(text);
    return *out ? 0 : read_wrong(place, "out of memory");
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
    return read_wrong(check->place, text);
}

/* An expression, written as text or as a plain number or boolean. */
int read_expr(const struct oom_policy *policy, const struct place *place, const json_t *object,
              const char *key, bool required, struct oom_expr **out)
{
    const json_t *value = json_object_get(object, key);
    struct place here = read_inside(place, key);
    struct name_check check = {policy, &here, NULL};
    struct oom_error why;
    char *text;

    *out = NULL;
    if (!value)
        return required ? read_wrong(&here, "is missing") : 0;
    if (json_is_null(value))
        return read_wrong(&here, "must be an expression");
    if (read_literal(&here, value, &text) != 0)
        return -1;
    *out = oom_expr_parse(text, &why);
    free(text);
    if (!*out)
        return read_wrong(&here, why.text);
    check.text = oom_expr_text(*out);
    if (oom_expr_names(*out, check_expr_name, &check) != 0) {
        oom_expr_free(*out);
        *out = NULL;
        return -1;
    }
    return 0;
}

int read_strings(const struct place *place, const json_t *object, const char *key)
{
    const json_t *array = json_object_get(object, key);
    struct place here = read_inside(place, key);
    size_t index;
    const json_t *item;

    if (!array)
        return 0;
    if (!json_is_array(array) || json_array_size(array) > MAX_ITEMS)
        return read_wrong(&here, "must be an array of texts");
    json_array_foreach((json_t *)array, index, item) if (!json_is_string(item)) return read_wrong(
        &here, "must be an array of texts");
    return 0;
}

/* Room for `count` things of an object or array. */
int read_room(const struct place *place, size_t count, size_t size, void *out)
{
    void *room;

    if (count > MAX_ITEMS)
        return read_wrong(place, "has too many entries");
    room = calloc(count ? count : 1, size);
    if (!room)
        return read_wrong(place, "out of memory");
    memcpy(out, &room, sizeof(room));
    /* cppcheck-suppress memleak ; handed over through `out` */
    return 0;
}
