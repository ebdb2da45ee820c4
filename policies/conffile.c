/* SPDX-License-Identifier: Apache-2.0
 *
 * A configuration as a flat list: what each path is, after aliases and merges. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "policies/conffile.h"
#include "policies/conftree.h"

#define MAX_ENTRIES     8192
#define MAX_DEPTH       24
#define MAX_VALUE_BYTES 4096
#define MAX_STEPS       32768 /* aliases of aliases can be of any number */

enum oom_config_format oom_config_format_of(const char *path)
{
    const char *dot = strrchr(path, '.');

    if (dot && strcasecmp(dot, ".json") == 0)
        return OOM_CONFIG_JSON;
    return dot && strcasecmp(dot, ".toml") == 0 ? OOM_CONFIG_TOML : OOM_CONFIG_YAML;
}

int oom_config_add(struct oom_config *out, const char *path, const char *value, size_t length,
                   uint32_t line)
{
    if (out->count == MAX_ENTRIES)
        return -1;
    if (length > MAX_VALUE_BYTES || (value && memchr(value, '\0', length)))
        return 0;
    if (out->count == out->capacity) {
        size_t more = out->capacity ? out->capacity * 2 : 64;
        struct oom_conffile_entry *items = realloc(out->items, more * sizeof(*items));
        if (!items)
            return -1;
        out->items = items;
        out->capacity = more;
    }
    struct oom_conffile_entry *entry = &out->items[out->count];
    entry->path = strdup(path);
    entry->value = value ? strndup(value, length) : NULL;
    entry->line = line;
    if (!entry->path || (value && !entry->value)) {
        free(entry->path);
        free(entry->value);
        return -1;
    }
    out->count++;
    return 0;
}

struct flattener {
    const struct conf_tree *tree;
    struct oom_config *out;
    char path[OOM_CONFIG_MAX_PATH];
    size_t steps;
};

static int flatten(struct flattener *f, uint32_t index, size_t at, uint32_t line, int depth);

static int under(struct flattener *f, const char *key, size_t length, uint32_t index, size_t at,
                 int depth)
{
    int n = snprintf(f->path + at, sizeof(f->path) - at, "%s%.*s", at ? "." : "", (int)length, key);

    if (n < 0 || (size_t)n >= sizeof(f->path) - at)
        return 0;
    return flatten(f, index, at + (size_t)n, f->tree->nodes[index].line, depth);
}

/* The settings of `from` that are those of `map`, which is it or merges it. */
static int flatten_map(struct flattener *f, uint32_t map, uint32_t from, size_t at, int depth)
{
    const struct conf_tree *tree = f->tree;
    int rc = 0;

    from = conf_deref(tree, from);
    if (!from || depth > MAX_DEPTH || ++f->steps > MAX_STEPS)
        return from ? -1 : 0;
    for (uint32_t i = tree->nodes[from].kind == CONF_MAP ? tree->nodes[from].first : 0;
         i && rc == 0; i = tree->nodes[i].next) {
        const struct conf_node *key = &tree->nodes[tree->nodes[i].key];
        /* An empty key is in no path. */
        if (key->kind == CONF_SCALAR && key->length && !conf_is_merge(tree, i) &&
            conf_child(tree, map, key->text, key->length, false) == i)
            rc = under(f, key->text, key->length, i, at, depth);
    }
    for (uint32_t i = tree->nodes[from].kind == CONF_MAP ? tree->nodes[from].first : 0;
         i && rc == 0; i = tree->nodes[i].next) {
        uint32_t merged = conf_is_merge(tree, i) ? conf_deref(tree, i) : 0;
        if (merged && tree->nodes[merged].kind == CONF_MAP)
            rc = flatten_map(f, map, merged, at, depth + 1);
        for (uint32_t k =
                 merged && tree->nodes[merged].kind == CONF_LIST ? tree->nodes[merged].first : 0;
             k && rc == 0; k = tree->nodes[k].next)
            rc = flatten_map(f, map, k, at, depth + 1);
    }
    return rc;
}

/* -1 ends the reading; what was read stays. `line` is where the value is set here. */
static int flatten(struct flattener *f, uint32_t index, size_t at, uint32_t line, int depth)
{
    const struct conf_tree *tree = f->tree;
    uint32_t real = conf_deref(tree, index);
    char number[24];
    size_t n = 0;
    int rc = 0;

    if (!real)
        return 0;
    if (depth >= MAX_DEPTH || ++f->steps > MAX_STEPS)
        return -1;
    const struct conf_node *node = &tree->nodes[real];
    if (node->kind == CONF_MAP)
        return flatten_map(f, real, real, at, depth + 1);
    if (node->kind == CONF_SCALAR) {
        f->path[at] = '\0';
        return at ? oom_config_add(f->out, f->path, conf_is_null(node) ? NULL : node->text,
                                   conf_is_null(node) ? 0 : node->length, line)
                  : 0;
    }
    for (uint32_t i = node->first; i && rc == 0; i = tree->nodes[i].next) {
        snprintf(number, sizeof(number), "%zu", n++);
        rc = under(f, number, strlen(number), i, at, depth + 1);
    }
    return rc;
}

int oom_config_flatten(const struct conf_tree *tree, struct oom_config *out)
{
    struct flattener f = {.tree = tree, .out = out};

    memset(out, 0, sizeof(*out));
    return tree->root ? flatten(&f, tree->root, 0, 0, 0) : 0;
}

int oom_config_parse(const char *bytes, size_t length, enum oom_config_format format,
                     struct oom_config *out)
{
    struct conf_tree tree;

    memset(out, 0, sizeof(*out));
    if (format == OOM_CONFIG_TOML) {
        oom_config_read_toml(out, bytes, length);
        return out->count ? 0 : -1;
    }
    /* What is no JSON although it should be is read as the YAML that it nearly is. */
    if (format == OOM_CONFIG_YAML || conf_tree_read(&tree, "", bytes, length, true, NULL) != 0) {
        if (format == OOM_CONFIG_JSON)
            conf_tree_free(&tree);
        conf_tree_read(&tree, "", bytes, length, false, NULL);
    }
    oom_config_flatten(&tree, out);
    conf_tree_free(&tree);
    return out->count ? 0 : -1;
}

void oom_config_free(struct oom_config *config)
{
    for (size_t i = 0; i < config->count; i++) {
        free(config->items[i].path);
        free(config->items[i].value);
    }
    free(config->items);
    memset(config, 0, sizeof(*config));
}

const struct oom_conffile_entry *oom_config_find(const struct oom_config *config, const char *path)
{
    /* the last of two wins, as the loaders have it */
    for (size_t i = config->count; i-- > 0;)
        if (strcmp(config->items[i].path, path) == 0)
            return &config->items[i];
    return NULL;
}
