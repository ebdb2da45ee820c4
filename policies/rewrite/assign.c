/* SPDX-License-Identifier: Apache-2.0
 *
 * Assignments and declarations: what a variable is from here on. */
#include "policies/rewrite/walk.h"

#include <string.h>

bool rw_is_token(const struct rw_buf *buf, const struct rw_node *node, const char *text)
{
    size_t length = strlen(text);

    return node->type == RW_N_TOKEN && node->end - node->start == length &&
           memcmp(buf->bytes + node->start, text, length) == 0;
}

/* The words of a node's children: ranges that touch are one word. */
uint32_t rw_word_end(const struct rw_buf *buf, const struct rw_node *node, uint32_t *index)
{
    uint32_t end = node->end;

    while (node->next && buf->nodes[node->next].start == end) {
        *index = node->next;
        node = &buf->nodes[*index];
        if (rw_is_token(buf, node, ")") || rw_is_token(buf, node, ";") ||
            rw_is_token(buf, node, "&"))
            break;
        end = node->end;
    }
    return end;
}

static void array_value(struct rw *rw, struct rw_buf *buf, const struct rw_node *array,
                        struct rw_fields *out)
{
    uint32_t close = array->end ? array->end - 1 : 0;

    for (uint32_t i = array->first; i; i = buf->nodes[i].next) {
        const struct rw_node *node = &buf->nodes[i];
        if (node->type == RW_N_COMMENT || rw_is_token(buf, node, "(") ||
            rw_is_token(buf, node, ")"))
            continue;
        uint32_t end = rw_word_end(buf, node, &i);
        rw_expand_word(rw, buf, node->start, end < close ? end : close, true, out);
    }
}

/* What stands in for a variable of the environment that is appended to. */
static void push_self(struct rw *rw, const struct rw_buf *buf, const struct rw_var *var,
                      uint32_t at, struct rw_text *out)
{
    const char *bytes = rw_env_get(rw, var->name);
    struct rw_frag frag = {.kind = bytes ? RW_DERIVED : RW_UNKNOWN,
                           .quote = RW_DQ,
                           .buf = buf,
                           .start = at,
                           .end = at};

    if (!bytes && rw->source->environ_list && !rw->opaque_env)
        return;
    if (!bytes)
        bytes = rw_printf(&rw->arena, "$%s", var->name);
    frag.bytes = bytes;
    frag.length = (uint32_t)strlen(bytes);
    rw_text_push(rw, out, &frag);
    out->wild = frag.kind == RW_UNKNOWN;
}

static void set_element(struct rw *rw, struct rw_var *var, const char *index, size_t length,
                        const struct rw_text *text)
{
    int64_t at;

    if (!rw_arithmetic(rw, index, length, &at) || at < 0 || at > 4096 ||
        (var->value && var->value->unknown)) {
        rw_var_set_unknown(rw, var->name);
        return;
    }
    struct rw_value *value = rw_alloc(&rw->arena, sizeof(*value));
    size_t old = var->value ? var->value->count : 0;
    value->array = true;
    value->count = (size_t)at + 1 > old ? (size_t)at + 1 : old;
    value->items = rw_alloc(&rw->arena, value->count * sizeof(*value->items));
    for (size_t i = 0; i < old; i++)
        value->items[i] = var->value->items[i];
    value->items[at].text = *text;
    rw_var_set(rw, var, value);
}

void rw_assign(struct rw *rw, struct rw_buf *buf, const struct rw_node *node, bool opaque)
{
    const struct rw_node *target = &buf->nodes[node->first];
    uint32_t name_end = target->start;
    const char *b = buf->bytes;

    while (name_end < target->end && b[name_end] != '[' && b[name_end] != '=' && b[name_end] != '+')
        name_end++;
    struct rw_var *var = rw_var_at(rw, b + target->start, name_end - target->start);
    uint32_t at = target->end;
    bool append = at < node->end && b[at] == '+';
    at += append ? 2 : 1;
    if (opaque || at > node->end) {
        rw_var_set_unknown(rw, var->name);
        return;
    }
    const struct rw_node *array = NULL;
    for (uint32_t i = target->next; i; i = buf->nodes[i].next)
        if (buf->nodes[i].type == RW_N_ARRAY)
            array = &buf->nodes[i];
    struct rw_fields fields = {0};
    if (array)
        array_value(rw, buf, array, &fields);
    else
        rw_expand_word(rw, buf, at, node->end, false, &fields);
    if (target->type == RW_N_SUBSCRIPT && fields.count == 1) {
        set_element(rw, var, b + name_end + 1, target->end - name_end - 2, &fields.items[0].text);
        return;
    }
    struct rw_value *value = rw_alloc(&rw->arena, sizeof(*value));
    value->array = array != NULL;
    const struct rw_value *old = append ? var->value : NULL;
    if (append && (!old || old->unknown || old->unset)) {
        struct rw_value *self = rw_alloc(&rw->arena, sizeof(*self));
        self->items = rw_alloc(&rw->arena, sizeof(*self->items));
        if (!old || old->unknown)
            push_self(rw, buf, var, node->start, &self->items[0].text);
        self->count = array && !self->items[0].text.length ? 0 : 1;
        self->array = value->array;
        old = self;
    }
    if (append && !array && old->count) {
        value->array = old->array;
        value->count = old->count;
        value->items = rw_alloc(&rw->arena, value->count * sizeof(*value->items));
        memcpy(value->items, old->items, value->count * sizeof(*value->items));
        struct rw_text joined = {0};
        rw_text_append(rw, &joined, &old->items[0].text);
        rw_text_append(rw, &joined, &fields.items[0].text);
        value->items[0].text = joined;
        value->items[0].string = NULL;
    } else {
        size_t before = append ? old->count : 0;
        value->count = before + fields.count;
        value->items = rw_alloc(&rw->arena, (value->count + 1) * sizeof(*value->items));
        if (before)
            memcpy(value->items, old->items, before * sizeof(*value->items));
        if (fields.count)
            memcpy(value->items + before, fields.items, fields.count * sizeof(*value->items));
        value->array |= append && old->array;
    }
    rw_var_set(rw, var, value);
}

/* What the options of declare, local, typeset and export ask for. */
struct declaration {
    bool export, local, refers, opaque;
};

static void declare_one(struct rw *rw, struct rw_buf *buf, const struct rw_node *node,
                        const struct declaration *how)
{
    const struct rw_node *target = &buf->nodes[node->first];
    const char *name = buf->bytes + target->start;
    size_t length = strcspn(name, "[=+");
    struct rw_fields fields = {0};

    if (how->local)
        rw_var_localise(rw, rw_var_slot(rw, name, length));
    if (!how->refers) {
        rw_assign(rw, buf, node, how->opaque);
        return;
    }
    struct rw_value *value = rw_alloc(&rw->arena, sizeof(*value));
    rw_expand_word(rw, buf, target->end + 1, node->end, false, &fields);
    if (rw_text_known(&fields.items[0].text) && *fields.items[0].string)
        value->refers = fields.items[0].string;
    else
        value->unknown = true;
    rw_var_set(rw, rw_var_slot(rw, name, length), value);
}

/* A name without a value: "export A", "local A". */
static void declare_name(struct rw *rw, const char *name, size_t length,
                         const struct declaration *how)
{
    struct rw_value *value;

    if (how->export)
        rw_var_at(rw, name, length)->exported = true;
    if (!how->local || !rw->scope)
        return;
    rw_var_localise(rw, rw_var_slot(rw, name, length));
    value = rw_alloc(&rw->arena, sizeof(*value));
    value->unset = true;
    rw_var_set(rw, rw_var_slot(rw, name, length), value);
}

void rw_declare(struct rw *rw, struct rw_buf *buf, const struct rw_node *node)
{
    struct declaration how = {.export = buf->bytes[node->start] == 'e',
                              .local = strchr("ldt", buf->bytes[node->start]) != NULL};

    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        const struct rw_node *child = &buf->nodes[i];
        uint32_t length = child->end - child->start;
        const char *bytes = buf->bytes + child->start;
        size_t before = rw->trail_count;
        if (child->type == RW_N_ASSIGNMENT) {
            declare_one(rw, buf, child, &how);
        } else if (child->type == RW_N_VARIABLE_NAME && strcspn(bytes, "'\"$`=\n") >= length) {
            declare_name(rw, bytes, length, &how);
        } else if (child->type == RW_N_OTHER && *bytes == '-') {
            how.opaque |= memchr(bytes, 'A', length) != NULL;
            how.export |= memchr(bytes, 'x', length) != NULL;
            how.refers |= memchr(bytes, 'n', length) != NULL && !how.export;
            how.local &= memchr(bytes, 'g', length) == NULL;
        } else if (child->type == RW_N_OTHER || child->type == RW_N_VARIABLE_NAME) {
            struct rw_fields fields = {0};
            rw_expand_word(rw, buf, child->start, rw_word_end(buf, child, &i), true, &fields);
            for (size_t f = 0; f < fields.count; f++) {
                const char *equals = strchr(fields.items[f].string, '=');
                struct rw_text value;
                if (!equals || fields.items[f].text.wild)
                    continue;
                uint32_t at = (uint32_t)(equals - fields.items[f].string);
                rw_text_slice(rw, &fields.items[f].text, at + 1, fields.items[f].text.length,
                              &value);
                rw_var_set_text(rw, rw_strndup(&rw->arena, fields.items[f].string, at), &value);
            }
        }
        if (how.export && rw->trail_count > before)
            rw->trail[rw->trail_count - 1].var->exported = true;
    }
}

/* "unset 'A[3]'": the other elements stay where they are. */
static void unset_element(struct rw *rw, struct rw_var *var, const char *index)
{
    const struct rw_value *old = var->value;
    int64_t at;

    if (!old || old->unset || old->unknown)
        return;
    if (!old->array || !rw_arithmetic(rw, index, strcspn(index, "]"), &at)) {
        rw_var_set_unknown(rw, var->name);
        return;
    }
    if (at < 0)
        at += (int64_t)old->count;
    if (at < 0 || (size_t)at >= old->count)
        return;
    struct rw_value *value = rw_alloc(&rw->arena, sizeof(*value));
    *value = *old;
    value->items = rw_alloc(&rw->arena, old->count * sizeof(*value->items));
    memcpy(value->items, old->items, old->count * sizeof(*value->items));
    value->items[at].gone = true;
    while (value->count && value->items[value->count - 1].gone)
        value->count--;
    rw_var_set(rw, var, value);
}

void rw_unset(struct rw *rw, struct rw_buf *buf, const struct rw_node *node)
{
    struct rw_fields fields = {0};

    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        const struct rw_node *child = &buf->nodes[i];
        if (child->type == RW_N_TOKEN || child->type == RW_N_COMMENT)
            continue;
        rw_expand_word(rw, buf, child->start, rw_word_end(buf, child, &i), true, &fields);
    }
    for (size_t f = 0; f < fields.count; f++) {
        const char *name = fields.items[f].string;
        size_t length = strcspn(name, "[");
        if (*name == '-' || !length)
            continue;
        struct rw_var *var = rw_var_at(rw, name, length);
        if (name[length]) {
            unset_element(rw, var, name + length + 1);
            continue;
        }
        struct rw_value *value = rw_alloc(&rw->arena, sizeof(*value));
        value->unset = true;
        rw_var_set(rw, var, value);
    }
}
