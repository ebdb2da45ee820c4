/* SPDX-License-Identifier: Apache-2.0
 *
 * One edit after the other, each proved by reading what came of it. */
#include "policies/confedit.h"

#include <stdlib.h>
#include <string.h>

#include "policies/confedit_place.h"
#include "policies/confedit_text.h"

#define MAX_PINS 32

/* A text and what it says. */
struct version {
    char *bytes;
    size_t length;
    struct conf_tree tree;
    struct oom_config config;
    const struct oom_conffile_entry **sorted;
};

static void version_free(struct version *v)
{
    oom_config_free(&v->config);
    conf_tree_free(&v->tree);
    free(v->sorted);
    free(v->bytes);
    memset(v, 0, sizeof(*v));
}

static int by_path(const void *a, const void *b)
{
    const struct oom_conffile_entry *const *x = a, *const *y = b;
    int order = strcmp((*x)->path, (*y)->path);

    return order ? order : (*x > *y) - (*x < *y);
}

/* Takes `bytes` over. */
static int version_read(struct version *v, const char *name, char *bytes, size_t length, bool json,
                        struct oom_error *err)
{
    memset(v, 0, sizeof(*v));
    v->bytes = bytes;
    v->length = length;
    if (conf_tree_read(&v->tree, name, bytes, length, json, err) != 0)
        return -1;
    if (oom_config_flatten(&v->tree, &v->config) != 0)
        return oom_errorf(err, "%s: holds too many settings", name);
    v->sorted = calloc(v->config.count + 1, sizeof(*v->sorted));
    if (!v->sorted)
        return oom_errorf(err, "out of memory");
    for (size_t i = 0; i < v->config.count; i++)
        v->sorted[i] = &v->config.items[i];
    if (v->config.count)
        qsort(v->sorted, v->config.count, sizeof(*v->sorted), by_path);
    return 0;
}

static int compare_starts(const void *a, const void *b)
{
    const struct conf_change *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

/* The text with the changes; NULL when two of them meet, or out of memory. */
static char *apply(const struct version *v, struct conf_changes *changes, size_t *length)
{
    size_t size = v->length + 1, to = 0, at = 0;

    qsort(changes->items, changes->count, sizeof(changes->items[0]), compare_starts);
    for (size_t i = 0; i < changes->count; i++)
        size += strlen(changes->items[i].text);
    char *out = malloc(size);
    for (size_t i = 0; out && i < changes->count; i++) {
        const struct conf_change *change = &changes->items[i];
        if (change->start < at) {
            free(out);
            return NULL;
        }
        memcpy(out + to, v->bytes + at, change->start - at);
        to += change->start - at;
        memcpy(out + to, change->text, strlen(change->text));
        to += strlen(change->text);
        at = change->end;
    }
    if (!out)
        return NULL;
    memcpy(out + to, v->bytes + at, v->length - at);
    to += v->length - at;
    out[to] = '\0';
    *length = to;
    return out;
}

/* The next version: `raw` is the value as it is to be written, or NULL. */
static int change(const struct version *v, const char *name, const struct oom_confedit *edit,
                  const char *raw, struct version *out, struct oom_error *err)
{
    struct conf_changes *changes = calloc(1, sizeof(*changes));
    size_t length = 0;
    int rc = -1;

    memset(out, 0, sizeof(*out));
    if (!changes)
        return oom_errorf(err, "out of memory");
    changes->tree = &v->tree;
    changes->name = name;
    changes->raw = raw;
    changes->err = err;
    if (conf_place(changes, edit) == 0) {
        char *bytes = apply(v, changes, &length);
        rc = bytes ? version_read(out, name, bytes, length, v->tree.json, err)
                   : oom_errorf(err, "%s: %s: two changes meet in one place", name, edit->path);
    }
    for (size_t i = 0; i < changes->count; i++)
        free(changes->items[i].text);
    free(changes);
    return rc;
}

static bool is_under(const char *path, const char *group)
{
    size_t n = strlen(group);

    return strncmp(path, group, n) == 0 && path[n] == '.';
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* What the edit is about, and may therefore differ. */
static bool meant(const struct oom_confedit *edit, const struct oom_conffile_entry *entry)
{
    if (strcmp(entry->path, edit->path) == 0)
        return true;
    if (!edit->value)
        return is_under(entry->path, edit->path);
    return !entry->value && is_under(edit->path, entry->path); /* null that became a group */
}

/* The first setting that differs although it should not: *old is NULL when it is new, *gone when it
 * is not there any more. NULL: all is as it should be. */
static const char *collateral(const struct version *before, const struct version *after,
                              const struct oom_confedit *edit, bool *gone)
{
    size_t i = 0, k = 0;

    *gone = false;
    while (i < before->config.count || k < after->config.count) {
        const struct oom_conffile_entry *old = i < before->config.count ? before->sorted[i] : NULL;
        const struct oom_conffile_entry *new = k < after->config.count ? after->sorted[k] : NULL;
        int order = !old ? 1 : !new ? -1 : strcmp(old->path, new->path);
        const struct oom_conffile_entry *entry = order <= 0 ? old : new;
        bool differs = order != 0 || !same_text(old->value, new->value);
        if (differs && !meant(edit, entry)) {
            *gone = order != 0;
            return entry->path;
        }
        i += order <= 0;
        k += order >= 0;
    }
    return NULL;
}

/* Those that are aliases of what was changed get the old value as their own. */
static int pin_others(const struct version *before, struct version *after, const char *name,
                      const struct oom_confedit *edit, struct oom_error *err)
{
    struct version next;
    bool gone;

    for (int i = 0; i < MAX_PINS; i++) {
        const char *path = collateral(before, after, edit, &gone);
        if (!path)
            return 0;
        uint32_t node = gone ? 0 : conf_at(&before->tree, path);
        if (!node || before->tree.nodes[node].kind != CONF_SCALAR)
            return oom_errorf(err, "%s: %s cannot be changed without changing %s", name, edit->path,
                              path);
        struct oom_confedit pin = {path, before->tree.nodes[node].text, NULL};
        char *raw = conf_scalar_text(&before->tree, &before->tree.nodes[node]);
        int rc =
            raw ? change(after, name, &pin, raw, &next, err) : oom_errorf(err, "out of memory");
        free(raw);
        if (rc != 0) {
            version_free(&next);
            return -1;
        }
        version_free(after);
        *after = next;
    }
    return oom_errorf(err, "%s: too many settings are aliases of %s", name, edit->path);
}

static int prove(const struct version *v, const char *name, const struct oom_confedit *edit,
                 struct oom_error *err)
{
    const struct oom_conffile_entry *entry = oom_config_find(&v->config, edit->path);

    if (edit->value ? entry && oom_confedit_same(entry->value, edit->value) : !entry)
        return 0;
    return oom_errorf(err, "%s: %s would not become %s", name, edit->path,
                      edit->value ? edit->value : "absent");
}

/* `v` becomes the version in which the edit holds. */
static int edit_version(struct version *v, const char *name, const struct oom_confedit *edit,
                        struct oom_error *err)
{
    struct version after = {0};

    if (!*edit->path || strlen(edit->path) >= OOM_CONFIG_MAX_PATH)
        return oom_errorf(err, "%s: \"%.80s\" is no path of a setting", name, edit->path);
    int rc = change(v, name, edit, NULL, &after, err);
    if (rc == 0 && !same_text(v->bytes, after.bytes))
        rc = pin_others(v, &after, name, edit, err);
    if (rc == 0)
        rc = prove(&after, name, edit, err);
    if (rc != 0) {
        version_free(&after);
        return -1;
    }
    version_free(v);
    *v = after;
    return 0;
}

/* YAML takes a lone CR for a line end, which nothing else here does. */
static bool odd_line_ends(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (bytes[i] == '\r' && (i + 1 == length || bytes[i + 1] != '\n'))
            return true;
    return false;
}

int oom_confedit_apply(const char *name, const char *bytes, size_t length,
                       enum oom_config_format format, const struct oom_confedit *edits,
                       size_t count, char **out, size_t *out_length, struct oom_error *err)
{
    struct version v;

    *out = NULL;
    if (format == OOM_CONFIG_TOML)
        return oom_errorf(err, "%s: settings in TOML files are not changed", name);
    if (odd_line_ends(bytes, length))
        return oom_errorf(err, "%s: holds a carriage return within a line", name);
    char *copy = malloc(length + 1);
    if (!copy)
        return oom_errorf(err, "out of memory");
    memcpy(copy, bytes, length);
    copy[length] = '\0';
    int rc = version_read(&v, name, copy, length, format == OOM_CONFIG_JSON, err);
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = edit_version(&v, name, &edits[i], err);
    if (rc == 0) {
        *out = v.bytes;
        *out_length = v.length;
        v.bytes = NULL;
    }
    version_free(&v);
    return rc;
}
