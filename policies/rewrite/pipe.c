/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands with their words, redirections and pipes: what flows from one to the next, and where the
 * output goes. */
#include "policies/rewrite/walk.h"

#include <string.h>

static void add_env(struct rw *rw, struct rw_cmd *cmd, const struct rw_node *node, const char *name,
                    const struct rw_text *value)
{
    struct rw_env *env = rw_alloc(&rw->arena, sizeof(*env));

    env->name = name;
    env->value = *value;
    env->buf = cmd->buf;
    env->start = node->start;
    env->end = node->end;
    env->next = cmd->env;
    cmd->env = env;
}

void rw_command(struct rw *rw, struct rw_buf *buf, const struct rw_node *node,
                const struct rw_text *input)
{
    struct rw_cmd cmd = {.buf = buf, .start = node->start, .end = node->start};
    struct rw_text here;
    bool named = false;

    cmd.key = rw_hash(buf->key, node->order);
    if (buf == rw->shell->buf)
        rw->shell->at = node->start;
    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        const struct rw_node *child = &buf->nodes[i];
        if (child->type == RW_N_COMMENT || child->type == RW_N_FILE_REDIRECT)
            continue;
        if (child->type == RW_N_HERESTRING) {
            uint32_t at = child->start;
            while (at < child->end && (buf->bytes[at] == '<' || buf->bytes[at] == ' '))
                at++;
            rw_expand_text(rw, buf, at, child->end, RW_BARE, &here);
            input = &here;
            continue;
        }
        if (child->type == RW_N_ASSIGNMENT && !named) {
            const struct rw_node *name = &buf->nodes[child->first];
            struct rw_fields value = {0};
            if (name->end + 1 > child->end)
                continue;
            rw_expand_word(rw, buf, name->end + 1, child->end, false, &value);
            add_env(rw, &cmd, child,
                    rw_strndup(&rw->arena, buf->bytes + name->start, name->end - name->start),
                    &value.items[0].text);
            continue;
        }
        named = true;
        uint32_t end = rw_word_end(buf, child, &i);
        rw_expand_word(rw, buf, child->start, end, true, &cmd.fields);
        if (end > cmd.end)
            cmd.end = end;
    }
    if (cmd.fields.count)
        rw_run(rw, &cmd, input);
}

static void note_log(struct rw *rw, const char *path)
{
    for (size_t i = 0; i < rw->log_count; i++)
        if (strcmp(rw->logs[i], path) == 0)
            return;
    rw->logs = rw_more(&rw->arena, rw->logs, rw->log_count, &rw->log_capacity, sizeof(*rw->logs));
    rw->logs[rw->log_count++] = path;
}

/* Where a redirection writes to; NULL for input, descriptors and what is not known. */
static const char *output_path(struct rw *rw, const struct rw_buf *buf, const struct rw_node *node)
{
    uint32_t at = node->start;
    struct rw_text text;

    while (at < node->end && (buf->bytes[at] >= '0' && buf->bytes[at] <= '9'))
        at++;
    uint32_t op_at = at;
    while (at < node->end && strchr("&>|", buf->bytes[at]))
        at++;
    if (at == op_at || !memchr(buf->bytes + op_at, '>', at - op_at) || (buf->bytes[at - 1] == '&'))
        return NULL;
    while (at < node->end && (buf->bytes[at] == ' ' || buf->bytes[at] == '\t'))
        at++;
    if (at < node->end && buf->bytes[at] == '>')
        return NULL;
    rw_expand_text(rw, buf, at, node->end, RW_BARE, &text);
    if (!text.length || !rw_text_known(&text))
        return NULL;
    const char *path = rw_text_string(rw, &text);
    return strncmp(path, "/dev/", 5) == 0 ? NULL : path;
}

/* A redirection of standard output, wherever it goes. */
static bool moves_output(const struct rw_buf *buf, const struct rw_node *node)
{
    const char *b = buf->bytes + node->start;

    return b[0] == '>' || (b[0] == '1' && b[1] == '>') || (b[0] == '&' && b[1] == '>');
}

/* "< <(commands)" */
static const struct rw_text *process_input(struct rw *rw, const struct rw_buf *buf,
                                           const struct rw_node *node)
{
    uint32_t at = node->start;
    struct rw_text *text = rw_alloc(&rw->arena, sizeof(*text));

    if (buf->bytes[at] != '<')
        return NULL;
    for (at++; at < node->end && (buf->bytes[at] == ' ' || buf->bytes[at] == '\t');)
        at++;
    if (at + 2 >= node->end || buf->bytes[at] != '<' || buf->bytes[at + 1] != '(')
        return NULL;
    uint32_t stop = rw_skip_paren(buf->bytes, at + 1, node->end);
    return rw_capture_region(rw, buf, at + 2, stop - 1, text) ? text : NULL;
}

void rw_redirected(struct rw *rw, struct rw_buf *buf, const struct rw_node *node,
                   const struct rw_text *input)
{
    const char *path = NULL;
    uint32_t body = 0;
    bool moved = false, append = false;

    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        const struct rw_node *child = &buf->nodes[i];
        if (child->type == RW_N_FILE_REDIRECT) {
            uint32_t at = child->start;
            while (at < child->end && buf->bytes[at] >= '0' && buf->bytes[at] <= '9')
                at++;
            const struct rw_heredoc *doc = rw_heredoc_at(buf, at);
            if (doc) {
                struct rw_text *text = rw_alloc(&rw->arena, sizeof(*text));
                rw_expand_heredoc(rw, buf, doc, text);
                input = text;
            } else {
                const char *to = output_path(rw, buf, child);
                const struct rw_text *from = process_input(rw, buf, child);
                input = from ? from : input;
                path = to ? to : path;
                if (moves_output(buf, child)) {
                    moved = true;
                    append = child->end - child->start > 2 && memmem(buf->bytes + at, 3, ">>", 2);
                }
            }
        } else if (child->type == RW_N_HERESTRING) {
            struct rw_text *text = rw_alloc(&rw->arena, sizeof(*text));
            uint32_t at = child->start;
            while (at < child->end && (buf->bytes[at] == '<' || buf->bytes[at] == ' '))
                at++;
            rw_expand_text(rw, buf, at, child->end, RW_BARE, text);
            input = text;
        } else if (!body && child->type != RW_N_TOKEN && child->type != RW_N_COMMENT) {
            body = i;
        }
    }
    if (!body)
        return;
    size_t before = rw->cmd_count;
    struct rw_capture *outer = rw->capture;
    struct rw_capture *own = rw_alloc(&rw->arena, sizeof(*own));
    if (moved)
        rw->capture = path ? own : NULL;
    rw_walk_node(rw, buf, body, input);
    rw->capture = outer;
    if (moved && path)
        rw_write_file(rw, path, own->unknown ? NULL : &own->text, append);
    for (size_t i = before; path && i < rw->cmd_count; i++)
        if (rw->cmds[i].program || rw->cmds[i].file)
            note_log(rw, path);
}

void rw_pipeline(struct rw *rw, struct rw_buf *buf, const struct rw_node *node,
                 const struct rw_text *input)
{
    size_t before = rw->cmd_count;
    const struct rw_text *in = input;
    struct rw_capture *outer = rw->capture;
    bool program = false;

    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        if (buf->nodes[i].type == RW_N_TOKEN || buf->nodes[i].type == RW_N_COMMENT)
            continue;
        bool last = buf->nodes[i].next == 0;
        bool hides = !rw->shell->pipefail && !last;
        size_t here = rw->cmd_count, mark = rw_trail_mark(rw);
        struct rw_capture *own = rw_alloc(&rw->arena, sizeof(*own));
        rw->capture = last ? outer : own;
        rw->piped += hides;
        rw_walk_node(rw, buf, i, in);
        rw->piped -= hides;
        rw->capture = outer;
        /* Each part is a subshell: what it sets is lost, and its exit ends nothing else. */
        if (!last || !rw->lastpipe) {
            rw_trail_undo(rw, mark);
            rw->leaving = RW_GOES_ON;
        }
        for (size_t c = here; c < rw->cmd_count; c++) {
            const struct rw_fields *fields = &rw->cmds[c].fields;
            if (strcmp(fields->items[0].string, "tee") != 0 || !program)
                continue;
            for (size_t f = 1; f < fields->count; f++)
                if (fields->items[f].string[0] != '-' && rw_text_known(&fields->items[f].text))
                    note_log(rw, fields->items[f].string);
        }
        for (size_t c = before; c < rw->cmd_count; c++)
            program |= rw->cmds[c].program || rw->cmds[c].file;
        in = own->unknown ? NULL : &own->text;
    }
}
