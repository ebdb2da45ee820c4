/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/policy_edit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oomretry/incident.h"
#include "policies/near.h"

#define MAX_PART   128
#define LINE_WIDTH 98
#define TOP_LEVELS 2 /* of objects: always one member a line */

/* The path's first part; *rest is behind its dot, NULL when it was the last. */
static int first_part(const char *path, char *part, const char **rest, struct oom_error *err)
{
    size_t length = strcspn(path, ".");

    if (length == 0 || length >= MAX_PART)
        return oom_errorf(err, "\"%.100s\" is no path such as forward.fewer-tokens.scale", path);
    memcpy(part, path, length);
    part[length] = '\0';
    *rest = path[length] ? path + length + 1 : NULL;
    return 0;
}

json_t *policy_edit_value(const char *text)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    return value ? value : json_string(text);
}

static int missing(const json_t *object, const char *what, const char *name, struct oom_error *err)
{
    struct near near;
    const char *key;
    json_t *value;

    near_init(&near, name);
    json_object_foreach((json_t *)object, key, value) near_offer(&near, key);
    if (near.best)
        return oom_errorf(err, "there is no %s \"%s\" (did you mean \"%s\"?)", what, name,
                          near.best);
    return oom_errorf(err, "there is no %s \"%s\"", what, name);
}

static int set_member(json_t *object, const char *key, json_t *value, struct oom_error *err)
{
    if (json_object_set(object, key, value) != 0)
        return oom_errorf(err, "out of memory");
    return 0;
}

/* "rungs.NAME.KEY" and "knobs.NAME.KEY": names of knobs may have dots, keys have none. */
static int set_named(json_t *document, const char *section, const char *path, json_t *value,
                     struct oom_error *err)
{
    char name[2 * MAX_PART];
    json_t *objects = json_object_get(document, section);
    const char *dot = path ? strrchr(path, '.') : NULL;

    if (!dot || !dot[1] || (size_t)(dot - path) >= sizeof(name))
        return oom_errorf(err, "the path must be %s.NAME.KEY", section);
    snprintf(name, sizeof(name), "%.*s", (int)(dot - path), path);
    json_t *object = json_object_get(objects, name);
    if (!json_is_object(object))
        return missing(objects, strcmp(section, "rungs") == 0 ? "rung" : "knob", name, err);
    return set_member(object, dot + 1, value, err);
}

/* "resume.KEY" and "own_restarts.KEY". */
static int set_in_section(json_t *document, const char *section, const char *key, json_t *value,
                          struct oom_error *err)
{
    json_t *object = json_object_get(document, section);

    if (!json_is_object(object))
        return missing(document, "section", section, err);
    if (!key || !*key)
        return oom_errorf(err, "the path must be %s.KEY", section);
    return set_member(object, key, value, err);
}

/* The ladder of this phase alone: a reference to another phase becomes a copy of it. */
static json_t *own_ladder(json_t *phases, const char *phase, struct oom_error *err)
{
    json_t *ladder = json_object_get(phases, phase);

    if (json_is_string(ladder)) {
        ladder = json_deep_copy(json_object_get(phases, json_string_value(ladder)));
        json_object_set_new(phases, phase, ladder);
    }
    if (!json_is_array(ladder)) {
        missing(phases, "ladder for phase", phase, err);
        return NULL;
    }
    return ladder;
}

static const char *entry_name(const json_t *entry)
{
    const json_t *name = json_is_object(entry) ? json_object_get(entry, "rung") : entry;
    return json_string_value(name);
}

/* 1: set, 0: the rung is not here, -1: err. */
static int set_entry(json_t *ladder, const char *rung, const char *key, json_t *value,
                     struct oom_error *err)
{
    size_t index;
    json_t *entry;

    json_array_foreach(ladder, index, entry)
    {
        if (json_is_array(entry)) {
            int rc = set_entry(entry, rung, key, value, err);
            if (rc != 0)
                return rc;
            continue;
        }
        const char *name = entry_name(entry);
        if (!name || strcmp(name, rung) != 0)
            continue;
        if (json_is_string(entry)) {
            json_t *object = json_pack("{s:s}", "rung", rung);
            if (!object || json_array_set_new(ladder, index, object) != 0)
                return oom_errorf(err, "out of memory");
            entry = object;
        }
        return set_member(entry, key, value, err) == 0 ? 1 : -1;
    }
    return 0;
}

static int set_on_ladder(json_t *document, const char *domain, const char *path, json_t *value,
                         struct oom_error *err)
{
    char phase[MAX_PART], rung[MAX_PART];
    const char *rest, *key;
    json_t *phases = json_object_get(json_object_get(document, "ladders"), domain);

    if (!json_is_object(phases))
        return oom_errorf(err, "this policy has no ladders for %s", domain);
    if (!path || first_part(path, phase, &rest, err) != 0 || !rest ||
        first_part(rest, rung, &key, err) != 0 || !key || strchr(key, '.'))
        return oom_errorf(err, "the path must be [DOMAIN.]PHASE.RUNG.KEY, rungs.RUNG.KEY, "
                               "knobs.KNOB.KEY, resume.KEY or own_restarts.KEY");
    json_t *ladder = own_ladder(phases, phase, err);
    if (!ladder)
        return -1;
    int rc = set_entry(ladder, rung, key, value, err);
    if (rc != 0)
        return rc < 0 ? -1 : 0;
    if (json_object_get(json_object_get(document, "rungs"), rung))
        return oom_errorf(err, "rung \"%s\" is not on the ladder %s %s", rung, domain, phase);
    return missing(json_object_get(document, "rungs"), "rung", rung, err);
}

/* Values of the policy as a whole; its other keys hold too much for one line. */
static int set_whole(json_t *document, const char *key, json_t *value, struct oom_error *err)
{
    static const char *const keys[] = {"max_retries", "consent", NULL};
    struct near near;

    near_init(&near, key);
    for (const char *const *known = keys; *known; known++) {
        if (strcmp(*known, key) == 0)
            return set_member(document, key, value, err);
        near_offer(&near, *known);
    }
    if (near.best)
        return oom_errorf(err, "there is no value \"%s\" (did you mean \"%s\"?)", key, near.best);
    return oom_errorf(err,
                      "\"%s\" is no path such as forward.fewer-tokens.scale, and none of the whole "
                      "policy's max_retries and consent",
                      key);
}

int policy_edit_put(json_t *document, const char *path, json_t *value, struct oom_error *err)
{
    char part[MAX_PART];
    const char *rest;
    enum oom_domain domain;

    if (first_part(path, part, &rest, err) != 0)
        return -1;
    if (!rest)
        return set_whole(document, part, value, err);
    if (strcmp(part, "rungs") == 0 || strcmp(part, "knobs") == 0)
        return set_named(document, part, rest, value, err);
    if (strcmp(part, "resume") == 0 || strcmp(part, "own_restarts") == 0)
        return set_in_section(document, part, rest, value, err);
    if (oom_domain_parse(part, &domain) == 0 && domain != OOM_DOMAIN_NONE)
        return set_on_ladder(document, part, rest, value, err);
    return set_on_ladder(document, "gpu", path, value, err);
}

/* --- text ---------------------------------------------------------------------------------------
 */

struct text {
    char *bytes;
    size_t length, room;
    int failed;
};

static void append(struct text *text, const char *bytes, size_t length)
{
    if (text->failed)
        return;
    if (text->length + length + 1 > text->room) {
        size_t room = 2 * (text->length + length) + 256;
        char *grown = realloc(text->bytes, room);
        if (!grown) {
            text->failed = 1;
            return;
        }
        text->bytes = grown;
        text->room = room;
    }
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

static void append_text(struct text *text, const char *bytes)
{
    append(text, bytes, strlen(bytes));
}

static void new_line(struct text *text, int depth)
{
    append_text(text, "\n");
    for (int i = 0; i < depth; i++)
        append_text(text, "  ");
}

static void append_value(struct text *text, const json_t *value, int depth, size_t used);

static void append_object(struct text *text, const json_t *object, int depth)
{
    const char *key;
    json_t *value;
    const char *between = "";

    append_text(text, "{");
    json_object_foreach((json_t *)object, key, value)
    {
        json_t *name = json_string(key);
        char *quoted = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
        append_text(text, between);
        new_line(text, depth + 1);
        append_text(text, quoted ? quoted : "\"\"");
        append_text(text, ": ");
        append_value(text, value, depth + 1, 2 * (size_t)(depth + 1) + strlen(key) + 4);
        free(quoted);
        json_decref(name);
        between = ",";
    }
    new_line(text, depth);
    append_text(text, "}");
}

static void append_array(struct text *text, const json_t *array, int depth)
{
    size_t index;
    json_t *value;

    append_text(text, "[");
    json_array_foreach((json_t *)array, index, value)
    {
        if (index > 0)
            append_text(text, ",");
        new_line(text, depth + 1);
        append_value(text, value, depth + 1, 2 * (size_t)(depth + 1));
    }
    new_line(text, depth);
    append_text(text, "]");
}

static void append_value(struct text *text, const json_t *value, int depth, size_t used)
{
    char *line = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(10));

    if (!line) {
        text->failed = 1;
        return;
    }
    bool broken = used + strlen(line) > LINE_WIDTH;
    if (json_is_object(value) && json_object_size(value) > 0 && (broken || depth < TOP_LEVELS))
        append_object(text, value, depth);
    else if (json_is_array(value) && json_array_size(value) > 0 && broken)
        append_array(text, value, depth);
    else
        append_text(text, line);
    free(line);
}

char *policy_edit_text(const json_t *document)
{
    struct text text = {0};

    append_value(&text, document, 0, 0);
    append_text(&text, "\n");
    if (!text.failed)
        return text.bytes;
    free(text.bytes);
    return NULL;
}
