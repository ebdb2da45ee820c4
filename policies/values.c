/* SPDX-License-Identifier: Apache-2.0 */
#include "oomretry/values.h"

#include <stdlib.h>
#include <string.h>

#include "policies/jsontext.h"

static const char *const source_names[] = {
    [OOM_SOURCE_DEFAULT] = "default",     [OOM_SOURCE_SCRIPT] = "script",
    [OOM_SOURCE_CONFIG] = "config",       [OOM_SOURCE_ENV] = "env",
    [OOM_SOURCE_ARGV] = "argv",           [OOM_SOURCE_LOG] = "log",
    [OOM_SOURCE_SCHEDULER] = "scheduler",
};
#define SOURCE_COUNT (sizeof(source_names) / sizeof(source_names[0]))

const char *oom_source_name(enum oom_source source)
{
    return (size_t)source < SOURCE_COUNT ? source_names[source] : "default";
}

static int source_parse(const char *name, enum oom_source *out)
{
    for (size_t i = 0; i < SOURCE_COUNT; i++) {
        if (strcmp(source_names[i], name) == 0) {
            *out = (enum oom_source)i;
            return 0;
        }
    }
    return -1;
}

/* Puts a copy of `text` (NULL stays NULL) where *slot is; nothing changes on failure. */
static int replace(char **slot, const char *text)
{
    char *copy = text ? strdup(text) : NULL;

    if (text && !copy)
        return -1;
    free(*slot);
    *slot = copy;
    return 0;
}

/* Room for one more item of `size` bytes; capacity is the next power of two, so it need not be
 * kept anywhere. */
static void *grow(void *items, size_t count, size_t size)
{
    if (count && (count & (count - 1)))
        return items;
    return reallocarray(items, count ? count * 2 : 1, size);
}

static void value_free(struct oom_value *value)
{
    free(value->knob);
    free(value->value);
    free(value->where);
}

void oom_values_free(struct oom_values *values)
{
    if (!values)
        return;
    for (size_t i = 0; i < values->count; i++)
        value_free(&values->items[i]);
    free(values->items);
    values->items = NULL;
    values->count = 0;
}

const struct oom_value *oom_values_find(const struct oom_values *values, const char *knob)
{
    for (size_t i = 0; i < values->count; i++)
        if (strcmp(values->items[i].knob, knob) == 0)
            return &values->items[i];
    return NULL;
}

const char *oom_values_get(const struct oom_values *values, const char *knob)
{
    const struct oom_value *value = oom_values_find(values, knob);

    return value ? value->value : NULL;
}

int oom_values_set(struct oom_values *values, const char *knob, const char *value,
                   enum oom_source source, const char *where)
{
    struct oom_value fresh = {.source = source};

    if (replace(&fresh.knob, knob) || replace(&fresh.value, value) || replace(&fresh.where, where))
        goto fail;
    for (size_t i = 0; i < values->count; i++) {
        if (strcmp(values->items[i].knob, knob) == 0) {
            value_free(&values->items[i]);
            values->items[i] = fresh;
            return 0;
        }
    }
    struct oom_value *items = grow(values->items, values->count, sizeof(*items));
    if (!items)
        goto fail;
    values->items = items;
    values->items[values->count++] = fresh;
    return 0;
fail:
    value_free(&fresh);
    return -1;
}

/* A string or null under `name`; absent is null. -1 for another type. */
static int optional_string(const json_t *object, const char *name, const char **out)
{
    const json_t *member = json_object_get(object, name);

    *out = NULL;
    if (!member || json_is_null(member))
        return 0;
    *out = json_string_value(member);
    return *out ? 0 : -1;
}

static json_t *string_or_null(const char *text)
{
    return text ? oom_json_text(text) : json_null();
}

int oom_values_fill(struct oom_values *values, const struct oom_values *found,
                    enum oom_source source)
{
    for (size_t i = 0; i < found->count; i++) {
        const struct oom_value *item = &found->items[i];
        const struct oom_value *have = oom_values_find(values, item->knob);
        bool known = have && have->value && have->source != OOM_SOURCE_DEFAULT &&
                     !strpbrk(have->value, "$`");
        if (!item->value || item->source == OOM_SOURCE_DEFAULT || known)
            continue;
        if (oom_values_set(values, item->knob, item->value, source, item->where) != 0)
            return -1;
    }
    return 0;
}

json_t *oom_values_to_json(const struct oom_values *values)
{
    json_t *all = json_object();

    for (size_t i = 0; all && i < values->count; i++) {
        const struct oom_value *value = &values->items[i];
        json_t *one = json_object();
        int rc = json_object_set_new(one, "value", string_or_null(value->value)) |
                 json_object_set_new(one, "source", json_string(oom_source_name(value->source)));
        if (value->where)
            rc |= json_object_set_new(one, "where", string_or_null(value->where));
        json_t *key = string_or_null(value->knob);
        if (!key) {
            json_decref(one);
            rc = -1;
        } else {
            rc |= json_object_set_new(all, json_string_value(key), one);
        }
        json_decref(key);
        if (rc) {
            json_decref(all);
            all = NULL;
        }
    }
    return all;
}

int oom_values_from_json(const json_t *json, struct oom_values *out)
{
    struct oom_values values = {0};
    const char *knob;
    json_t *one;

    if (!json_is_object(json))
        return -1;
    json_object_foreach((json_t *)json, knob, one)
    {
        const char *value, *where, *source_text;
        enum oom_source source = OOM_SOURCE_DEFAULT;
        if (!json_is_object(one) || optional_string(one, "value", &value) ||
            optional_string(one, "where", &where) || optional_string(one, "source", &source_text) ||
            (source_text && source_parse(source_text, &source)) ||
            oom_values_set(&values, knob, value, source, where)) {
            oom_values_free(&values);
            return -1;
        }
    }
    *out = values;
    return 0;
}

static void edit_free(struct oom_edit *edit)
{
    free(edit->knob);
    free(edit->old_value);
    free(edit->new_value);
    free(edit->where);
}

void oom_edits_free(struct oom_edits *edits)
{
    if (!edits)
        return;
    for (size_t i = 0; i < edits->count; i++)
        edit_free(&edits->items[i]);
    free(edits->items);
    edits->items = NULL;
    edits->count = 0;
}

int oom_edits_add(struct oom_edits *edits, const char *knob, const char *old_value,
                  const char *new_value, const char *where)
{
    struct oom_edit fresh = {0};

    for (size_t i = 0; i < edits->count; i++) {
        struct oom_edit *edit = &edits->items[i];
        if (strcmp(edit->knob, knob) == 0) {
            char *copy = NULL;
            if (where && replace(&copy, where))
                return -1;
            if (replace(&edit->new_value, new_value)) {
                free(copy);
                return -1;
            }
            if (copy) {
                free(edit->where);
                edit->where = copy;
            }
            return 0;
        }
    }
    struct oom_edit *items = grow(edits->items, edits->count, sizeof(*items));
    if (!items)
        return -1;
    edits->items = items;
    if (replace(&fresh.knob, knob) || replace(&fresh.old_value, old_value) ||
        replace(&fresh.new_value, new_value) || replace(&fresh.where, where)) {
        edit_free(&fresh);
        return -1;
    }
    edits->items[edits->count++] = fresh;
    return 0;
}

int oom_edits_append(struct oom_edits *edits, const struct oom_edits *from)
{
    for (size_t i = 0; i < from->count; i++)
        if (oom_edits_add(edits, from->items[i].knob, from->items[i].old_value,
                          from->items[i].new_value, from->items[i].where) < 0)
            return -1;
    return 0;
}

void oom_edits_drop_unchanged(struct oom_edits *edits)
{
    size_t kept = 0;

    for (size_t i = 0; i < edits->count; i++) {
        struct oom_edit *edit = &edits->items[i];
        bool same = edit->old_value && edit->new_value
                        ? strcmp(edit->old_value, edit->new_value) == 0
                        : edit->old_value == edit->new_value;
        if (same)
            edit_free(edit);
        else
            edits->items[kept++] = *edit;
    }
    edits->count = kept;
}

json_t *oom_edits_to_json(const struct oom_edits *edits)
{
    json_t *all = json_array();

    for (size_t i = 0; all && i < edits->count; i++) {
        const struct oom_edit *edit = &edits->items[i];
        json_t *one = json_object();
        int rc = json_object_set_new(one, "knob", string_or_null(edit->knob)) |
                 json_object_set_new(one, "old", string_or_null(edit->old_value)) |
                 json_object_set_new(one, "new", string_or_null(edit->new_value)) |
                 json_object_set_new(one, "where", string_or_null(edit->where));
        if (rc) {
            json_decref(one);
        } else {
            rc = json_array_append_new(all, one);
        }
        if (rc) {
            json_decref(all);
            all = NULL;
        }
    }
    return all;
}

int oom_edits_from_json(const json_t *json, struct oom_edits *out)
{
    struct oom_edits edits = {0};
    size_t i;
    json_t *one;

    if (!json_is_array(json))
        return -1;
    json_array_foreach((json_t *)json, i, one)
    {
        const char *knob, *old_value, *new_value, *where;
        if (!json_is_object(one) || optional_string(one, "knob", &knob) || !knob ||
            optional_string(one, "old", &old_value) || optional_string(one, "new", &new_value) ||
            optional_string(one, "where", &where) ||
            oom_edits_add(&edits, knob, old_value, new_value, where)) {
            oom_edits_free(&edits);
            return -1;
        }
    }
    *out = edits;
    return 0;
}
