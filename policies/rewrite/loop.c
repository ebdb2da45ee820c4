/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops: over words and lines that are known as often as bash would, else once. */
#include <string.h>

#include "policies/rewrite/walk.h"

#define MAX_ITERATIONS 256

/* How often the body is run, and so what it puts out, is not known. */
static void lose_output(struct rw *rw)
{
    if (rw->capture)
        rw->capture->unknown = true;
}

void rw_loop(struct rw *rw, struct rw_buf *buf, const struct rw_node *node)
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
        if (node->type == RW_N_CFOR)
            rw_arithmetic_loses(rw, buf->bytes + node->start, buf->nodes[body].start - node->start);
        rw_walk_node(rw, buf, body, NULL);
        lose_output(rw);
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
        lose_output(rw);
        return;
    }
    for (size_t i = 0; i < copy.count && i < MAX_ITERATIONS; i++) {
        rw_var_set_text(rw, name, &copy.items[i].text);
        rw_var_at(rw, name, strlen(name))->loop = copy.count > 1;
        rw_walk_node(rw, buf, body, NULL);
    }
}

/* `while read …` over what is known: once for each line. Else the body is seen once. */
void rw_repeat(struct rw *rw, struct rw_buf *buf, const struct rw_node *node,
               const struct rw_text *input)
{
    const char *head = buf->bytes + node->start;
    uint32_t body = 0, at = 0;
    int lines = 0;

    for (uint32_t i = node->first; i; i = buf->nodes[i].next)
        if (buf->nodes[i].type == RW_N_DO)
            body = i;
    bool reads = input && body && rw_text_known(input) &&
                 memmem(head, buf->nodes[body].start - node->start, "read ", 5);
    if (!reads) {
        rw_walk_children(rw, buf, node, input);
        lose_output(rw);
        return;
    }
    const char *string = rw_text_string(rw, input);
    while (at < input->length && lines++ < MAX_ITERATIONS && !rw->leaving) {
        uint32_t stop = at + (uint32_t)strcspn(string + at, "\n");
        struct rw_text *line = rw_alloc(&rw->arena, sizeof(*line));
        rw_text_slice(rw, input, at, stop, line);
        for (uint32_t i = node->first; i; i = buf->nodes[i].next)
            rw_walk_node(rw, buf, i, i == body ? NULL : line);
        at = stop + 1;
    }
}
