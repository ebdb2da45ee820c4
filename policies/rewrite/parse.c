/* SPDX-License-Identifier: Apache-2.0
 *
 * The syntax tree of a buffer, as a compact list of the nodes that a walk needs. Words are leaves
 * here: expand.c reads them byte by byte. */
#include "policies/rewrite/rw.h"

#include <stdlib.h>
#include <string.h>
#include <tree_sitter/api.h>

const TSLanguage *tree_sitter_bash(void);

static const struct {
    const char *name;
    enum rw_node_type type;
    bool inside; /* its children are wanted */
} kinds[] = {
    {"program", RW_N_PROGRAM, true},
    {"comment", RW_N_COMMENT, false},
    {"command", RW_N_COMMAND, true},
    {"command_name", RW_N_COMMAND_NAME, false},
    {"variable_assignment", RW_N_ASSIGNMENT, true},
    {"variable_assignments", RW_N_ASSIGNMENTS, true},
    {"declaration_command", RW_N_DECLARATION, true},
    {"unset_command", RW_N_UNSET, true},
    {"redirected_statement", RW_N_REDIRECTED, true},
    {"file_redirect", RW_N_FILE_REDIRECT, true},
    {"herestring_redirect", RW_N_HERESTRING, true},
    {"list", RW_N_LIST, true},
    {"pipeline", RW_N_PIPELINE, true},
    {"negated_command", RW_N_NEGATED, true},
    {"if_statement", RW_N_IF, true},
    {"elif_clause", RW_N_ELIF, true},
    {"else_clause", RW_N_ELSE, true},
    {"case_statement", RW_N_CASE, true},
    {"case_item", RW_N_CASE_ITEM, true},
    {"for_statement", RW_N_FOR, true},
    {"c_style_for_statement", RW_N_CFOR, true},
    {"while_statement", RW_N_WHILE, true},
    {"do_group", RW_N_DO, true},
    {"function_definition", RW_N_FUNCTION, true},
    {"compound_statement", RW_N_COMPOUND, true},
    {"subshell", RW_N_SUBSHELL, true},
    {"test_command", RW_N_TEST, false},
    {"array", RW_N_ARRAY, true},
    {"variable_name", RW_N_VARIABLE_NAME, false},
    {"subscript", RW_N_SUBSCRIPT, false},
    {"ERROR", RW_N_ERROR, true},
};
#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

/* Nodes that words come and go without: their numbers name a place across an edit. */
static bool counted(enum rw_node_type type)
{
    return type >= RW_N_PROGRAM && type != RW_N_COMMENT && type != RW_N_COMMAND_NAME &&
           type != RW_N_VARIABLE_NAME && type != RW_N_SUBSCRIPT;
}

#define MAX_SYMBOLS 512

/* Kinds by the grammar's symbol numbers, filled as they are met; 0: not met yet. */
struct kind_cache {
    unsigned char kind[MAX_SYMBOLS];
};

static size_t kind_of(struct kind_cache *cache, TSNode node)
{
    TSSymbol symbol = ts_node_symbol(node);
    size_t kind = 0;

    if (symbol < MAX_SYMBOLS && cache->kind[symbol])
        return cache->kind[symbol] - 1U;
    const char *name = ts_node_type(node);
    while (kind < KIND_COUNT && strcmp(kinds[kind].name, name) != 0)
        kind++;
    if (symbol < MAX_SYMBOLS)
        cache->kind[symbol] = (unsigned char)(kind + 1);
    return kind;
}

static uint32_t add_node(struct rw *rw, struct rw_buf *buf, TSNode ts, size_t kind)
{
    buf->nodes =
        rw_more(&rw->arena, buf->nodes, buf->node_count, &buf->node_capacity, sizeof(*buf->nodes));
    struct rw_node *node = &buf->nodes[buf->node_count];
    memset(node, 0, sizeof(*node));
    node->type = kind < KIND_COUNT      ? kinds[kind].type
                 : ts_node_is_named(ts) ? RW_N_OTHER
                                        : RW_N_TOKEN;
    node->start = ts_node_start_byte(ts);
    node->end = ts_node_end_byte(ts);
    node->missing = ts_node_is_missing(ts);
    return (uint32_t)buf->node_count++;
}

static void copy_tree(struct rw *rw, struct rw_buf *buf, TSTree *tree)
{
    TSTreeCursor cursor = ts_tree_cursor_new(ts_tree_root_node(tree));
    uint32_t order = 0;
    struct kind_cache cache = {{0}};
    uint32_t parents[512];
    uint32_t last[512] = {0};
    size_t depth = 0;
    /* The arena may unwind past this function: the cursor is small and freed on every other way;
     * the tree is freed by the caller's guard. */
    buf->nodes = rw_alloc(&rw->arena, 64 * sizeof(*buf->nodes));
    buf->node_capacity = 64;
    buf->node_count = 1;
    for (bool done = false; !done;) {
        TSNode ts = ts_tree_cursor_current_node(&cursor);
        size_t kind = kind_of(&cache, ts);
        uint32_t index = add_node(rw, buf, ts, kind);
        struct rw_node *node = &buf->nodes[index];
        node->order = counted(node->type) ? ++order : order;
        if ((node->type == RW_N_ERROR || node->missing) && node->start < buf->error_at)
            buf->error_at = node->start;
        if (depth) {
            if (last[depth])
                buf->nodes[last[depth]].next = index;
            else
                buf->nodes[parents[depth]].first = index;
            last[depth] = index;
        }
        bool inside = kind < KIND_COUNT && kinds[kind].inside && depth + 1 < 512;
        if (inside && ts_tree_cursor_goto_first_child(&cursor)) {
            depth++;
            parents[depth] = index;
            last[depth] = 0;
            continue;
        }
        while (!ts_tree_cursor_goto_next_sibling(&cursor)) {
            if (!depth || !ts_tree_cursor_goto_parent(&cursor)) {
                done = true;
                break;
            }
            depth--;
        }
        if (!depth)
            done = true;
    }
    ts_tree_cursor_delete(&cursor);
}

/* Copies the nodes; the tree goes with everything else when memory runs out. */
static void copy_guarded(struct rw *rw, struct rw_buf *buf, TSTree *tree)
{
    jmp_buf *outer = rw->arena.bail;
    jmp_buf here;

    if (setjmp(here)) {
        ts_tree_delete(tree);
        rw->arena.bail = outer;
        longjmp(*outer, 1);
    }
    rw->arena.bail = &here;
    copy_tree(rw, buf, tree);
    rw->arena.bail = outer;
}

/* The bytes as the grammar sees them, for the nodes of `buf`. */
static void parse_bytes(struct rw *rw, struct rw_buf *buf, const char *plain, uint32_t length)
{
    TSParser *parser = ts_parser_new();
    TSTree *tree = NULL;

    if (parser && ts_parser_set_language(parser, tree_sitter_bash()))
        tree = ts_parser_parse_string(parser, NULL, plain, length);
    ts_parser_delete(parser);
    buf->error_at = RW_NO_ERROR;
    if (!tree)
        longjmp(*rw->arena.bail, 1);
    copy_guarded(rw, buf, tree);
    ts_tree_delete(tree);
    buf->whole = buf->error_at == RW_NO_ERROR && buf->nodes[1].type == RW_N_PROGRAM;
}

/* What a statement of the old text became: nodes [from, to) of `old`, moved. */
static void take_over(struct rw_buf *buf, const struct rw_buf *old, size_t from, size_t to,
                      uint32_t bytes, uint32_t order)
{
    uint32_t moved = (uint32_t)(buf->node_count - from);

    for (size_t i = from; i < to; i++) {
        struct rw_node *node = &buf->nodes[buf->node_count++];
        *node = old->nodes[i];
        node->start += bytes;
        node->end += bytes;
        node->order += order;
        node->first += node->first ? moved : 0;
        node->next += node->next ? moved : 0;
    }
}

/* Parses only what lies between the statements that no splice touches, and takes those over. The
 * nodes of a statement stand together, behind those of the statement before it. False: nothing was
 * done, since the grammar is not sure of the structure. Sums wrap round on purpose. */
static bool graft(struct rw *rw, struct rw_buf *buf, const char *plain, const struct rw_buf *old,
                  const struct rw_splice *splices, size_t count)
{
    uint32_t grown = buf->length - old->length, before = 0, after, last = 0;
    struct rw_buf part = {0};

    if (!old->whole || !count)
        return false;
    for (uint32_t i = old->nodes[1].first; i; i = old->nodes[i].next) {
        const struct rw_node *node = &old->nodes[i];
        if (node->end > splices[0].start ||
            (node->end == splices[0].start && node->type != RW_N_TOKEN))
            break;
        before = i;
    }
    after = before ? old->nodes[before].next : old->nodes[1].first;
    size_t head = after ? after : old->node_count;
    while (after && old->nodes[after].start <= splices[count - 1].old_end)
        after = old->nodes[after].next;
    size_t tail = after ? after : old->node_count;
    uint32_t from = before ? old->nodes[before].end : 0;
    uint32_t to = (after ? old->nodes[after].start : old->length) + grown;
    parse_bytes(rw, &part, plain + from, to - from);
    if (!part.whole)
        return false;
    buf->nodes = rw_alloc(&rw->arena,
                          (head + part.node_count + old->node_count - tail) * sizeof(*buf->nodes));
    buf->node_count = 1;
    take_over(buf, old, 1, head, 0, 0);
    buf->nodes[1].end += grown;
    uint32_t order = old->nodes[head - 1].order - 1; /* the part's own root counts for nothing */
    take_over(buf, &part, 2, part.node_count, from, order);
    order += part.nodes[part.node_count - 1].order - old->nodes[tail - 1].order;
    uint32_t first = part.node_count > 2 ? (uint32_t)head : 0;
    for (uint32_t i = first; i; i = buf->nodes[i].next)
        last = i;
    uint32_t rest = after ? (uint32_t)buf->node_count : 0;
    take_over(buf, old, tail, old->node_count, grown, order);
    buf->node_capacity = buf->node_count;
    *(before ? &buf->nodes[before].next : &buf->nodes[1].first) = first ? first : rest;
    if (last)
        buf->nodes[last].next = rest;
    buf->whole = true;
    return true;
}

static void parse(struct rw *rw, struct rw_buf *buf, const struct rw_buf *old,
                  const struct rw_splice *splices, size_t count)
{
    char *masked = rw_strndup(&rw->arena, buf->bytes, buf->length);

    rw_find_heredocs(rw, buf, masked);
    char *plain = rw_strndup(&rw->arena, masked, buf->length);
    rw_mask_words(masked, buf->length, plain);
    if (!old || !graft(rw, buf, plain, old, splices, count))
        parse_bytes(rw, buf, plain, buf->length);
    if (buf->error_at != RW_NO_ERROR || buf->editable)
        buf->error_at = rw_syntax_fault(rw, masked, buf->length);
}

void rw_parse(struct rw *rw, struct rw_buf *buf)
{
    if (!buf->nodes)
        parse(rw, buf, NULL, NULL, 0);
}

void rw_parse_again(struct rw *rw, struct rw_buf *buf, const struct rw_buf *old,
                    const struct rw_splice *splices, size_t count)
{
    parse(rw, buf, old, splices, count);
}

struct rw_buf *rw_buf_new(struct rw *rw, const char *bytes, size_t length, const char *name,
                          uint64_t key)
{
    struct rw_buf *buf = rw_alloc(&rw->arena, sizeof(*buf));

    buf->bytes = bytes;
    buf->length = (uint32_t)length;
    buf->name = name;
    buf->key = key;
    buf->error_at = RW_NO_ERROR;
    return buf;
}

uint32_t rw_line_of(const struct rw_buf *buf, uint32_t at)
{
    uint32_t line = 1;

    for (uint32_t i = 0; i < at && i < buf->length; i++)
        if (buf->bytes[i] == '\n')
            line++;
    return line;
}
