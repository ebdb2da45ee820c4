/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds here-documents before the grammar sees the script. The grammar trips over what may follow
 * an operator on its line (`<<EOF | tee x`, `<<EOF &`), so the copy that it parses has a plain
 * redirection there and blanks where the body stood. Offsets stay the same. */
#include "policies/rewrite/rw.h"

#include <string.h>

#define MAX_PENDING 16
#define MAX_NESTING 32

struct finder {
    struct rw *rw;
    struct rw_buf *buf;
    char *masked;
    struct rw_heredoc pending[MAX_PENDING];
    char delimiters[MAX_PENDING][80];
    size_t pending_count;
};

static uint32_t scan(struct finder *f, uint32_t at, char close, int depth);

/* Reads the operator at `at`; returns the index behind the delimiter word. */
static uint32_t read_operator(struct finder *f, uint32_t at)
{
    const char *b = f->buf->bytes;
    uint32_t end = f->buf->length;
    struct rw_heredoc doc = {.operator_at = at};
    char delimiter[80];
    size_t n = 0;

    at += 2;
    if (at < end && b[at] == '-') {
        doc.strip_tabs = true;
        at++;
    }
    while (at < end && (b[at] == ' ' || b[at] == '\t'))
        at++;
    while (at < end && !strchr(" \t\n;|&()<>", b[at])) {
        if (b[at] == '\'' || b[at] == '"') {
            char quote = b[at++];
            doc.quoted = true;
            while (at < end && b[at] != quote && b[at] != '\n') {
                if (n + 1 < sizeof(delimiter))
                    delimiter[n++] = b[at];
                at++;
            }
            if (at < end)
                at++;
            continue;
        }
        if (b[at] == '\\') {
            doc.quoted = true;
            at++;
            if (at >= end)
                break;
        }
        if (n + 1 < sizeof(delimiter))
            delimiter[n++] = b[at];
        at++;
    }
    if (!n || f->pending_count == MAX_PENDING)
        return at;
    f->masked[doc.operator_at + 1] = ' ';
    if (doc.strip_tabs)
        f->masked[doc.operator_at + 2] = ' ';
    delimiter[n] = '\0';
    f->pending[f->pending_count] = doc;
    memcpy(f->delimiters[f->pending_count], delimiter, n + 1);
    f->pending_count++;
    return at;
}

/* Reads the bodies of what is pending, from the start of a line; returns where they end. */
static uint32_t read_bodies(struct finder *f, uint32_t at)
{
    const char *b = f->buf->bytes;
    uint32_t end = f->buf->length;
    uint32_t first = at;

    for (size_t i = 0; i < f->pending_count; i++) {
        struct rw_heredoc *doc = &f->pending[i];
        size_t length = strlen(f->delimiters[i]);
        doc->body_start = at;
        doc->body_end = end;
        while (at < end) {
            const char *newline = memchr(b + at, '\n', end - at);
            uint32_t line_end = newline ? (uint32_t)(newline - b) : end;
            uint32_t line = at;
            while (doc->strip_tabs && line < line_end && b[line] == '\t')
                line++;
            at = newline ? line_end + 1 : end;
            if (line_end - line == length && memcmp(b + line, f->delimiters[i], length) == 0) {
                doc->body_end = at - (uint32_t)(line_end - line) - (newline ? 1 : 0);
                while (doc->body_end > doc->body_start && b[doc->body_end - 1] == '\t' &&
                       doc->strip_tabs)
                    doc->body_end--;
                break;
            }
        }
        f->buf->heredocs = rw_more(&f->rw->arena, f->buf->heredocs, f->buf->heredoc_count,
                                   &f->buf->heredoc_capacity, sizeof(*doc));
        f->buf->heredocs[f->buf->heredoc_count++] = *doc;
    }
    f->pending_count = 0;
    if (at > first)
        memset(f->masked + first, ' ', at - first - (b[at - 1] == '\n' ? 1 : 0));
    return at;
}

static uint32_t scan_double(struct finder *f, uint32_t at, int depth)
{
    const char *b = f->buf->bytes;
    uint32_t end = f->buf->length;

    for (at++; at < end;) {
        if (b[at] == '\\')
            at += 2;
        else if (b[at] == '"')
            return at + 1;
        else if (b[at] == '$' && at + 2 < end && b[at + 1] == '(' && b[at + 2] != '(')
            at = scan(f, at + 2, ')', depth + 1);
        else if (b[at] == '$' && at + 1 < end && b[at + 1] == '(')
            at = rw_skip_paren(b, at + 1, end);
        else if (b[at] == '$' && at + 1 < end && b[at + 1] == '{')
            at = rw_skip_brace(b, at + 1, end);
        else
            at++;
    }
    return end;
}

static uint32_t scan(struct finder *f, uint32_t at, char close, int depth)
{
    const char *b = f->buf->bytes;
    uint32_t end = f->buf->length;
    bool word_start = true;

    if (depth > MAX_NESTING)
        return end;
    while (at < end) {
        char c = b[at];
        bool fresh = word_start;
        word_start = false;
        if (c == '\\') {
            at += 2;
        } else if (c == '\'') {
            at = rw_skip_single(b, at, end);
        } else if (c == '"') {
            at = scan_double(f, at, depth);
        } else if (c == '#' && fresh) {
            while (at < end && b[at] != '\n')
                at++;
            word_start = true;
        } else if (c == '$' && at + 2 < end && b[at + 1] == '(' && b[at + 2] != '(') {
            at = scan(f, at + 2, ')', depth + 1);
        } else if (c == '$' && at + 1 < end && b[at + 1] == '(') {
            at = rw_skip_paren(b, at + 1, end);
        } else if (c == '$' && at + 1 < end && b[at + 1] == '{') {
            at = rw_skip_brace(b, at + 1, end);
        } else if (c == '(' && at + 1 < end && b[at + 1] == '(' && fresh) {
            at = rw_skip_paren(b, at, end);
        } else if (c == '(') {
            at = scan(f, at + 1, ')', depth + 1);
        } else if (c == ')' && close == ')') {
            return at + 1;
        } else if (c == '<' && at + 2 < end && b[at + 1] == '<' && b[at + 2] == '<') {
            at += 3;
        } else if (c == '<' && at + 1 < end && b[at + 1] == '<') {
            at = read_operator(f, at);
        } else if (c == '\n') {
            at++;
            if (f->pending_count)
                at = read_bodies(f, at);
            word_start = true;
        } else {
            at++;
            word_start = rw_separates(c);
        }
    }
    return end;
}

/* Most scripts have no "<<"; memchr is much faster than memmem for two bytes. */
static bool has_operator(const char *bytes, uint32_t length)
{
    const char *at = bytes, *end = bytes + length;

    while (at < end && (at = memchr(at, '<', (size_t)(end - at))) != NULL) {
        if (at + 1 < end && at[1] == '<')
            return true;
        at++;
    }
    return false;
}

void rw_find_heredocs(struct rw *rw, struct rw_buf *buf, char *masked)
{
    if (!has_operator(buf->bytes, buf->length))
        return;
    struct finder *f = rw_alloc(&rw->arena, sizeof(*f));
    f->rw = rw;
    f->buf = buf;
    f->masked = masked;
    for (uint32_t at = 0; at < buf->length;)
        at = scan(f, at, '\0', 0);
    if (f->pending_count)
        read_bodies(f, buf->length);
}

const struct rw_heredoc *rw_heredoc_at(const struct rw_buf *buf, uint32_t at)
{
    for (size_t i = 0; i < buf->heredoc_count; i++)
        if (buf->heredocs[i].operator_at == at)
            return &buf->heredocs[i];
    return NULL;
}
