/* SPDX-License-Identifier: Apache-2.0
 *
 * "$NAME", "${NAME…}", "$((…))" and "$(…)". */
#include "policies/rewrite/param.h"

#include <ctype.h>
#include <string.h>

static bool name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The word behind an operator (":-word"), through the expansion's own site. */
static void put_operand(struct rw *rw, struct rw_sink *sink, const struct rw_site *site,
                        const char *name, uint32_t start, uint32_t end, bool fixed)
{
    struct rw_text text;

    rw_expand_text(rw, site->buf, start, end, site->quote, &text);
    struct rw_via via = {.buf = site->buf,
                         .start = site->start,
                         .end = site->end,
                         .quote = site->quote,
                         .name = name,
                         .instance = ++rw->instances,
                         .total = text.length,
                         .fixed = fixed};
    rw_text_through(rw, &text, &via);
    rw_sink_put(rw, sink, &text, site->quote != RW_BARE);
}

static bool empty(const struct rw_found *found)
{
    return found->state == RW_FOUND_UNSET ||
           (found->state == RW_FOUND_KNOWN &&
            (!found->count || (found->count == 1 && !found->list && !found->items[0].text.length)));
}

/* ${NAME op word} with op one of - = + ? and an optional colon. */
static void put_conditional(struct rw *rw, struct rw_sink *sink, const struct rw_site *site,
                            const char *name, const struct rw_found *found, const char *index,
                            char op, bool colon, uint32_t start, uint32_t end)
{
    bool absent = colon ? empty(found) : found->state == RW_FOUND_UNSET;
    bool open = found->state == RW_FOUND_OPAQUE && !found->from_script;
    bool fixed = open;

    if (open && op != '?') {
        uint64_t key = rw_hash_string(name, strlen(name));
        absent = rw_choose(rw, key, name, 2, 0) == 0;
    }
    if (op == '+') {
        if (!absent)
            put_operand(rw, sink, site, name, start, end, fixed);
        return;
    }
    if (!absent || op == '?') {
        rw_put_value(rw, sink, site, name, found, index);
        return;
    }
    if (op == '=') {
        struct rw_text text;
        rw_expand_text(rw, site->buf, start, end, site->quote, &text);
        rw_var_set_text(rw, name, &text);
    }
    put_operand(rw, sink, site, name, start, end, fixed);
}

static void expand_brace(struct rw *rw, const struct rw_site *site, struct rw_sink *sink)
{
    const char *b = site->buf->bytes;
    uint32_t at = site->start + 2;
    uint32_t end = site->end > at && b[site->end - 1] == '}' ? site->end - 1 : site->end;
    bool length = at + 1 < end && b[at] == '#';
    bool indirect = at + 1 < end && b[at] == '!';
    const char *index = NULL;
    struct rw_found found;

    if (length || indirect)
        at++;
    uint32_t name_at = at;
    if (at < end && rw_name_start(b[at]))
        while (at < end && name_char(b[at]))
            at++;
    else if (at < end && isdigit((unsigned char)b[at]))
        while (at < end && isdigit((unsigned char)b[at]))
            at++;
    else if (at < end)
        at++;
    if (at == name_at) {
        rw_sink_unknown(rw, sink, site, false);
        return;
    }
    const char *name = rw_strndup(&rw->arena, b + name_at, at - name_at);
    if (at < end && b[at] == '[') {
        uint32_t close = at + 1;
        while (close < end && b[close] != ']')
            close++;
        index = rw_strndup(&rw->arena, b + at + 1, close - at - 1);
        at = close < end ? close + 1 : end;
    } else if (*name == '@' || *name == '*') {
        index = name;
    }
    rw_find_name(rw, name, strlen(name), site, &found);
    if (indirect) {
        if (found.state != RW_FOUND_KNOWN || index || found.count != 1 || at < end ||
            !rw_text_known(&found.items[0].text)) {
            rw_sink_unknown(rw, sink, site, index != NULL);
            return;
        }
        name = rw_text_string(rw, &found.items[0].text);
        if (!rw_name_start(*name)) {
            rw_sink_unknown(rw, sink, site, false);
            return;
        }
        rw_find_name(rw, name, strlen(name), site, &found);
        rw_put_value(rw, sink, site, name, &found, NULL);
        return;
    }
    if (length) {
        if (found.state == RW_FOUND_KNOWN && !found.list && found.count == 1 &&
            rw_text_known(&found.items[0].text)) {
            const char *n = rw_printf(&rw->arena, "%u", found.items[0].text.length);
            rw_sink_derived(rw, sink, site, n, strlen(n));
        } else {
            rw_sink_unknown(rw, sink, site, false);
        }
        return;
    }
    if (at >= end) {
        rw_put_value(rw, sink, site, name, &found, index);
        return;
    }
    bool colon = b[at] == ':' && at + 1 < end && strchr("-=+?", b[at + 1]);
    if (colon || strchr("-=+?", b[at]))
        put_conditional(rw, sink, site, name, &found, index, b[at + (colon ? 1 : 0)], colon,
                        at + (colon ? 2 : 1), end);
    else
        rw_put_transformed(rw, sink, site, name, &found, index, at, end);
}

uint32_t rw_expand_dollar(struct rw *rw, const struct rw_buf *buf, uint32_t at, uint32_t end,
                          enum rw_quote quote, struct rw_sink *sink)
{
    const char *b = buf->bytes;
    struct rw_site site = {buf, at, at + 1, quote};
    struct rw_found found;

    char c = at + 1 < end ? b[at + 1] : '\0';
    if (c == '{') {
        site.end = rw_skip_brace(b, at + 1, end);
        expand_brace(rw, &site, sink);
        return site.end;
    }
    if (c == '(') {
        site.end = rw_skip_paren(b, at + 1, end);
        if (at + 2 < end && b[at + 2] == '(' && site.end >= at + 5) {
            int64_t value;
            if (rw_arithmetic(rw, b + at + 3, site.end - at - 5, &value)) {
                const char *text = rw_printf(&rw->arena, "%lld", (long long)value);
                rw_sink_derived(rw, sink, &site, text, strlen(text));
            } else {
                rw_sink_unknown(rw, sink, &site, false);
            }
        } else {
            rw_expand_command(rw, &site, at + 2, site.end > at + 2 ? site.end - 1 : site.end, sink);
        }
        return site.end;
    }
    if (rw_name_start(c)) {
        while (site.end < end && name_char(b[site.end]))
            site.end++;
    } else if (isdigit((unsigned char)c) || (c && strchr("@*#?$!-", c))) {
        site.end = at + 2;
    } else {
        struct rw_frag frag = {b + at, 1, RW_LITERAL, quote, buf, at, at + 1, NULL, false};
        rw_sink_frag(rw, sink, &frag);
        return at + 1;
    }
    const char *name = rw_strndup(&rw->arena, b + at + 1, site.end - at - 1);
    rw_find_name(rw, name, strlen(name), &site, &found);
    rw_put_value(rw, sink, &site, name, &found, *name == '@' || *name == '*' ? name : NULL);
    return site.end;
}
