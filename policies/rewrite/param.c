/* SPDX-License-Identifier: Apache-2.0
 *
 * "$NAME", "${NAME…}", "$((…))" and "$(…)". */
#include "policies/rewrite/rw.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static bool name_start(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

static bool name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

void rw_sink_unknown(struct rw *rw, struct rw_sink *sink, const struct rw_site *site, bool many)
{
    struct rw_frag frag = {site->buf->bytes + site->start,
                           site->end - site->start,
                           RW_UNKNOWN,
                           site->quote,
                           site->buf,
                           site->start,
                           site->end,
                           NULL,
                           false};

    rw_sink_frag(rw, sink, &frag);
    if (many || (sink->split && site->quote == RW_BARE))
        sink->open->text.wild = true;
}

void rw_sink_derived(struct rw *rw, struct rw_sink *sink, const struct rw_site *site,
                     const char *text, size_t length)
{
    struct rw_frag frag = {rw_strndup(&rw->arena, text, length),
                           (uint32_t)length,
                           RW_DERIVED,
                           site->quote,
                           site->buf,
                           site->start,
                           site->end,
                           NULL,
                           false};
    struct rw_text one = {0};

    rw_text_push(rw, &one, &frag);
    rw_sink_put(rw, sink, &one, site->quote != RW_BARE);
}

/* What a name stands for. */
struct found {
    enum { UNSET, KNOWN, OPAQUE } state;
    bool from_script; /* assigned by the script, so that the environment does not matter */
    bool list, loop;
    const struct rw_field *items;
    size_t count;
};

static void find_positional(struct rw *rw, const char *name, struct found *out)
{
    size_t index = (size_t)strtoul(name, NULL, 10);

    out->from_script = true;
    if (*name == '@' || *name == '*') {
        out->list = true;
        out->state = rw->positional_known ? KNOWN : OPAQUE;
        out->items = rw->positional.items;
        out->count = rw->positional.count;
    } else if (index && index <= rw->positional.count) {
        out->state = KNOWN;
        out->items = &rw->positional.items[index - 1];
        out->count = 1;
    } else {
        out->from_script = false;
        out->state = index && rw->positional_known ? UNSET : OPAQUE;
    }
}

static void find(struct rw *rw, const char *name, size_t length, const struct rw_site *site,
                 struct found *out)
{
    memset(out, 0, sizeof(*out));
    if (!name_start(*name)) {
        find_positional(rw, name, out);
        return;
    }
    const struct rw_var *var = rw_var_at(rw, name, length);
    if (var->value) {
        out->from_script = true;
        out->loop = var->loop;
        out->list = var->value->array;
        out->items = var->value->items;
        out->count = var->value->count;
        out->state = var->value->unknown ? OPAQUE : var->value->unset ? UNSET : KNOWN;
        return;
    }
    const char *text = rw_env_get(rw, var->name);
    rw->env_reads++;
    if (text) {
        struct rw_field *field = rw_alloc(&rw->arena, sizeof(*field));
        struct rw_frag frag = {text,       (uint32_t)strlen(text),
                               RW_DERIVED, site->quote,
                               site->buf,  site->start,
                               site->end,  NULL,
                               false};
        rw_text_push(rw, &field->text, &frag);
        out->items = field;
        out->count = 1;
        out->state = KNOWN;
    } else {
        out->state = rw->source->environ_list && !rw->opaque_env ? UNSET : OPAQUE;
    }
}

static bool empty(const struct found *found)
{
    return found->state == UNSET ||
           (found->state == KNOWN &&
            (!found->count || (found->count == 1 && !found->list && !found->items[0].text.length)));
}

/* Puts fields [from, to) of a value; `each` keeps array elements apart ("${A[@]}"). */
static void put_items(struct rw *rw, struct rw_sink *sink, const struct rw_site *site,
                      const char *name, const struct found *found, size_t from, size_t to,
                      bool each, bool fixed)
{
    struct rw_via via = {.buf = site->buf,
                         .start = site->start,
                         .end = site->end,
                         .quote = site->quote,
                         .name = name,
                         .instance = ++rw->instances,
                         .fixed = fixed || found->loop};

    for (size_t i = from; i < to; i++)
        via.total += found->items[i].text.length + (i > from && !each ? 1 : 0);
    for (size_t i = from; i < to; i++) {
        struct rw_text text = {0};
        if (i > from && each) {
            rw_sink_break(sink);
        } else if (i > from) {
            struct rw_frag gap = {" ",         1,         RW_DERIVED, site->quote, site->buf,
                                  site->start, site->end, NULL,       false};
            rw_text_push(rw, &text, &gap);
        }
        rw_text_append(rw, &text, &found->items[i].text);
        rw_text_through(rw, &text, &via);
        rw_sink_put(rw, sink, &text, site->quote != RW_BARE);
        if (each && site->quote != RW_BARE && !text.length)
            rw_sink_text(rw, sink);
    }
}

static void put_value(struct rw *rw, struct rw_sink *sink, const struct rw_site *site,
                      const char *name, const struct found *found, const char *index)
{
    bool all = found->list && index && (*index == '@' || *index == '*');
    bool each = all && index && *index == '@' && sink->split;

    if (found->state == UNSET)
        return;
    if (found->state == OPAQUE) {
        rw_sink_unknown(rw, sink, site, found->list || (index && *index == '@'));
        return;
    }
    if (all || (index && !found->list && (*index == '@' || *index == '*'))) {
        put_items(rw, sink, site, name, found, 0, found->count, each || site->quote == RW_BARE,
                  false);
        return;
    }
    int64_t at = 0;
    if (index && !rw_arithmetic(rw, index, strlen(index), &at)) {
        rw_sink_unknown(rw, sink, site, false);
        return;
    }
    if (at < 0)
        at += (int64_t)found->count;
    if (at >= 0 && (size_t)at < found->count)
        put_items(rw, sink, site, name, found, (size_t)at, (size_t)at + 1, false, false);
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

/* ${NAME op word} with op one of - = + ? and an optional colon. */
static void put_conditional(struct rw *rw, struct rw_sink *sink, const struct rw_site *site,
                            const char *name, const struct found *found, const char *index, char op,
                            bool colon, uint32_t start, uint32_t end)
{
    bool absent = colon ? empty(found) : found->state == UNSET;
    bool open = found->state == OPAQUE && !found->from_script;
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
        put_value(rw, sink, site, name, found, index);
        return;
    }
    if (op == '=') {
        struct rw_text text;
        rw_expand_text(rw, site->buf, start, end, site->quote, &text);
        rw_var_set_text(rw, name, &text);
    }
    put_operand(rw, sink, site, name, start, end, fixed);
}

/* ${NAME#pattern}, ##, %, %%: the rest is computed text. */
static void put_stripped(struct rw *rw, struct rw_sink *sink, const struct rw_site *site,
                         const char *value, const char *pattern, char op, bool longest)
{
    size_t length = strlen(value);
    char *copy = rw_strndup(&rw->arena, value, length);
    size_t best = 0;

    for (size_t n = 0; n <= length && length < 4096; n++) {
        bool match;
        if (op == '#') {
            char kept = copy[n];
            copy[n] = '\0';
            match = fnmatch(pattern, copy, 0) == 0;
            copy[n] = kept;
        } else {
            match = fnmatch(pattern, copy + length - n, 0) == 0;
        }
        if (match) {
            best = n;
            if (!longest)
                break;
        }
    }
    if (op == '#')
        rw_sink_derived(rw, sink, site, value + best, length - best);
    else
        rw_sink_derived(rw, sink, site, value, length - best);
}

/* ${NAME/from/to} with a plain `from`. */
static void put_replaced(struct rw *rw, struct rw_sink *sink, const struct rw_site *site,
                         const char *value, const char *rest, bool all)
{
    const char *slash = strchr(rest, '/');
    size_t from_length = slash ? (size_t)(slash - rest) : strlen(rest);
    const char *to = slash ? slash + 1 : "";
    char *from = rw_strndup(&rw->arena, rest, from_length);
    char *text = rw_alloc(&rw->arena, 1);

    if (!from_length || strpbrk(from, "*?[#%\\")) {
        rw_sink_unknown(rw, sink, site, false);
        return;
    }
    for (const char *hit; (hit = strstr(value, from)) != NULL;) {
        text = rw_printf(&rw->arena, "%s%.*s%s", text, (int)(hit - value), value, to);
        value = hit + from_length;
        if (!all || strlen(text) > 65536)
            break;
    }
    text = rw_printf(&rw->arena, "%s%s", text, value);
    rw_sink_derived(rw, sink, site, text, strlen(text));
}

/* "${A[@]@Q}": the elements in single quotes. */
static void put_quoted(struct rw *rw, struct rw_sink *sink, const struct rw_site *site,
                       const char *name, const struct found *found)
{
    struct rw_text text = {0};
    struct rw_frag mark = {"'",         1,         RW_DERIVED, site->quote, site->buf,
                           site->start, site->end, NULL,       false};

    for (size_t i = 0; i < found->count; i++) {
        if (i) {
            mark.bytes = " ";
            rw_text_push(rw, &text, &mark);
        }
        mark.bytes = "'";
        rw_text_push(rw, &text, &mark);
        rw_text_append(rw, &text, &found->items[i].text);
        rw_text_push(rw, &text, &mark);
    }
    struct rw_via via = {.buf = site->buf,
                         .start = site->start,
                         .end = site->end,
                         .quote = site->quote,
                         .name = name,
                         .instance = ++rw->instances,
                         .total = text.length};
    rw_text_through(rw, &text, &via);
    rw_sink_put(rw, sink, &text, site->quote != RW_BARE);
}

/* What follows the name (and index) in "${…}" when it is not a conditional. */
static void put_transformed(struct rw *rw, struct rw_sink *sink, const struct rw_site *site,
                            const char *name, const struct found *found, const char *index,
                            uint32_t at, uint32_t end)
{
    const char *b = site->buf->bytes;
    char op = b[at];
    struct rw_text word;

    if (found->state == KNOWN && op == '@' && at + 1 < end && b[at + 1] == 'Q') {
        put_quoted(rw, sink, site, name, found);
        return;
    }
    if (found->state == KNOWN && found->list && op == ':' && index && *index == '@') {
        int64_t from = 0;
        if (rw_arithmetic(rw, b + at + 1, end - at - 1, &from) && from >= 0) {
            size_t first = (size_t)from - (strchr("@*", *name) && from ? 1 : 0);
            if (first < found->count)
                put_items(rw, sink, site, name, found, first, found->count, sink->split, false);
            return;
        }
    }
    if (found->state == UNSET)
        return;
    if (found->state == OPAQUE || found->list || !found->count) {
        rw_sink_unknown(rw, sink, site, found->list);
        return;
    }
    const char *value = rw_text_string(rw, &found->items[0].text);
    bool twice = at + 1 < end && b[at + 1] == op;
    rw_expand_text(rw, site->buf, at + (twice ? 2 : 1), end, site->quote, &word);
    const char *operand = rw_text_string(rw, &word);
    if (!rw_text_known(&found->items[0].text) || !rw_text_known(&word)) {
        rw_sink_unknown(rw, sink, site, false);
    } else if (op == '#' || op == '%') {
        put_stripped(rw, sink, site, value, operand, op, twice);
    } else if (op == '/') {
        put_replaced(rw, sink, site, value, operand, twice);
    } else if (op == '^' || op == ',') {
        char *text = rw_strndup(&rw->arena, value, strlen(value));
        for (char *p = text; *p && (twice || p == text); p++)
            *p = (char)(op == '^' ? toupper((unsigned char)*p) : tolower((unsigned char)*p));
        rw_sink_derived(rw, sink, site, text, strlen(text));
    } else if (op == ':') {
        int64_t from = 0, length = INT64_MAX;
        const char *colon = strchr(operand, ':');
        size_t have = strlen(value);
        bool ok = rw_arithmetic(rw, operand, colon ? (size_t)(colon - operand) : strlen(operand),
                                &from) &&
                  (!colon || rw_arithmetic(rw, colon + 1, strlen(colon + 1), &length));
        if (!ok || from < 0 || length < 0) {
            rw_sink_unknown(rw, sink, site, false);
        } else if ((size_t)from < have) {
            size_t rest = have - (size_t)from;
            rw_sink_derived(rw, sink, site, value + from,
                            (uint64_t)length < rest ? (size_t)length : rest);
        }
    } else {
        rw_sink_unknown(rw, sink, site, false);
    }
}

static void expand_brace(struct rw *rw, const struct rw_site *site, struct rw_sink *sink)
{
    const char *b = site->buf->bytes;
    uint32_t at = site->start + 2;
    uint32_t end = site->end > at && b[site->end - 1] == '}' ? site->end - 1 : site->end;
    bool length = at + 1 < end && b[at] == '#';
    bool indirect = at + 1 < end && b[at] == '!';
    const char *index = NULL;
    struct found found;

    if (length || indirect)
        at++;
    uint32_t name_at = at;
    if (at < end && name_start(b[at]))
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
    find(rw, name, strlen(name), site, &found);
    if (indirect) {
        if (found.state != KNOWN || index || found.count != 1 || at < end ||
            !rw_text_known(&found.items[0].text)) {
            rw_sink_unknown(rw, sink, site, index != NULL);
            return;
        }
        name = rw_text_string(rw, &found.items[0].text);
        if (!name_start(*name)) {
            rw_sink_unknown(rw, sink, site, false);
            return;
        }
        find(rw, name, strlen(name), site, &found);
        put_value(rw, sink, site, name, &found, NULL);
        return;
    }
    if (length) {
        if (found.state == KNOWN && !found.list && found.count == 1 &&
            rw_text_known(&found.items[0].text)) {
            const char *n = rw_printf(&rw->arena, "%u", found.items[0].text.length);
            rw_sink_derived(rw, sink, site, n, strlen(n));
        } else {
            rw_sink_unknown(rw, sink, site, false);
        }
        return;
    }
    if (at >= end) {
        put_value(rw, sink, site, name, &found, index);
        return;
    }
    bool colon = b[at] == ':' && at + 1 < end && strchr("-=+?", b[at + 1]);
    if (colon || strchr("-=+?", b[at]))
        put_conditional(rw, sink, site, name, &found, index, b[at + (colon ? 1 : 0)], colon,
                        at + (colon ? 2 : 1), end);
    else
        put_transformed(rw, sink, site, name, &found, index, at, end);
}

uint32_t rw_expand_dollar(struct rw *rw, const struct rw_buf *buf, uint32_t at, uint32_t end,
                          enum rw_quote quote, struct rw_sink *sink)
{
    const char *b = buf->bytes;
    struct rw_site site = {buf, at, at + 1, quote};
    struct found found;

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
    if (name_start(c)) {
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
    find(rw, name, strlen(name), &site, &found);
    put_value(rw, sink, &site, name, &found, *name == '@' || *name == '*' ? name : NULL);
    return site.end;
}
