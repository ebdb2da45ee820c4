/* SPDX-License-Identifier: Apache-2.0
 *
 * Words to fields: quoting, escapes and word splitting. Expansions are in param.c. */
#include "policies/rewrite/rw.h"

#include <string.h>

struct rw_field *rw_fields_add(struct rw *rw, struct rw_fields *fields)
{
    fields->items = rw_more(&rw->arena, fields->items, fields->count, &fields->capacity,
                            sizeof(*fields->items));
    struct rw_field *field = &fields->items[fields->count++];
    memset(field, 0, sizeof(*field));
    return field;
}

struct rw_text *rw_sink_text(struct rw *rw, struct rw_sink *sink)
{
    if (!sink->open)
        sink->open = rw_fields_add(rw, sink->fields);
    return &sink->open->text;
}

void rw_sink_frag(struct rw *rw, struct rw_sink *sink, const struct rw_frag *frag)
{
    rw_text_push(rw, rw_sink_text(rw, sink), frag);
}

void rw_sink_break(struct rw_sink *sink)
{
    sink->open = NULL;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

static bool separates(const char *ifs, char c)
{
    return c && strchr(ifs, c);
}

void rw_sink_put(struct rw *rw, struct rw_sink *sink, const struct rw_text *text, bool quoted)
{
    if (quoted || !sink->split) {
        rw_text_append(rw, rw_sink_text(rw, sink), text);
        return;
    }
    const char *ifs = sink->ifs ? sink->ifs : rw_ifs(rw);
    bool ended = false; /* by a blank, to which a separator may belong */
    for (size_t i = 0; i < text->count; i++) {
        const struct rw_frag *frag = &text->frags[i];
        if (frag->kind == RW_UNKNOWN) {
            rw_sink_frag(rw, sink, frag);
            sink->open->text.wild = true;
            continue;
        }
        for (uint32_t at = 0; at < frag->length;) {
            uint32_t stop = at;
            if (separates(ifs, frag->bytes[at])) {
                bool white = blank(frag->bytes[at]);
                if (!white && !sink->open && !ended)
                    rw_sink_text(rw, sink); /* "a,,b" */
                ended = white && (ended || sink->open);
                rw_sink_break(sink);
                at++;
                continue;
            }
            ended = false;
            while (stop < frag->length && !separates(ifs, frag->bytes[stop]))
                stop++;
            struct rw_frag part = *frag;
            if (frag->kind == RW_LITERAL && frag->end - frag->start == frag->length) {
                part.start = frag->start + at;
                part.end = frag->start + stop;
            }
            part.bytes += at;
            part.length = stop - at;
            part.partial |= part.length != frag->length;
            rw_sink_frag(rw, sink, &part);
            at = stop;
        }
    }
    if (text->wild && sink->open)
        sink->open->text.wild = true;
}

void rw_finish_fields(struct rw *rw, struct rw_fields *fields, size_t from)
{
    for (size_t i = from; i < fields->count; i++)
        fields->items[i].string = rw_text_string(rw, &fields->items[i].text);
}

static void literal(struct rw *rw, struct rw_sink *sink, const struct rw_buf *buf, uint32_t start,
                    uint32_t end, enum rw_quote quote)
{
    struct rw_frag frag = {.bytes = buf->bytes + start,
                           .length = end - start,
                           .kind = RW_LITERAL,
                           .quote = quote,
                           .buf = buf,
                           .start = start,
                           .end = end};

    if (start < end)
        rw_sink_frag(rw, sink, &frag);
}

/* A byte that is written as two ("\$"). */
static void escaped(struct rw *rw, struct rw_sink *sink, const struct rw_buf *buf, uint32_t at,
                    const char *byte, enum rw_quote quote)
{
    struct rw_frag frag = {.bytes = byte,
                           .length = 1,
                           .kind = RW_LITERAL,
                           .quote = quote,
                           .buf = buf,
                           .start = at,
                           .end = at + 2};

    rw_sink_frag(rw, sink, &frag);
}

static uint32_t ansi(struct rw *rw, const struct rw_buf *buf, uint32_t at, uint32_t end,
                     struct rw_sink *sink)
{
    static const char from[] = "nt\\'\"";
    static const char to[] = "\n\t\\'\"";

    rw_sink_text(rw, sink);
    for (at += 2; at < end && buf->bytes[at] != '\'';) {
        const char *known;
        if (buf->bytes[at] == '\\' && at + 1 < end) {
            known = strchr(from, buf->bytes[at + 1]);
            escaped(rw, sink, buf, at, known && *known ? to + (known - from) : buf->bytes + at + 1,
                    RW_ANSI);
            at += 2;
            continue;
        }
        literal(rw, sink, buf, at, at + 1, RW_ANSI);
        at++;
    }
    return at < end ? at + 1 : end;
}

/* What a backslash escapes in a context. */
static bool escapes(enum rw_quote quote, char c)
{
    if (quote == RW_BARE)
        return true;
    return c == '$' || c == '`' || c == '\\' || (quote == RW_DQ && c == '"');
}

static uint32_t quoted_part(struct rw *rw, const struct rw_buf *buf, uint32_t at, uint32_t end,
                            struct rw_sink *sink)
{
    uint32_t stop;

    if (buf->bytes[at] == '\'') {
        rw_sink_text(rw, sink);
        stop = rw_skip_single(buf->bytes, at, end);
        literal(rw, sink, buf, at + 1, stop > at + 1 ? stop - 1 : stop, RW_SQ);
        return stop;
    }
    stop = rw_skip_double(buf->bytes, at, end);
    bool opened = sink->open != NULL;
    size_t before = sink->fields->count;
    uint32_t inner = stop > at + 1 ? stop - 1 : stop;
    rw_expand_region(rw, buf, at + 1, inner, RW_DQ, sink);
    /* "" is a field, and so is an empty "$X"; only "$@" and "${A[@]}" may be none at all. */
    if (!opened && sink->fields->count == before && !memmem(buf->bytes + at, stop - at, "@", 1))
        rw_sink_text(rw, sink);
    return stop;
}

void rw_expand_region(struct rw *rw, const struct rw_buf *buf, uint32_t start, uint32_t end,
                      enum rw_quote quote, struct rw_sink *sink)
{
    const char *b = buf->bytes;
    uint32_t run = start;

    for (uint32_t at = start; at < end;) {
        char c = b[at];
        bool special =
            c == '\\' || c == '$' || c == '`' ||
            (quote == RW_BARE && (c == '\'' || c == '"' ||
                                  ((c == '<' || c == '>') && at + 1 < end && b[at + 1] == '(')));
        if (!special) {
            at++;
            continue;
        }
        literal(rw, sink, buf, run, at, quote);
        if (c == '\\') {
            if (at + 1 < end && b[at + 1] == '\n') {
                at += 2;
            } else if (at + 1 < end && escapes(quote, b[at + 1])) {
                escaped(rw, sink, buf, at, b + at + 1, quote);
                at += 2;
            } else {
                literal(rw, sink, buf, at, at + 1, quote);
                at++;
            }
        } else if (c == '$') {
            if (quote == RW_BARE && at + 1 < end && b[at + 1] == '\'')
                at = ansi(rw, buf, at, end, sink);
            else if (quote == RW_BARE && at + 1 < end && b[at + 1] == '"')
                at = quoted_part(rw, buf, at + 1, end, sink);
            else
                at = rw_expand_dollar(rw, buf, at, end, quote, sink);
        } else if (c == '`') {
            struct rw_site site = {buf, at, at + 1, quote};
            while (site.end < end && b[site.end] != '`')
                site.end += b[site.end] == '\\' ? 2 : 1;
            site.end = site.end < end ? site.end + 1 : end;
            uint32_t stop = site.end > at + 2 ? site.end - 1 : site.end;
            if (memchr(b + at, '\\', site.end - at)) /* one level of them belongs to the quotes */
                rw_sink_unknown(rw, sink, &site, false);
            else
                rw_expand_command(rw, &site, at + 1, stop, sink);
            at = site.end;
        } else if (c == '\'' || c == '"') {
            at = quoted_part(rw, buf, at, end, sink);
        } else {
            struct rw_site site = {buf, at, rw_skip_paren(b, at + 1, end), RW_DQ};
            rw_sink_unknown(rw, sink, &site, false);
            at = site.end;
        }
        run = at;
    }
    literal(rw, sink, buf, run, end, quote);
}

void rw_expand_text(struct rw *rw, const struct rw_buf *buf, uint32_t start, uint32_t end,
                    enum rw_quote quote, struct rw_text *out)
{
    struct rw_fields fields = {0};
    struct rw_sink sink = {.fields = &fields};

    memset(out, 0, sizeof(*out));
    rw_expand_region(rw, buf, start, end, quote, &sink);
    for (size_t i = 0; i < fields.count; i++) {
        if (i) {
            struct rw_frag gap = {" ", 1, RW_DERIVED, quote, buf, start, start, NULL, false};
            rw_text_push(rw, out, &gap);
        }
        rw_text_append(rw, out, &fields.items[i].text);
    }
}

void rw_expand_heredoc(struct rw *rw, const struct rw_buf *buf, const struct rw_heredoc *doc,
                       struct rw_text *out)
{
    enum rw_quote quote = doc->quoted ? RW_RAW : RW_HEREDOC;
    struct rw_text whole = {0};

    if (doc->quoted) {
        struct rw_frag frag = {buf->bytes + doc->body_start,
                               doc->body_end - doc->body_start,
                               RW_LITERAL,
                               RW_RAW,
                               buf,
                               doc->body_start,
                               doc->body_end,
                               NULL,
                               false};
        rw_text_push(rw, &whole, &frag);
    } else {
        rw_expand_text(rw, buf, doc->body_start, doc->body_end, quote, &whole);
    }
    if (!doc->strip_tabs) {
        *out = whole;
        return;
    }
    memset(out, 0, sizeof(*out));
    const char *string = rw_text_string(rw, &whole);
    uint32_t run = 0;
    for (uint32_t at = 0; at < whole.length; at++) {
        if (string[at] != '\t' || (at && string[at - 1] != '\n' && run != at))
            continue;
        struct rw_text part;
        rw_text_slice(rw, &whole, run, at, &part);
        rw_text_append(rw, out, &part);
        run = at + 1;
    }
    struct rw_text part;
    rw_text_slice(rw, &whole, run, whole.length, &part);
    rw_text_append(rw, out, &part);
}

void rw_expand_word(struct rw *rw, const struct rw_buf *buf, uint32_t start, uint32_t end,
                    bool split, struct rw_fields *out)
{
    struct rw_sink sink = {.fields = out, .split = split};
    size_t from = out->count;

    rw->steps++;
    rw_expand_region(rw, buf, start, end, RW_BARE, &sink);
    if (!split && out->count == from)
        rw_fields_add(rw, out);
    if (split && out->count == from + 1) {
        struct rw_text *text = &out->items[from].text;
        struct rw_via via = {.buf = buf,
                             .start = start,
                             .end = end,
                             .quote = RW_BARE,
                             .instance = ++rw->instances,
                             .total = text->length};
        rw_text_through(rw, text, &via);
    }
    rw_finish_fields(rw, out, from);
}
