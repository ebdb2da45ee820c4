/* SPDX-License-Identifier: Apache-2.0
 *
 * Goes through a script the way bash would, in one world: every statement is looked at, a branch
 * is taken or not as the world says (branch.c), a loop runs over what is known (loop.c). */
#include "policies/rewrite/walk.h"

#include <string.h>

#define MAX_DEPTH 40

void rw_walk_children(struct rw *rw, struct rw_buf *buf, const struct rw_node *node,
                      const struct rw_text *input)
{
    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        uint32_t next = buf->nodes[i].next;
        bool hides = next && rw_is_token(buf, &buf->nodes[next], "&");
        size_t mark = rw_trail_mark(rw);
        rw->background += hides;
        rw_walk_node(rw, buf, i, input);
        rw->background -= hides;
        if (hides) { /* a subshell */
            rw_trail_undo(rw, mark);
            rw->leaving = RW_GOES_ON;
        }
    }
}

/* ((…)) as a command or condition. */
static bool arithmetic(struct rw *rw, const struct rw_buf *buf, const struct rw_node *node)
{
    const char *b = buf->bytes;

    if (node->end - node->start < 4 || b[node->start] != '(' || b[node->start + 1] != '(')
        return false;
    rw_arithmetic_sets(rw, buf, b + node->start + 2, node->end - node->start - 4);
    return true;
}

static struct rw_function **function_bucket(struct rw *rw, const char *name)
{
    return &rw->functions[rw_hash_string(name, strlen(name)) % RW_FUNCTION_BUCKETS];
}

static void define(struct rw *rw, struct rw_buf *buf, const struct rw_node *node)
{
    struct rw_function *function = rw_alloc(&rw->arena, sizeof(*function));

    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        const struct rw_node *child = &buf->nodes[i];
        if (child->type == RW_N_OTHER && !function->name)
            function->name =
                rw_strndup(&rw->arena, buf->bytes + child->start, child->end - child->start);
        else if (child->type == RW_N_COMPOUND || child->type == RW_N_SUBSHELL)
            function->node = i;
    }
    if (!function->name || !function->node)
        return;
    struct rw_function *old = rw_function_find(rw, function->name);
    if (old) { /* the later definition counts */
        old->buf = buf;
        old->node = function->node;
        return;
    }
    struct rw_function **bucket = function_bucket(rw, function->name);
    function->buf = buf;
    function->next = *bucket;
    *bucket = function;
}

struct rw_function *rw_function_find(struct rw *rw, const char *name)
{
    for (struct rw_function *f = *function_bucket(rw, name); f; f = f->next)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

void rw_walk_function(struct rw *rw, struct rw_function *function, const struct rw_fields *args,
                      size_t first)
{
    struct rw_fields saved = rw->positional;
    bool known = rw->positional_known;

    function->called = true;
    memset(&rw->positional, 0, sizeof(rw->positional));
    if (args) {
        rw->positional.items = args->items + first;
        rw->positional.count = args->count - first;
    }
    rw->positional_known = args != NULL;
    rw_scope_enter(rw);
    rw_walk_node(rw, (struct rw_buf *)(uintptr_t)function->buf, function->node, NULL);
    rw_scope_leave(rw);
    if (rw->leaving == RW_RETURNS)
        rw->leaving = RW_GOES_ON;
    rw->positional = saved;
    rw->positional_known = known;
}

void rw_walk_node(struct rw *rw, struct rw_buf *buf, uint32_t index, const struct rw_text *input)
{
    const struct rw_node *node = &buf->nodes[index];
    size_t mark = rw_trail_mark(rw);

    if (rw->leaving || rw->depth >= MAX_DEPTH || ++rw->steps > rw->step_limit)
        return;
    if (rw->file_depth && ++rw->file_steps > RW_MAX_FILE_STEPS)
        rw_give_up(rw, "the files that it sources and calls run each other too often");
    rw->depth++;
    switch (node->type) {
    case RW_N_SUBSHELL:
        rw_walk_children(rw, buf, node, input);
        if (rw->leaving == RW_EXITS)
            rw->leaving = RW_GOES_ON;
        rw_trail_undo(rw, mark);
        break;
    case RW_N_WHILE:
        rw_repeat(rw, buf, node, input);
        break;
    case RW_N_TEST:
    case RW_N_COMPOUND:
        if (arithmetic(rw, buf, node) || node->type == RW_N_TEST)
            break;
        rw_walk_children(rw, buf, node, input);
        break;
    case RW_N_PROGRAM:
    case RW_N_DO:
    case RW_N_NEGATED:
    case RW_N_ASSIGNMENTS:
    case RW_N_ERROR:
    case RW_N_ELSE:
        rw_walk_children(rw, buf, node, input);
        break;
    case RW_N_LIST:
        rw_list(rw, buf, node, input);
        break;
    case RW_N_PIPELINE:
        rw_pipeline(rw, buf, node, input);
        break;
    case RW_N_REDIRECTED:
        rw_redirected(rw, buf, node, input);
        break;
    case RW_N_IF:
        rw_conditional(rw, buf, node);
        break;
    case RW_N_CASE:
        rw_selection(rw, buf, node);
        break;
    case RW_N_FOR:
    case RW_N_CFOR:
        rw_loop(rw, buf, node);
        break;
    case RW_N_FUNCTION:
        define(rw, buf, node);
        break;
    case RW_N_ASSIGNMENT:
        rw_assign(rw, buf, node, false);
        break;
    case RW_N_DECLARATION:
        rw_declare(rw, buf, node);
        break;
    case RW_N_UNSET:
        rw_unset(rw, buf, node);
        break;
    case RW_N_COMMAND:
        rw_command(rw, buf, node, input);
        break;
    default:
        break;
    }
    rw->depth--;
}

void rw_walk_buf(struct rw *rw, struct rw_buf *buf)
{
    rw_parse(rw, buf);
    if (buf->node_count > 1)
        rw_walk_node(rw, buf, 1, NULL);
}

void rw_walk_file(struct rw *rw, struct rw_buf *buf)
{
    buf->walking = true;
    rw->file_depth++;
    rw_walk_buf(rw, buf);
    rw->file_depth--;
    buf->walking = false;
}

void rw_walk(struct rw *rw)
{
    rw_trail_undo(rw, 0);
    memset(rw->functions, 0, sizeof(rw->functions));
    memset(rw->written, 0, sizeof(rw->written));
    rw->local_count = 0;
    rw->scope = 0;
    rw->capture = NULL;
    rw->lastpipe = false;
    rw->cmds = NULL;
    rw->cmd_count = rw->cmd_capacity = 0;
    rw->leaving = RW_GOES_ON;
    rw->depth = rw->piped = rw->background = rw->file_depth = 0;
    rw->file_steps = 0;
    rw->opaque_env = false;
    rw->shell = rw_alloc(&rw->arena, sizeof(*rw->shell));
    rw->shell->buf = rw->root;
    rw_shell_first_line(rw->shell);
    memset(&rw->positional, 0, sizeof(rw->positional));
    rw->positional_known = rw->source->args != NULL;
    for (const char *const *a = rw->source->args; a && *a; a++) {
        struct rw_field *field = rw_fields_add(rw, &rw->positional);
        struct rw_frag frag = {
            *a, (uint32_t)strlen(*a), RW_DERIVED, RW_BARE, rw->root, 0, 0, NULL, false};
        rw_text_push(rw, &field->text, &frag);
        field->string = *a;
    }
    rw_walk_buf(rw, rw->root);
    /* What nothing calls in sight may still be called: from a trap, by `export -f`. */
    rw->leaving = RW_GOES_ON;
    for (size_t i = 0; i < RW_FUNCTION_BUCKETS; i++)
        for (struct rw_function *f = rw->functions[i]; f; f = f->next)
            if (!f->called)
                rw_walk_function(rw, f, NULL, 0);
}
