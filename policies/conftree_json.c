/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON: jansson says whether it is JSON, and what its strings mean; where each value stands it does
 * not say. In a text that is known to be valid, that is quickly found. */
#include <jansson.h>
#include <string.h>

#include "policies/conftree.h"

static uint32_t string_end(const char *bytes, uint32_t at, uint32_t length)
{
    for (at++; at < length && bytes[at] != '"'; at++)
        at += bytes[at] == '\\';
    return at < length ? at + 1 : length;
}

static int add_string(struct conf_builder *builder, uint32_t at, uint32_t end, uint32_t line)
{
    struct conf_tree *tree = builder->tree;
    json_t *value = json_loadb(tree->bytes + at, end - at, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    struct conf_node node = {
        .kind = CONF_SCALAR, .style = '"', .from = at, .start = at, .end = end, .line = line};

    node.length = json_string_length(value);
    node.text = value ? conf_keep(tree, json_string_value(value), node.length) : NULL;
    json_decref(value);
    return node.text ? conf_add(builder, &node) : -1;
}

static int add_word(struct conf_builder *builder, uint32_t at, uint32_t end, uint32_t line)
{
    struct conf_node node = {
        .kind = CONF_SCALAR, .from = at, .start = at, .end = end, .line = line, .length = end - at};

    node.text = conf_keep(builder->tree, builder->tree->bytes + at, end - at);
    return node.text ? conf_add(builder, &node) : -1;
}

int conf_read_json(struct conf_builder *builder, const char *name, struct oom_error *err)
{
    const struct conf_tree *tree = builder->tree;
    const char *bytes = tree->bytes;
    uint32_t line = 1, end;
    json_error_t why;
    int rc = 0;
    json_t *valid = json_loadb(bytes, tree->length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);

    if (!valid)
        return oom_errorf(err, "%s:%d:%d: %s", name, why.line, why.column, why.text);
    json_decref(valid);
    for (uint32_t at = 0; at < tree->length && rc == 0; at = end) {
        struct conf_node open = {.style = '{', .from = at, .start = at, .end = at, .line = line};
        end = at + 1;
        switch (bytes[at]) {
        case '{':
        case '[':
            open.kind = bytes[at] == '{' ? CONF_MAP : CONF_LIST;
            rc = conf_add(builder, &open);
            break;
        case '}':
        case ']':
            conf_close(builder, end);
            break;
        case '"':
            end = string_end(bytes, at, tree->length);
            rc = add_string(builder, at, end, line);
            break;
        case '\n':
            line++;
            break;
        case ' ':
        case '\t':
        case '\r':
        case ',':
        case ':':
            break;
        default:
            while (end < tree->length && !strchr(" \t\r\n,:]}", bytes[end]))
                end++;
            rc = add_word(builder, at, end, line);
        }
    }
    return rc == 0 ? 0 : oom_errorf(err, "%s:%u: too large or too deeply nested", name, line);
}
