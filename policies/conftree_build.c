/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "policies/conftree.h"

/* Looking for keys given twice takes the square of it. */
#define MAX_NODES 20000

static bool grow(void *items, size_t count, size_t *capacity, size_t size)
{
    void **list = items;

    if (count < *capacity)
        return true;
    size_t more = *capacity ? *capacity * 2 : 64;
    void *room = realloc(*list, more * size);
    if (!room)
        return false;
    *list = room;
    *capacity = more;
    return true;
}

const char *conf_keep(struct conf_tree *tree, const char *text, size_t length)
{
    if (!grow(&tree->strings, tree->string_count, &tree->string_capacity, sizeof(*tree->strings)))
        return NULL;
    char *copy = malloc(length + 1);
    if (!copy)
        return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    tree->strings[tree->string_count++] = copy;
    return copy;
}

int conf_add(struct conf_builder *builder, const struct conf_node *node)
{
    struct conf_tree *tree = builder->tree;
    struct conf_level *level = builder->depth ? &builder->levels[builder->depth - 1] : NULL;
    bool opens = node->kind == CONF_MAP || node->kind == CONF_LIST;

    if (tree->count >= MAX_NODES || (opens && builder->depth == CONF_MAX_DEPTH) ||
        !grow(&tree->nodes, tree->count + 1, &tree->capacity, sizeof(*tree->nodes)))
        return -1;
    if (!tree->count)
        memset(&tree->nodes[tree->count++], 0, sizeof(*tree->nodes));
    uint32_t index = (uint32_t)tree->count++;
    struct conf_node *kept = &tree->nodes[index];
    *kept = *node;
    if (!level) {
        tree->root = index;
    } else {
        struct conf_node *parent = &tree->nodes[level->node];
        kept->parent = level->node;
        if (parent->kind == CONF_MAP && !level->key) {
            level->key = index; /* the key of what comes next */
        } else {
            kept->key = level->key;
            level->key = 0;
            if (parent->last)
                tree->nodes[parent->last].next = index;
            else
                parent->first = index;
            parent->last = index;
        }
    }
    if (opens)
        builder->levels[builder->depth++] = (struct conf_level){index, 0};
    return 0;
}

void conf_close(struct conf_builder *builder, uint32_t end)
{
    struct conf_tree *tree = builder->tree;

    if (!builder->depth)
        return;
    struct conf_node *node = &tree->nodes[builder->levels[--builder->depth].node];
    if (node->style == '{') {
        node->end = end;
        return;
    }
    /* libyaml ends a block collection where the next token begins, behind comments. */
    const struct conf_node *last = node->last ? &tree->nodes[node->last] : NULL;
    node->end = node->start;
    if (last)
        node->end = last->end > last->start || !last->key ? last->end : tree->nodes[last->key].end;
}
