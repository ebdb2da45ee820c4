/* SPDX-License-Identifier: Apache-2.0
 *
 * YAML through libyaml's events. Their marks count characters, not bytes. */
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "policies/conftree.h"

struct yaml_reader {
    struct conf_builder builder;
    uint32_t *offsets; /* of each character; NULL: each is a byte */
    size_t characters;
    uint32_t skip; /* a byte order mark is no character to libyaml */
};

static int count_characters(struct yaml_reader *r)
{
    const struct conf_tree *tree = r->builder.tree;
    bool plain = true;

    if (tree->length >= 3 && memcmp(tree->bytes, "\xef\xbb\xbf", 3) == 0)
        r->skip = 3;
    for (uint32_t i = r->skip; i < tree->length && plain; i++)
        plain = !(tree->bytes[i] & 0x80);
    if (plain)
        return 0;
    r->offsets = malloc((tree->length + 1) * sizeof(*r->offsets));
    if (!r->offsets)
        return -1;
    for (uint32_t i = r->skip; i < tree->length; i++)
        if ((tree->bytes[i] & 0xc0) != 0x80)
            r->offsets[r->characters++] = i;
    r->offsets[r->characters] = tree->length;
    return 0;
}

static uint32_t offset_of(const struct yaml_reader *r, const yaml_mark_t *mark)
{
    if (r->offsets)
        return r->offsets[mark->index < r->characters ? mark->index : r->characters];
    size_t at = mark->index + r->skip;
    return at < r->builder.tree->length ? (uint32_t)at : r->builder.tree->length;
}

/* The node's own text begins behind its anchor and tag, and the blanks and comments there. */
static uint32_t behind_properties(const struct conf_tree *tree, uint32_t at, uint32_t end)
{
    const char *b = tree->bytes;

    while (at < end && (b[at] == '&' || b[at] == '!')) {
        while (at < end && !strchr(" \t\r\n", b[at]))
            at++;
        uint32_t word = at;
        while (at < end && (strchr(" \t\r\n", b[at]) || b[at] == '#')) {
            if (b[at] == '#')
                while (at < end && b[at] != '\n')
                    at++;
            else
                at++;
        }
        if (at == end)
            return word; /* an anchor of nothing */
    }
    return at;
}

static uint32_t anchor_named(const struct conf_tree *tree, const char *name)
{
    for (size_t i = tree->count; i-- > 1;)
        if (tree->nodes[i].kind != CONF_ALIAS && tree->nodes[i].name &&
            strcmp(tree->nodes[i].name, name) == 0)
            return (uint32_t)i;
    return 0;
}

/* An alias inside of what it names stands for nothing. */
static bool is_open(const struct conf_builder *builder, uint32_t node)
{
    for (size_t i = 0; i < builder->depth; i++)
        if (builder->levels[i].node == node)
            return true;
    return false;
}

static int keep_name(struct conf_tree *tree, struct conf_node *node, const yaml_char_t *name)
{
    if (!name)
        return 0;
    node->name = conf_keep(tree, (const char *)name, strlen((const char *)name));
    return node->name ? 0 : -1;
}

static int add_scalar(struct yaml_reader *r, struct conf_node *node, const yaml_event_t *event)
{
    struct conf_tree *tree = r->builder.tree;

    switch (event->data.scalar.style) {
    case YAML_SINGLE_QUOTED_SCALAR_STYLE:
        node->style = '\'';
        break;
    case YAML_DOUBLE_QUOTED_SCALAR_STYLE:
        node->style = '"';
        break;
    case YAML_LITERAL_SCALAR_STYLE:
    case YAML_FOLDED_SCALAR_STYLE:
        node->style = '|';
        break;
    default:
        break;
    }
    node->tagged = event->data.scalar.tag != NULL;
    node->length = event->data.scalar.length;
    node->text = conf_keep(tree, (const char *)event->data.scalar.value, node->length);
    if (!node->text || keep_name(tree, node, event->data.scalar.anchor) != 0)
        return -1;
    return conf_add(&r->builder, node);
}

/* -1: no more can be read. */
static int on_event(struct yaml_reader *r, const yaml_event_t *event)
{
    struct conf_tree *tree = r->builder.tree;
    struct conf_node node = {.from = offset_of(r, &event->start_mark),
                             .end = offset_of(r, &event->end_mark),
                             .line = (uint32_t)event->start_mark.line + 1};

    node.start = behind_properties(tree, node.from, node.end);
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        node.kind = CONF_SCALAR;
        return add_scalar(r, &node, event);
    case YAML_ALIAS_EVENT:
        node.kind = CONF_ALIAS;
        node.start = node.from;
        if (keep_name(tree, &node, event->data.alias.anchor) != 0)
            return -1;
        node.target = anchor_named(tree, node.name);
        if (is_open(&r->builder, node.target))
            node.target = 0;
        return conf_add(&r->builder, &node);
    case YAML_MAPPING_START_EVENT:
        node.kind = CONF_MAP;
        node.style = event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE ? '{' : 0;
        node.tagged = event->data.mapping_start.tag != NULL;
        return keep_name(tree, &node, event->data.mapping_start.anchor) == 0
                   ? conf_add(&r->builder, &node)
                   : -1;
    case YAML_SEQUENCE_START_EVENT:
        node.kind = CONF_LIST;
        node.style = event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE ? '{' : 0;
        node.tagged = event->data.sequence_start.tag != NULL;
        return keep_name(tree, &node, event->data.sequence_start.anchor) == 0
                   ? conf_add(&r->builder, &node)
                   : -1;
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        conf_close(&r->builder, node.end);
        return 0;
    default:
        return 0;
    }
}

static int read_yaml(struct yaml_reader *r, const char *name, struct oom_error *err)
{
    struct conf_tree *tree = r->builder.tree;
    yaml_parser_t parser;
    yaml_event_t event;
    bool more = true;
    int rc = 0;

    if (count_characters(r) != 0 || !yaml_parser_initialize(&parser))
        return oom_errorf(err, "out of memory");
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)tree->bytes + r->skip,
                                 tree->length - r->skip);
    while (more && rc == 0) {
        if (!yaml_parser_parse(&parser, &event)) {
            rc = oom_errorf(err, "%s:%zu:%zu: %s", name, parser.problem_mark.line + 1,
                            parser.problem_mark.column + 1,
                            parser.problem ? parser.problem : "this is not YAML");
            break;
        }
        more = event.type != YAML_DOCUMENT_END_EVENT && event.type != YAML_STREAM_END_EVENT;
        if (more && on_event(r, &event) != 0)
            rc = oom_errorf(err, "%s:%zu: too large or too deeply nested", name,
                            event.start_mark.line + 1);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return rc;
}

int conf_tree_read(struct conf_tree *tree, const char *name, const char *bytes, size_t length,
                   bool json, struct oom_error *err)
{
    struct yaml_reader reader = {.builder = {.tree = tree}};

    memset(tree, 0, sizeof(*tree));
    if (length > CONF_MAX_BYTES)
        return oom_errorf(err, "%s: longer than %u MiB", name, CONF_MAX_BYTES >> 20);
    tree->bytes = bytes;
    tree->length = (uint32_t)length;
    tree->json = json;
    int rc = json ? conf_read_json(&reader.builder, name, err) : read_yaml(&reader, name, err);
    /* What a broken text leaves open is closed, so that it can be read this far. */
    while (reader.builder.depth)
        conf_close(&reader.builder, tree->length);
    free(reader.offsets);
    return rc;
}

void conf_tree_free(struct conf_tree *tree)
{
    for (size_t i = 0; i < tree->string_count; i++)
        free(tree->strings[i]);
    free(tree->strings);
    free(tree->nodes);
    memset(tree, 0, sizeof(*tree));
}
