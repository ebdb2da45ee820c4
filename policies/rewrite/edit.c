/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "policies/rewrite/plan.h"

/* A word is taken away where another is added: the new one takes its place. */
static bool takes_place(struct rw_change *old, const struct rw_change *new)
{
    const char *text = new->text;

    if (*old->text || old->word_end <= old->word_start || new->start != new->end ||
        new->start < old->word_start || new->start > old->word_end)
        return false;
    while (*text == ' ')
        text++;
    old->start = old->word_start;
    old->end = old->word_end;
    old->text = text;
    return true;
}

static bool already_there(const struct rw_change *old, const struct rw_change *new)
{
    const char *text = new->text;

    while (*text == ' ')
        text++;
    return old->word_end > old->word_start && *old->text &&
           new->start ==
               new->end &&new->start >= old->word_start &&new->start <=
                   old->word_end &&strcmp(old->text, text) ==
               0;
}

bool rw_changes_add(struct rw *rw, struct rw_changes *changes, const struct rw_change *change)
{
    for (size_t i = 0; i < changes->count; i++) {
        struct rw_change *old = &changes->items[i];
        if (old->buf != change->buf)
            continue;
        if (takes_place(old, change) || already_there(old, change))
            return true;
        if (old->start == change->start && old->end == change->end &&
            strcmp(old->text, change->text) == 0)
            return true;
        if (change->start < old->end && old->start < change->end)
            return false;
    }
    changes->items = rw_more(&rw->arena, changes->items, changes->count, &changes->capacity,
                             sizeof(*changes->items));
    changes->items[changes->count++] = *change;
    return true;
}

/* The next change of a buffer at or behind `at` that is not done yet: the lowest start; of those
 * that insert at one place, in the order in which they were added. */
static const struct rw_change *next_change(const struct rw_changes *changes,
                                           const struct rw_buf *buf, const bool *done,
                                           size_t *index)
{
    const struct rw_change *best = NULL;

    for (size_t i = 0; i < changes->count; i++) {
        const struct rw_change *change = &changes->items[i];
        if (done[i] || change->buf != buf)
            continue;
        bool before = !best || change->start < best->start ||
                      (change->start == best->start && change->end == change->start &&
                       best->end > best->start);
        if (before) {
            best = change;
            *index = i;
        }
    }
    return best;
}

const char *rw_changes_apply(struct rw *rw, const struct rw_changes *changes,
                             const struct rw_buf *buf, size_t *length)
{
    size_t size = buf->length + 1;
    bool *done = rw_alloc(&rw->arena, changes->count + 1);

    for (size_t i = 0; i < changes->count; i++)
        size += strlen(changes->items[i].text);
    char *out = rw_alloc(&rw->arena, size);
    size_t to = 0;
    uint32_t at = 0;
    size_t index = 0;
    for (const struct rw_change *c; (c = next_change(changes, buf, done, &index)) != NULL;) {
        done[index] = true;
        memcpy(out + to, buf->bytes + at, c->start - at);
        to += c->start - at;
        size_t n = strlen(c->text);
        memcpy(out + to, c->text, n);
        to += n;
        at = c->end;
    }
    memcpy(out + to, buf->bytes + at, buf->length - at);
    to += buf->length - at;
    *length = to;
    return out;
}

size_t rw_changes_splices(struct rw *rw, const struct rw_changes *changes, const struct rw_buf *buf,
                          struct rw_splice *out)
{
    bool *done = rw_alloc(&rw->arena, changes->count + 1);
    size_t count = 0, index = 0;

    for (const struct rw_change *c; (c = next_change(changes, buf, done, &index)) != NULL;) {
        done[index] = true;
        out[count++] = (struct rw_splice){c->start, c->end, (uint32_t)strlen(c->text)};
    }
    return count;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

void rw_tidy_removal(const struct rw_buf *buf, uint32_t *start, uint32_t *end)
{
    const char *b = buf->bytes;
    uint32_t length = buf->length;
    uint32_t from = *start, to = *end;

    while (from > 0 && is_blank(b[from - 1]))
        from--;
    while (to < length && is_blank(b[to]))
        to++;
    bool first = from == 0 || b[from - 1] == '\n';
    bool continued = to + 1 < length && b[to] == '\\' && b[to + 1] == '\n';
    bool last = to >= length || b[to] == '\n' || continued;
    if (first && last && from > 0) {
        if (continued) { /* a line of its own, and the command goes on below it */
            *start = from;
            *end = to + 2;
            return;
        }
        bool joined = from > 1 && b[from - 2] == '\\';
        if (!joined) {
            *start = from;
            *end = to < length ? to + 1 : to;
            return;
        }
        /* The last line of a command: the backslash above it goes too. */
        from -= 2;
        while (from > 0 && is_blank(b[from - 1]))
            from--;
        *start = from;
        *end = to;
        return;
    }
    if (first) { /* others follow on the line */
        *end = to;
        return;
    }
    if (from == *start) { /* stands behind a quote or bracket */
        *end = is_blank(b[*end < length ? *end : 0]) ? to : *end;
        return;
    }
    *start = from;
    if (last && !continued)
        *end = to;
}
