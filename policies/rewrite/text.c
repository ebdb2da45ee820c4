/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/rewrite/rw.h"

#include <string.h>

/* No value of a real script is longer; a script that doubles a variable in a loop stops here. */
#define TEXT_LIMIT (1U << 20)

/* Two literal fragments that stand side by side in the source are one. */
static bool joins(const struct rw_frag *a, const struct rw_frag *b)
{
    return a->kind == RW_LITERAL && b->kind == RW_LITERAL && a->buf == b->buf &&
           a->quote == b->quote && a->via == b->via && a->end == b->start &&
           a->end - a->start == a->length && b->end - b->start == b->length &&
           a->bytes + a->length == b->bytes;
}

void rw_text_push(struct rw *rw, struct rw_text *text, const struct rw_frag *frag)
{
    if (!frag->length)
        return;
    if (text->length + frag->length > TEXT_LIMIT)
        longjmp(rw->bail, 1);
    text->length += frag->length;
    if (text->count && joins(&text->frags[text->count - 1], frag)) {
        text->frags[text->count - 1].length += frag->length;
        text->frags[text->count - 1].end = frag->end;
        return;
    }
    text->frags =
        rw_more(&rw->arena, text->frags, text->count, &text->capacity, sizeof(*text->frags));
    text->frags[text->count++] = *frag;
}

void rw_text_append(struct rw *rw, struct rw_text *text, const struct rw_text *more)
{
    for (size_t i = 0; i < more->count; i++)
        rw_text_push(rw, text, &more->frags[i]);
    text->wild |= more->wild;
}

void rw_text_slice(struct rw *rw, const struct rw_text *text, uint32_t from, uint32_t to,
                   struct rw_text *out)
{
    uint32_t at = 0;

    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < text->count && at < to; at += text->frags[i++].length) {
        struct rw_frag frag = text->frags[i];
        uint32_t skip = from > at ? from - at : 0;
        uint32_t stop = to - at < frag.length ? to - at : frag.length;
        if (skip >= stop)
            continue;
        if (frag.kind == RW_LITERAL && frag.end - frag.start == frag.length) {
            frag.end = frag.start + stop;
            frag.start += skip;
        }
        frag.partial |= stop - skip != frag.length;
        frag.bytes += skip;
        frag.length = stop - skip;
        rw_text_push(rw, out, &frag);
    }
}

const char *rw_text_string(struct rw *rw, const struct rw_text *text)
{
    char *string = rw_alloc(&rw->arena, (size_t)text->length + 1);
    size_t at = 0;

    for (size_t i = 0; i < text->count; i++) {
        memcpy(string + at, text->frags[i].bytes, text->frags[i].length);
        at += text->frags[i].length;
    }
    return string;
}

bool rw_text_known(const struct rw_text *text)
{
    for (size_t i = 0; i < text->count; i++)
        if (text->frags[i].kind == RW_UNKNOWN)
            return false;
    return !text->wild;
}

void rw_text_through(struct rw *rw, struct rw_text *text, const struct rw_via *via)
{
    struct rw_via *node = NULL;

    for (size_t i = 0; i < text->count; i++) {
        if (!node || node->next != text->frags[i].via) {
            node = rw_alloc(&rw->arena, sizeof(*node));
            *node = *via;
            node->next = text->frags[i].via;
        }
        text->frags[i].via = node;
    }
}
