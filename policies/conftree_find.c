/* SPDX-License-Identifier: Apache-2.0
 *
 * What a key of a configuration means: aliases, merged maps, keys given twice. */
#include <stdlib.h>
#include <string.h>

#include "policies/conftree.h"

#define MAX_MERGES 16
#define MAX_LOOKS  4096 /* maps that one key is looked for in: merges of merges can be many */

uint32_t conf_deref(const struct conf_tree *tree, uint32_t node)
{
    for (int i = 0; i < MAX_MERGES && node && tree->nodes[node].kind == CONF_ALIAS; i++)
        node = tree->nodes[node].target;
    return node && tree->nodes[node].kind != CONF_ALIAS ? node : 0;
}

bool conf_is_null(const struct conf_node *node)
{
    static const char *const spellings[] = {"", "~", "null", "Null", "NULL"};

    if (node->kind != CONF_SCALAR || node->style)
        return false;
    for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++)
        if (strcmp(node->text, spellings[i]) == 0)
            return true;
    return false;
}

bool conf_is_merge(const struct conf_tree *tree, uint32_t value)
{
    const struct conf_node *key = &tree->nodes[tree->nodes[value].key];

    return !tree->json && tree->nodes[value].key && key->kind == CONF_SCALAR && !key->style &&
           strcmp(key->text, "<<") == 0 && tree->nodes[value].kind != CONF_SCALAR;
}

static bool key_is(const struct conf_tree *tree, uint32_t value, const char *key, size_t length)
{
    const struct conf_node *name = &tree->nodes[tree->nodes[value].key];

    return name->kind == CONF_SCALAR && name->length == length && name->text &&
           memcmp(name->text, key, length) == 0 && !conf_is_merge(tree, value);
}

static uint32_t child(const struct conf_tree *tree, uint32_t map, const char *key, size_t length,
                      bool own, int *left, int depth)
{
    uint32_t found = 0;

    map = conf_deref(tree, map);
    if (!map || tree->nodes[map].kind != CONF_MAP || depth > MAX_MERGES || (*left)-- <= 0)
        return 0;
    for (uint32_t i = tree->nodes[map].first; i; i = tree->nodes[i].next)
        if (key_is(tree, i, key, length))
            found = i;
    for (uint32_t i = own ? 0 : tree->nodes[map].first; i && !found; i = tree->nodes[i].next) {
        if (!conf_is_merge(tree, i))
            continue;
        uint32_t from = conf_deref(tree, i);
        if (from && tree->nodes[from].kind == CONF_MAP)
            found = child(tree, from, key, length, false, left, depth + 1);
        for (uint32_t k = from && tree->nodes[from].kind == CONF_LIST ? tree->nodes[from].first : 0;
             k && !found; k = tree->nodes[k].next)
            found = child(tree, k, key, length, false, left, depth + 1);
    }
    return found;
}

uint32_t conf_child(const struct conf_tree *tree, uint32_t map, const char *key, size_t length,
                    bool own)
{
    int left = MAX_LOOKS;

    return child(tree, map, key, length, own, &left, 0);
}

uint32_t conf_step(const struct conf_tree *tree, uint32_t map, const char *path, bool own,
                   const char **rest)
{
    /* The longest key first: {"a.b": 1} has no group "a". */
    for (size_t length = strlen(path); length; length--) {
        if (path[length] && path[length] != '.')
            continue;
        uint32_t found = conf_child(tree, map, path, length, own);
        if (!found)
            continue;
        *rest = path[length] ? path + length + 1 : path + length;
        return found;
    }
    return 0;
}

uint32_t conf_item(const struct conf_tree *tree, uint32_t list, const char *path, const char **rest)
{
    char *end;
    unsigned long index = strtoul(path, &end, 10);

    if (end == path || (*end && *end != '.'))
        return 0;
    *rest = *end ? end + 1 : end;
    uint32_t item = tree->nodes[list].first;
    while (item && index--)
        item = tree->nodes[item].next;
    return item;
}

uint32_t conf_at(const struct conf_tree *tree, const char *path)
{
    uint32_t at = conf_deref(tree, tree->root);

    while (at && *path) {
        const char *rest = "";
        at = tree->nodes[at].kind == CONF_LIST ? conf_item(tree, at, path, &rest)
                                               : conf_step(tree, at, path, false, &rest);
        at = conf_deref(tree, at);
        path = rest;
    }
    return at;
}
