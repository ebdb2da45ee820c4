/* SPDX-License-Identifier: Apache-2.0
 *
 * Goes through a script the way bash would, in one world: every statement is looked at, a branch
 * is taken or not as the world says, a loop runs over what is known and else once. */
#include "policies/rewrite/walk.h"

#include <string.h>

#define MAX_DEPTH      40
#define MAX_ITERATIONS 256

static void loop(struct rw *rw, struct rw_buf *buf, const struct rw_node *node)
{
    const char *name = NULL;
    struct rw_fields words = {0};
    uint32_t body = 0;
    bool in = false;

    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        const struct rw_node *child = &buf->nodes[i];
        if (child->type == RW_N_DO || child->type == RW_N_COMPOUND)
            body = i;
        else if (child->type == RW_N_VARIABLE_NAME && !name)
            name = rw_strndup(&rw->arena, buf->bytes + child->start, child->end - child->start);
        else if (rw_is_token(buf, child, "in"))
            in = true;
        else if (in && child->type != RW_N_TOKEN && child->type != RW_N_COMMENT)
            rw_expand_word(rw, buf, child->start, rw_word_end(buf, child, &i), true, &words);
    }
    if (!body)
        return;
    if (!name || (in && !words.count)) {
        rw_walk_node(rw, buf, body, NULL);
        return;
    }
    const struct rw_fields *over = in ? &words : &rw->positional;
    struct rw_fields copy = *over;
    if (!in && !rw->positional_known)
        copy.count = 0;
    bool wild = !copy.count;
    for (size_t i = 0; i < copy.count && !wild; i++)
        wild = copy.items[i].text.wild;
    if (wild) {
        rw_var_set_unknown(rw, name);
        rw_walk_node(rw, buf, body, NULL);
        return;
    }
    for (size_t i = 0; i < copy.count && i < MAX_ITERATIONS; i++) {
        rw_var_set_text(rw, name, &copy.items[i].text);
        rw_var_at(rw, name, strlen(name))->loop = copy.count > 1;
        rw_walk_node(rw, buf, body, NULL);
    }
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
    rw_walk_node(rw, (struct rw_buf *)(uintptr_t)function->buf, function->node, NULL);
    if (rw->leaving == RW_RETURNS)
        rw->leaving = RW_GOES_ON;
    rw->positional = saved;
    rw->positional_known = known;
}

static void children(struct rw *rw, struct rw_buf *buf, const struct rw_node *node,
                     const struct rw_text *input)
{
    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        uint32_t next = buf->nodes[i].next;
        bool hides = next && rw_is_token(buf, &buf->nodes[next], "&");
        rw->background += hides;
        rw_walk_node(rw, buf, i, input);
        rw->background -= hides;
    }
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
        children(rw, buf, node, input);
        if (rw->leaving == RW_EXITS)
            rw->leaving = RW_GOES_ON;
        rw_trail_undo(rw, mark);
        break;
    case RW_N_PROGRAM:
    case RW_N_COMPOUND:
    case RW_N_DO:
    case RW_N_WHILE:
    case RW_N_NEGATED:
    case RW_N_ASSIGNMENTS:
    case RW_N_ERROR:
    case RW_N_ELSE:
        children(rw, buf, node, input);
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
        loop(rw, buf, node);
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
        for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
            if (buf->nodes[i].type != RW_N_VARIABLE_NAME)
                continue;
            struct rw_value *value = rw_alloc(&rw->arena, sizeof(*value));
            value->unset = true;
            rw_var_set(rw,
                       rw_var_at(rw, buf->bytes + buf->nodes[i].start,
                                 buf->nodes[i].end - buf->nodes[i].start),
                       value);
        }
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
    rw->written = NULL;
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
