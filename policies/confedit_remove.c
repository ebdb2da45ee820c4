/* SPDX-License-Identifier: Apache-2.0
 *
 * A key is taken away: in a block with its lines, in a flow with its comma. */
#include <stdlib.h>
#include <string.h>

#include "policies/confedit_place.h"

static bool comment_between(const struct conf_tree *tree, uint32_t from, uint32_t to)
{
    return !tree->json && to > from && memchr(tree->bytes + from, '#', to - from);
}

static uint32_t previous(const struct conf_tree *tree, uint32_t value)
{
    uint32_t before = 0;

    for (uint32_t i = tree->nodes[tree->nodes[value].parent].first; i && i != value;
         i = tree->nodes[i].next)
        before = i;
    return before;
}

static int remove_flow(struct conf_changes *changes, uint32_t value)
{
    const struct conf_tree *tree = changes->tree;
    uint32_t start = tree->nodes[tree->nodes[value].key].from;
    uint32_t end = conf_pair_end(tree, value), next = tree->nodes[value].next;
    uint32_t before = previous(tree, value);

    if (next && !comment_between(tree, end, tree->nodes[tree->nodes[next].key].from))
        end = tree->nodes[tree->nodes[next].key].from;
    else if (next) /* a comment stands behind the comma, and stays */
        while (end < tree->length && (strchr(" \t", tree->bytes[end]) || tree->bytes[end] == ','))
            end++;
    else if (before && !comment_between(tree, conf_pair_end(tree, before), start))
        start = conf_pair_end(tree, before);
    return conf_change(changes, start, end, strdup(""));
}

static bool begins_line(const struct conf_tree *tree, uint32_t at, uint32_t *start)
{
    *start = at;
    while (*start > 0 && strchr(" \t", tree->bytes[*start - 1]))
        (*start)--;
    return *start == 0 || tree->bytes[*start - 1] == '\n';
}

/* The lines of the pair; at the end of a file without a line end the one before goes as well. */
static int remove_lines(struct conf_changes *changes, uint32_t start, uint32_t end)
{
    const struct conf_tree *tree = changes->tree;
    uint32_t to = end > start && tree->bytes[end - 1] == '\n' ? end : conf_line_end(tree, end);

    if (to == tree->length && to > 0 && tree->bytes[to - 1] != '\n' && start > 0) {
        start--;
        if (start > 0 && tree->bytes[start - 1] == '\r')
            start--;
    }
    return conf_change(changes, start, to, strdup(""));
}

/* The only key of a map: {} stays. */
static int remove_only(struct conf_changes *changes, uint32_t map, uint32_t start, uint32_t end,
                       bool own_line)
{
    const struct conf_tree *tree = changes->tree;
    uint32_t colon = tree->nodes[map].key ? conf_behind_colon(tree, map) : 0;

    if (!own_line || !colon || tree->nodes[map].from != tree->nodes[map].start) {
        while (end > start && strchr(" \t\r\n", tree->bytes[end - 1]))
            end--;
        while (start < end && tree->bytes[start] == ' ')
            start++;
        return conf_change(changes, start, end, strdup("{}"));
    }
    if (conf_change(changes, colon, colon, strdup(" {}")) != 0)
        return -1;
    return remove_lines(changes, start, end);
}

static int remove_block(struct conf_changes *changes, uint32_t value, size_t of_this_key,
                        const char *path)
{
    const struct conf_tree *tree = changes->tree;
    uint32_t map = tree->nodes[value].parent, next = tree->nodes[value].next;
    uint32_t key = tree->nodes[tree->nodes[value].key].from, start;
    uint32_t end = conf_pair_end(tree, value);
    bool own_line = begins_line(tree, key, &start);
    size_t pairs = 0;

    for (uint32_t i = tree->nodes[map].first; i; i = tree->nodes[i].next)
        pairs++;
    if (pairs == 1 && map != tree->root)
        return remove_only(changes, map, own_line ? start : key, end, own_line);
    if (pairs == of_this_key && pairs > 1)
        return conf_refuse(changes, value, path,
                           "the group holds nothing but this key, given "
                           "several times");
    if (own_line)
        return remove_lines(changes, start, end);
    /* "- a: 1": what follows moves up to the dash. */
    uint32_t to = next ? tree->nodes[tree->nodes[next].key].from : 0;
    if (!next || comment_between(tree, end, to))
        return conf_refuse(changes, value, path, "it shares its line with the group's beginning");
    return conf_change(changes, key, to, strdup(""));
}

int conf_place_removal(struct conf_changes *changes, const struct oom_confedit *edit)
{
    const struct conf_tree *tree = changes->tree;
    const char *path = edit->path, *rest = "";
    uint32_t at = tree->root, found = 0;
    size_t same = 0;

    for (; at && *path; at = found, path = rest) {
        if (tree->nodes[at].kind == CONF_ALIAS)
            return conf_refuse(changes, at, edit->path, "comes through an alias");
        if (tree->nodes[at].kind == CONF_LIST) {
            found = conf_item(tree, at, path, &rest);
            if (found && !*rest)
                return conf_refuse(changes, found, edit->path,
                                   "is in a list, where the others would move up");
            continue;
        }
        found = conf_step(tree, at, path, true, &rest);
        if (!found && conf_step(tree, at, path, false, &rest))
            return conf_refuse(changes, at, edit->path, "comes through a merge (\"<<\")");
    }
    if (!at)
        return 0;
    const struct conf_node *key = &tree->nodes[tree->nodes[at].key];
    uint32_t map = tree->nodes[at].parent;
    if (tree->nodes[map].kind != CONF_MAP || !conf_behind_colon(tree, at))
        return conf_refuse(changes, at, edit->path, "it is not written as \"key: value\"");
    /* Given twice, the earlier one would count again. */
    for (uint32_t i = tree->nodes[map].first; i; i = tree->nodes[i].next)
        same += conf_child(tree, map, key->text, key->length, true) == at &&
                tree->nodes[tree->nodes[i].key].length == key->length &&
                memcmp(tree->nodes[tree->nodes[i].key].text, key->text, key->length) == 0;
    if (tree->nodes[map].style == '{' && same > 1)
        return conf_refuse(changes, at, edit->path, "is given several times");
    for (uint32_t i = tree->nodes[map].first; i; i = tree->nodes[i].next) {
        const struct conf_node *name = &tree->nodes[tree->nodes[i].key];
        if (name->kind != CONF_SCALAR || name->length != key->length ||
            memcmp(name->text, key->text, key->length) != 0)
            continue;
        int rc = tree->nodes[map].style == '{' ? remove_flow(changes, i)
                                               : remove_block(changes, i, same, edit->path);
        if (rc != 0)
            return rc;
    }
    return 0;
}
