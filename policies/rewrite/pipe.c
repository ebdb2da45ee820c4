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

/* The text that a command puts out, where that is known: echo, printf, cat with a heredoc. */
static bool output_of(struct rw *rw, struct rw_buf *buf, uint32_t index,
                      const struct rw_text *input, struct rw_text *out)
{
    const struct rw_node *node = &buf->nodes[index];
    struct rw_fields fields = {0};

    if (node->type == RW_N_REDIRECTED && node->first) {
        for (uint32_t i = buf->nodes[node->first].next; i; i = buf->nodes[i].next) {
            const struct rw_node *child = &buf->nodes[i];
            const struct rw_heredoc *doc = rw_heredoc_at(buf, child->start);
            if (!doc)
                continue;
            struct rw_text *body = rw_alloc(&rw->arena, sizeof(*body));
            rw_expand_heredoc(rw, buf, doc, body);
            input = body;
        }
        index = node->first;
        node = &buf->nodes[index];
    }
    if (node->type != RW_N_COMMAND)
        return false;
    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        const struct rw_node *child = &buf->nodes[i];
        if (child->type == RW_N_COMMENT || child->type == RW_N_FILE_REDIRECT ||
            child->type == RW_N_HERESTRING)
            continue;
        rw_expand_word(rw, buf, child->start, rw_word_end(buf, child, &i), true, &fields);
    }
    return rw_output(rw, &fields, input, out);
}

bool rw_output(struct rw *rw, const struct rw_fields *fields, const struct rw_text *input,
               struct rw_text *out)
{
    const char *name = fields->count ? fields->items[0].string : "";
    size_t from = 1;

    memset(out, 0, sizeof(*out));
    if (strcmp(name, "cat") == 0 && input &&
        (fields->count == 1 || strcmp(fields->items[1].string, "-") == 0)) {
        *out = *input;
        return true;
    }
    if (strcmp(name, "echo") == 0) {
        while (from < fields->count && fields->items[from].string[0] == '-' &&
               strspn(fields->items[from].string + 1, "neE") + 1 ==
                   strlen(fields->items[from].string))
            from++;
        rw_join(rw, fields, from, fields->count, out);
        return true;
    }
    if (strcmp(name, "printf") == 0 && fields->count >= 2) {
        const char *format = fields->items[1].string;
        bool quote = strncmp(format, "%q", 2) == 0;
        if (!quote && strncmp(format, "%s", 2) != 0)
            return false;
        struct rw_frag mark = {"'", 1, RW_DERIVED, RW_DQ, rw->root, 0, 0, NULL, false};
        for (size_t i = 2; i < fields->count; i++) {
            /* %q puts quotes only where they are needed, but quotes never hurt. */
            bool bare = strspn(fields->items[i].string, RW_PLAIN) == fields->items[i].text.length;
            mark.bytes = i > 2 ? " '" : "'";
            mark.length = i > 2 ? (bare || !quote ? 1 : 2) : (bare || !quote ? 0 : 1);
            rw_text_push(rw, out, &mark);
            rw_text_append(rw, out, &fields->items[i].text);
            mark.bytes = "'";
            mark.length = quote && !bare ? 1 : 0;
            rw_text_push(rw, out, &mark);
        }
        return true;
    }
    return false;
}

bool rw_output_of_buf(struct rw *rw, struct rw_buf *buf, struct rw_text *out)
{
    uint32_t only = buf->node_count > 1 ? buf->nodes[1].first : 0;

    return only && !buf->nodes[only].next && output_of(rw, buf, only, NULL, out);
}

static void write_file(struct rw *rw, const char *path, const struct rw_text *text)
{
    struct rw_written *file = rw_alloc(&rw->arena, sizeof(*file));

    file->path = path;
    file->text = text;
    file->next = rw->written;
    rw->written = file;
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

void rw_redirected(struct rw *rw, struct rw_buf *buf, const struct rw_node *node,
                   const struct rw_text *input)
{
    const char *path = NULL;
    uint32_t body = 0;

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
                path = to ? to : path;
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
    struct rw_text out;
    if (path && output_of(rw, buf, body, input, &out)) {
        struct rw_text *text = rw_alloc(&rw->arena, sizeof(*text));
        *text = out;
        write_file(rw, path, text);
    }
    rw_walk_node(rw, buf, body, input);
    for (size_t i = before; path && i < rw->cmd_count; i++)
        if (rw->cmds[i].program || rw->cmds[i].file)
            note_log(rw, path);
}

void rw_pipeline(struct rw *rw, struct rw_buf *buf, const struct rw_node *node,
                 const struct rw_text *input)
{
    size_t before = rw->cmd_count;
    struct rw_text carry;
    bool carries = false, program = false;

    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        if (buf->nodes[i].type == RW_N_TOKEN || buf->nodes[i].type == RW_N_COMMENT)
            continue;
        struct rw_text out;
        const struct rw_text *in = carries ? &carry : input;
        bool known = output_of(rw, buf, i, in, &out);
        bool hides = !rw->shell->pipefail && buf->nodes[i].next != 0;
        size_t here = rw->cmd_count;
        rw->piped += hides;
        rw_walk_node(rw, buf, i, in);
        rw->piped -= hides;
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
        carries = known;
        if (known)
            carry = out;
    }
}
