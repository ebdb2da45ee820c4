/* SPDX-License-Identifier: Apache-2.0
 *
 * Where bytes of a value can be changed. A text came through a chain of expansions, and each link
 * that gave the whole of it is a place: the literal at the far end, or the expansion itself. The
 * best place is the literal, unless a variable on the way there is used elsewhere too. */
#include <ctype.h>
#include <string.h>

#include "policies/rewrite/calls.h"

#define MAX_LEVELS 48

static bool name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static size_t uses_in(const struct rw_buf *buf, const char *name)
{
    const char *b = buf->bytes;
    size_t length = buf->length, n = strlen(name), count = 0;
    size_t arithmetic_end = 0;

    if (!n)
        return 1;
    for (size_t i = 0; i < length; i++) {
        char before = i ? b[i - 1] : '\n';
        if (b[i] == '#' && (before == '\n' || before == ' ' || before == '\t')) {
            while (i < length && b[i] != '\n')
                i++;
            continue;
        }
        if (b[i] == '(' && i + 1 < length && b[i + 1] == '(' && i >= arithmetic_end)
            arithmetic_end = rw_skip_paren(b, (uint32_t)i, (uint32_t)length);
        if (b[i] != *name || length - i < n || memcmp(b + i, name, n) != 0 ||
            (i + n < length && name_char(b[i + n])) || name_char(before))
            continue;
        bool braced = (before == '{' || before == '!' || before == '#') && i > 1;
        if (before == '$' || braced || i < arithmetic_end)
            count++;
    }
    return count;
}

static void add_option(struct rw *rw, struct rw_places *out, const struct rw_changes *changes)
{
    out->options =
        rw_more(&rw->arena, out->options, out->count, &out->capacity, sizeof(*out->options));
    out->options[out->count++] = *changes;
}

static void add_change(struct rw *rw, struct rw_places *out, const struct rw_buf *buf,
                       uint32_t start, uint32_t end, const char *text)
{
    struct rw_changes one = {0};
    struct rw_change change = {buf, start, end, text, 0, 0};

    rw_changes_add(rw, &one, &change);
    add_option(rw, out, &one);
}

/* A range of a buffer is to read `bytes`: directly, or where the buffer's text came from. */
static void replace_range(struct rw *rw, const struct rw_buf *buf, uint32_t start, uint32_t end,
                          const char *bytes, struct rw_places *out)
{
    if (!buf->text) {
        if (end > start && end <= buf->length)
            add_change(rw, out, buf, start, end, bytes);
        return;
    }
    struct rw_text slice;
    rw_text_slice(rw, buf->text, start, end, &slice);
    rw_places_replace(rw, &slice, bytes, out);
}

size_t rw_uses(const struct rw *rw, const char *name)
{
    return uses_in(rw->root, name);
}

/* What a sourced or called file sets is used there too. */
static size_t all_uses(const struct rw *rw, const struct rw_text *text, const char *name)
{
    size_t count = rw_uses(rw, name);

    for (const struct rw_buf *buf = rw->bufs; buf && rw_is_side_script(text->frags[0].buf);
         buf = buf->next)
        if (rw_is_side_script(buf))
            count += uses_in(buf, name);
    return count;
}

void rw_places_cut(struct rw *rw, const struct rw_buf *buf, uint32_t start, uint32_t end,
                   struct rw_places *out)
{
    while (end < buf->length && (buf->bytes[end] == ' ' || buf->bytes[end] == '\t'))
        end++;
    replace_range(rw, buf, start, end, "", out);
}

/* The literal bytes of a text when they stand side by side. */
static bool contiguous(const struct rw_text *text, struct rw_frag *whole)
{
    if (!text->count)
        return false;
    *whole = text->frags[0];
    if (whole->partial && whole->kind != RW_LITERAL)
        return false;
    if (text->count > 1 && whole->kind != RW_LITERAL)
        return false;
    for (size_t i = 1; i < text->count; i++) {
        const struct rw_frag *frag = &text->frags[i];
        if (frag->kind != RW_LITERAL || frag->buf != whole->buf || frag->quote != whole->quote ||
            frag->start < whole->end)
            return false;
        /* A line continuation between them goes with what is replaced. */
        for (uint32_t at = whole->end; at < frag->start; at++)
            if (whole->buf->bytes[at] != '\\' && whole->buf->bytes[at] != '\n')
                return false;
        whole->end = frag->end;
    }
    return true;
}

void rw_places_replace(struct rw *rw, const struct rw_text *slice, const char *bytes,
                       struct rw_places *out)
{
    const struct rw_via *sites[MAX_LEVELS];
    const struct rw_via **level = rw_alloc(&rw->arena, (slice->count + 1) * sizeof(*level));
    size_t count = 0;
    bool deep = true;
    struct rw_frag whole;

    if (!slice->count)
        return;
    for (size_t i = 0; i < slice->count; i++)
        level[i] = slice->frags[i].via;
    while (level[0] && count < MAX_LEVELS) {
        const struct rw_via *via = level[0];
        bool same = true;
        for (size_t i = 1; i < slice->count && same; i++)
            same = level[i] && level[i]->instance == via->instance;
        if (!same)
            break;
        bool covers = via->total == slice->length;
        if (covers)
            sites[count++] = via;
        if (via->fixed ||
            (covers && via->name && !isdigit((unsigned char)*via->name) && *via->name != '@' &&
             *via->name != '*' && all_uses(rw, slice, via->name) > 1)) {
            deep = false;
            break;
        }
        for (size_t i = 0; i < slice->count; i++)
            level[i] = level[i]->next;
    }
    if (deep && contiguous(slice, &whole))
        replace_range(rw, whole.buf, whole.start, whole.end, rw_encode(rw, whole.quote, bytes),
                      out);
    while (count > 0) {
        const struct rw_via *via = sites[--count];
        replace_range(rw, via->buf, via->start, via->end, rw_encode(rw, via->quote, bytes), out);
    }
}

/* Shell text for a context: blanks between words stay blanks where they are unquoted. */
static const char *encode_words(struct rw *rw, enum rw_quote quote, const char *bytes)
{
    if (quote == RW_BARE && strspn(bytes, RW_PLAIN " ") == strlen(bytes))
        return bytes;
    return rw_encode(rw, quote, bytes);
}

void rw_places_insert(struct rw *rw, const struct rw_buf *buf, uint32_t at, const char *bytes,
                      struct rw_places *out)
{
    if (!buf->text) {
        add_change(rw, out, buf, at, at, bytes);
        return;
    }
    const struct rw_text *text = buf->text;
    size_t left = SIZE_MAX;
    uint32_t offset = 0;
    for (size_t i = 0; i < text->count && offset < at; i++) {
        left = i;
        if (offset + text->frags[i].length >= at)
            break;
        offset += text->frags[i].length;
    }
    if (left == SIZE_MAX) {
        if (text->count && text->frags[0].kind == RW_LITERAL)
            rw_places_insert(rw, text->frags[0].buf, text->frags[0].start,
                             encode_words(rw, text->frags[0].quote, bytes), out);
        return;
    }
    const struct rw_frag *frag = &text->frags[left];
    bool at_end = offset + frag->length == at;
    const struct rw_frag *right = at_end && left + 1 < text->count ? &text->frags[left + 1] : NULL;
    const struct rw_via *inner = frag->via;
    const struct rw_via *next = right ? right->via : NULL;
    for (int depth = 0; at_end && inner && depth < MAX_LEVELS; depth++) {
        if (next && next->instance == inner->instance) {
            next = next->next;
            inner = inner->next;
            continue;
        }
        next = NULL;
        if (inner->name)
            rw_places_insert(rw, inner->buf, inner->end, encode_words(rw, inner->quote, bytes),
                             out);
        inner = inner->next;
    }
    uint32_t where = frag->end;
    if (!at_end) {
        if (frag->kind != RW_LITERAL || frag->end - frag->start != frag->length)
            return;
        where = frag->start + (at - offset);
    }
    if (frag->end > frag->start)
        rw_places_insert(rw, frag->buf, where, encode_words(rw, frag->quote, bytes), out);
}

/* Ways to take one field away: the word that gave it, or its bytes in a longer string. */
static void remove_field(struct rw *rw, const struct rw_text *text, struct rw_places *out)
{
    struct rw_places raw = {0};

    rw_places_replace(rw, text, "", &raw);
    /* Inside quotes of its own ("--flag", '4') the quotes go with it. */
    for (size_t i = 0; i < raw.count; i++) {
        struct rw_change *change = &raw.options[i].items[0];
        const char *b = change->buf->bytes;
        if (change->start > 0 && change->end < change->buf->length &&
            b[change->start - 1] == b[change->end] && strchr("'\"", b[change->end]) &&
            (change->start < 2 || strchr(" \t\n(", b[change->start - 2]))) {
            char after = change->end + 1 < change->buf->length ? b[change->end + 1] : '\n';
            if (strchr(" \t\n)", after)) {
                change->start--;
                change->end++;
            }
        }
        change->text = "";
        add_option(rw, out, &raw.options[i]);
    }
}

static bool only_blanks(const struct rw_buf *buf, uint32_t from, uint32_t to)
{
    for (; from < to; from++)
        if (!strchr(" \t\n\\", buf->bytes[from]))
            return false;
    return true;
}

void rw_places_remove(struct rw *rw, const struct rw_cmd *cmd, size_t from, size_t to,
                      struct rw_places *out)
{
    struct rw_places each[8] = {{0}};
    size_t fields = to - from < 8 ? to - from : 8;
    size_t ways = SIZE_MAX;

    for (size_t i = 0; i < fields; i++) {
        remove_field(rw, &cmd->fields.items[from + i].text, &each[i]);
        if (each[i].count < ways)
            ways = each[i].count;
    }
    /* The flag may have fewer places than its value: pair each with the nearest in one buffer. */
    for (size_t way = 0; way < each[0].count && ways; way++) {
        struct rw_changes all = {0};
        struct rw_change range = each[0].options[way].items[0];
        for (size_t i = 1; i < fields; i++) {
            const struct rw_change *best = NULL;
            for (size_t k = 0; k < each[i].count; k++) {
                const struct rw_change *c = &each[i].options[k].items[0];
                if (c->buf == range.buf && c->start >= range.end &&
                    only_blanks(c->buf, range.end, c->start))
                    best = c;
            }
            if (!best)
                best = &each[i].options[way < each[i].count ? way : 0].items[0];
            if (best->buf == range.buf && best->start >= range.end &&
                only_blanks(range.buf, range.end, best->start)) {
                range.end = best->end;
            } else {
                struct rw_change single = *best;
                single.word_start = single.start;
                single.word_end = single.end;
                rw_tidy_removal(single.buf, &single.start, &single.end);
                rw_changes_add(rw, &all, &single);
            }
        }
        range.word_start = range.start;
        range.word_end = range.end;
        rw_tidy_removal(range.buf, &range.start, &range.end);
        if (rw_changes_add(rw, &all, &range))
            add_option(rw, out, &all);
    }
}

void rw_places_add(struct rw *rw, const struct rw_cmd *cmd, size_t index, const char *words,
                   struct rw_places *out)
{
    if (index >= cmd->fields.count) {
        rw_places_insert(rw, cmd->buf, cmd->end, rw_printf(&rw->arena, " %s", words), out);
        return;
    }
    /* In front of a word: at the start of the word that gave it, from the command inwards. */
    const struct rw_text *text = &cmd->fields.items[index].text;
    if (!text->count)
        return;
    const char *front = rw_printf(&rw->arena, "%s ", words);
    for (const struct rw_via *via = text->frags[0].via; via; via = via->next)
        if (!via->name && via->total == text->length)
            rw_places_insert(rw, via->buf, via->start, front, out);
    if (text->frags[0].kind == RW_LITERAL)
        rw_places_insert(rw, text->frags[0].buf, text->frags[0].start,
                         encode_words(rw, text->frags[0].quote, front), out);
}
