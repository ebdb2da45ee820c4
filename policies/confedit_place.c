/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "policies/confedit_place.h"
#include "policies/confedit_text.h"

int conf_change(struct conf_changes *changes, uint32_t start, uint32_t end, char *text)
{
    if (!text || changes->count == CONF_MAX_CHANGES) {
        free(text);
        return oom_errorf(changes->err, "%s: %s", changes->name,
                          text ? "too many places" : "out of memory");
    }
    changes->items[changes->count++] = (struct conf_change){start, end, text};
    return 0;
}

int conf_refuse(const struct conf_changes *changes, uint32_t node, const char *path,
                const char *why)
{
    return oom_errorf(changes->err, "%s:%u: %s: %s", changes->name,
                      node ? changes->tree->nodes[node].line : 1, path, why);
}

uint32_t conf_pair_end(const struct conf_tree *tree, uint32_t value)
{
    const struct conf_node *node = &tree->nodes[value];

    if (node->end > node->from || !node->key)
        return node->end;
    uint32_t colon = conf_behind_colon(tree, value);
    return colon ? colon : tree->nodes[node->key].end;
}

uint32_t conf_behind_colon(const struct conf_tree *tree, uint32_t value)
{
    uint32_t at = tree->nodes[tree->nodes[value].key].end;

    while (at < tree->length && strchr(tree->json ? " \t\r\n" : " \t", tree->bytes[at]))
        at++;
    return at < tree->length && tree->bytes[at] == ':' ? at + 1 : 0;
}

uint32_t conf_line_end(const struct conf_tree *tree, uint32_t at)
{
    const char *newline =
        at < tree->length ? memchr(tree->bytes + at, '\n', tree->length - at) : NULL;

    return newline ? (uint32_t)(newline - tree->bytes) + 1 : tree->length;
}

static uint32_t line_start(const struct conf_tree *tree, uint32_t at)
{
    while (at > 0 && tree->bytes[at - 1] != '\n')
        at--;
    return at;
}

static const char *line_break(const struct conf_tree *tree)
{
    const char *newline = tree->length ? memchr(tree->bytes, '\n', tree->length) : NULL;

    return newline && newline > tree->bytes && newline[-1] == '\r' ? "\r\n" : "\n";
}

static uint32_t column(const struct conf_tree *tree, uint32_t at)
{
    return at - line_start(tree, at);
}

/* How far the file moves what is under a key to the right. */
static uint32_t step_width(const struct conf_tree *tree)
{
    for (size_t i = 1; i < tree->count; i++) {
        const struct conf_node *node = &tree->nodes[i];
        if (node->kind != CONF_MAP || node->style || !node->key || !node->first)
            continue;
        uint32_t inner = column(tree, tree->nodes[tree->nodes[node->first].key].from);
        uint32_t outer = column(tree, tree->nodes[node->key].from);
        if (inner > outer && inner - outer <= 8)
            return inner - outer;
    }
    return 2;
}

/* "a:\n  b:\n    c: VALUE" for the path "a.b.c", its first key at `indent`. */
static char *nested_block(const struct conf_tree *tree, const char *path, const char *value,
                          uint32_t indent, bool quoted)
{
    size_t length = strcspn(path, ".");
    char *key = conf_key_text(tree, path, length, quoted), *out = NULL;

    if (key && !path[length]) {
        out = conf_printf("%*s%s: %s", (int)indent, "", key, value);
    } else if (key) {
        char *inner =
            nested_block(tree, path + length + 1, value, indent + step_width(tree), quoted);
        if (inner)
            out = conf_printf("%*s%s:%s%s", (int)indent, "", key, line_break(tree), inner);
        free(inner);
    }
    free(key);
    return out;
}

/* The same in JSON of several lines: "a": {\n    "b": VALUE\n  }; without the first indentation. */
static char *nested_json(const struct conf_tree *tree, const char *path, const char *value,
                         const char *colon, uint32_t indent, uint32_t step)
{
    size_t length = strcspn(path, ".");
    char *key = conf_key_text(tree, path, length, true), *out = NULL;

    if (key && !path[length]) {
        out = conf_printf("%s%s%s", key, colon, value);
    } else if (key) {
        char *inner = nested_json(tree, path + length + 1, value, colon, indent + step, step);
        if (inner)
            out = conf_printf("%s%s{%s%*s%s%s%*s}", key, colon, line_break(tree),
                              (int)(indent + step), "", inner, line_break(tree), (int)indent, "");
        free(inner);
    }
    free(key);
    return out;
}

/* A line of its own behind the pair that ends at `after`. */
static int add_line(struct conf_changes *changes, uint32_t after, char *lines)
{
    const struct conf_tree *tree = changes->tree;
    uint32_t at = after > 0 && after == tree->length ? after : conf_line_end(tree, after);
    char *text = NULL;

    /* A block scalar ends where the next line begins. */
    if (after > 0 && tree->bytes[after - 1] == '\n')
        at = after;
    if (lines && at > 0 && tree->bytes[at - 1] != '\n')
        text = conf_printf("%s%s", line_break(tree), lines);
    else if (lines)
        text = conf_printf("%s%s", lines, line_break(tree));
    free(lines);
    return conf_change(changes, at, at, text);
}

static bool quoted_key(const struct conf_tree *tree, uint32_t map)
{
    uint32_t last = tree->nodes[map].last;

    return tree->json || (last && tree->nodes[tree->nodes[last].key].style);
}

/* What stands between a map's keys and values: ": " or ":". */
static char *colon_of(const struct conf_tree *tree, uint32_t map)
{
    uint32_t last = tree->nodes[map].last;
    const struct conf_node *value = &tree->nodes[last];

    if (last && tree->nodes[value->key].style && value->end > value->from) {
        uint32_t from = tree->nodes[value->key].end;
        if (value->from > from && value->from - from < 16 &&
            !memchr(tree->bytes + from, '\n', value->from - from) &&
            memchr(tree->bytes + from, ':', value->from - from))
            return strndup(tree->bytes + from, value->from - from);
    }
    return strdup(": ");
}

static int add_flow(struct conf_changes *changes, uint32_t map, const char *path, const char *value)
{
    const struct conf_tree *tree = changes->tree;
    const struct conf_node *node = &tree->nodes[map];
    uint32_t first_key = node->first ? tree->nodes[tree->nodes[node->first].key].from : 0;
    size_t length = strcspn(path, ".");
    bool quoted = quoted_key(tree, map);
    char *colon = colon_of(tree, map), *text = NULL;

    if (!colon)
        return conf_change(changes, 0, 0, NULL);
    bool lines = node->first && memchr(tree->bytes + node->start, '\n', first_key - node->start);
    if (lines && quoted) {
        uint32_t indent = column(tree, first_key), outer = line_start(tree, node->start);
        uint32_t margin = outer + (uint32_t)strspn(tree->bytes + outer, " \t");
        uint32_t step = indent > margin - outer ? indent - (margin - outer) : 2;
        char *pair = nested_json(tree, path, value, colon, indent, step);
        if (pair)
            text = conf_printf(",%s%.*s%s", line_break(tree), (int)indent,
                               tree->bytes + line_start(tree, first_key), pair);
        free(pair);
    } else {
        char *key = conf_key_text(tree, path, length, quoted);
        char *inner =
            conf_nested_flow(tree, path[length] ? path + length + 1 : path + length, value, quoted);
        bool tight = colon[strlen(colon) - 1] == ':';
        if (key && inner && lines)
            text = conf_printf(",%s%.*s%s%s%s", line_break(tree), (int)column(tree, first_key),
                               tree->bytes + line_start(tree, first_key), key, colon, inner);
        else if (key && inner)
            text = conf_printf("%s%s%s%s",
                               !node->first ? ""
                               : tight      ? ","
                                            : ", ",
                               key, colon, inner);
        free(key);
        free(inner);
    }
    free(colon);
    uint32_t at = node->last ? conf_pair_end(tree, node->last) : node->start + 1;
    return conf_change(changes, at, at, text);
}

/* A path of which some key is empty. */
static bool has_gap(const char *path)
{
    return !*path || *path == '.' || path[strlen(path) - 1] == '.' || strstr(path, "..");
}

/* `value` is text as it is to stand in the file. */
static int add_pair(struct conf_changes *changes, uint32_t map, const char *path, const char *value)
{
    const struct conf_tree *tree = changes->tree;
    const struct conf_node *node = &tree->nodes[map];

    if (node->style == '{')
        return add_flow(changes, map, path, value);
    if (!node->first)
        return conf_refuse(changes, map, path, "its group cannot be read");
    const struct conf_node *key = &tree->nodes[tree->nodes[node->first].key];
    if (!conf_behind_colon(tree, node->last))
        return conf_refuse(changes, node->last, path,
                           "the key before it is not written as \"key: value\"");
    return add_line(
        changes, conf_pair_end(tree, node->last),
        nested_block(tree, path, value, column(tree, key->from), quoted_key(tree, map)));
}

/* A scalar's text is another one. */
static int replace(struct conf_changes *changes, uint32_t index, const char *path, char *text)
{
    const struct conf_tree *tree = changes->tree;
    const struct conf_node *node = &tree->nodes[index];
    uint32_t start = node->start, end = node->end;

    if (start < end) {
        while (node->style == '|' && end > start && strchr(" \t\r\n", tree->bytes[end - 1]))
            end--;
        return conf_change(changes, start, end, text);
    }
    /* Nothing stands there: behind its anchor, or the colon. */
    uint32_t at = start > node->from ? start : node->key ? conf_behind_colon(tree, index) : 0;
    if (!at) {
        free(text);
        return conf_refuse(changes, index, path, "there is no value in its place");
    }
    char *spaced = text ? conf_printf(" %s", text) : NULL;
    free(text);
    return conf_change(changes, at, at, spaced);
}

/* What is null becomes a group. */
static int open_group(struct conf_changes *changes, uint32_t index, const char *path,
                      const char *value)
{
    const struct conf_tree *tree = changes->tree;
    const struct conf_node *node = &tree->nodes[index];
    uint32_t colon = node->key ? conf_behind_colon(tree, index) : 0;
    bool block = !tree->json && node->start == node->end && node->from == node->end && colon &&
                 tree->nodes[node->parent].style != '{';

    if (!block)
        return replace(changes, index, path,
                       conf_nested_flow(tree, path, value, quoted_key(tree, node->parent)));
    uint32_t indent = column(tree, tree->nodes[node->key].from) + step_width(tree);
    return add_line(changes, colon,
                    nested_block(tree, path, value, indent, quoted_key(tree, node->parent)));
}

struct setter {
    struct conf_changes *changes;
    const struct oom_confedit *edit;
};

static int set_under(const struct setter *s, uint32_t index, const char *path);

static char *value_text(const struct setter *s, const struct conf_node *old)
{
    return s->changes->raw ? strdup(s->changes->raw)
                           : conf_value_text(s->changes->tree, s->edit, old);
}

static int set_in_map(const struct setter *s, uint32_t map, const char *path)
{
    struct conf_changes *changes = s->changes;
    const struct conf_tree *tree = changes->tree;
    const char *rest = "";
    char *value, *text;
    int rc;

    uint32_t own = conf_step(tree, map, path, true, &rest);
    if (own)
        return set_under(s, own, rest);
    value = value_text(s, NULL);
    if (!value)
        return conf_change(changes, 0, 0, NULL);
    uint32_t merged = conf_step(tree, map, path, false, &rest);
    if (merged && *rest) {
        /* Comes with a merge: the group gets a copy of its own, with this one changed. */
        text = conf_copy_flow(tree, merged, rest, value);
        char *key = strndup(path, (size_t)(rest - path) - 1);
        rc = !text || !key || strchr(key, '.')
                 ? conf_refuse(changes, map, path, "what it is merged from cannot be copied")
                 : add_pair(changes, map, key, text);
        free(text);
        free(key);
    } else {
        rc = add_pair(changes, map, path, value);
    }
    free(value);
    return rc;
}

static int set_scalar(const struct setter *s, uint32_t index)
{
    const struct conf_tree *tree = s->changes->tree;
    uint32_t real = conf_deref(tree, index);
    const struct conf_node *node = &tree->nodes[index], *old = &tree->nodes[real];

    if (!real || old->kind != CONF_SCALAR)
        return conf_refuse(s->changes, index, s->edit->path, "is a group of settings, not a value");
    if (node->tagged)
        return conf_refuse(s->changes, index, s->edit->path, "has a tag of its own (\"!…\")");
    return replace(s->changes, index, s->edit->path, value_text(s, old));
}

/* `path` under the node at `index`, which is where the text has it: maybe an alias. */
static int set_under(const struct setter *s, uint32_t index, const char *path)
{
    struct conf_changes *changes = s->changes;
    const struct conf_tree *tree = changes->tree;
    const struct conf_node *node = &tree->nodes[index];
    const char *rest = "";
    uint32_t item;
    char *value, *text;
    int rc;

    if (!*path)
        return set_scalar(s, index);
    switch (node->kind) {
    case CONF_MAP:
        return set_in_map(s, index, path);
    case CONF_LIST:
        item = conf_item(tree, index, path, &rest);
        return item ? set_under(s, item, rest)
                    : conf_refuse(changes, index, s->edit->path, "the list has no such entry");
    case CONF_ALIAS:
        value = value_text(s, NULL);
        text = value ? conf_copy_flow(tree, index, path, value) : NULL;
        rc = text ? conf_change(changes, node->start, node->end, text)
                  : conf_refuse(changes, index, s->edit->path,
                                "what it is an alias of cannot be "
                                "copied");
        free(value);
        return rc;
    case CONF_SCALAR:
        break;
    }
    if (!conf_is_null(node))
        return conf_refuse(changes, index, s->edit->path,
                           "the setting above it is a value, not a group");
    value = value_text(s, NULL);
    rc = value ? open_group(changes, index, path, value) : conf_change(changes, 0, 0, NULL);
    free(value);
    return rc;
}

int conf_place(struct conf_changes *changes, const struct oom_confedit *edit)
{
    const struct conf_tree *tree = changes->tree;
    struct setter setter = {changes, edit};

    if (!edit->value)
        return conf_place_removal(changes, edit);
    uint32_t now = tree->root ? conf_at(tree, edit->path) : 0;
    if (now && tree->nodes[now].kind == CONF_SCALAR &&
        oom_confedit_same(conf_is_null(&tree->nodes[now]) ? NULL : tree->nodes[now].text,
                          edit->value))
        return 0;
    if (!now && has_gap(edit->path))
        return conf_refuse(changes, 0, edit->path, "is no path of a setting");
    if (tree->root && !conf_is_null(&tree->nodes[tree->root]))
        return set_under(&setter, tree->root, edit->path);
    if (tree->json)
        return conf_refuse(changes, 0, edit->path, "there is no place for it");
    char *value = conf_value_text(tree, edit, NULL);
    int rc = value
                 ? add_line(changes, tree->length, nested_block(tree, edit->path, value, 0, false))
                 : conf_change(changes, 0, 0, NULL);
    free(value);
    return rc;
}
