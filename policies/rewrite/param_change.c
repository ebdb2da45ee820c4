/* SPDX-License-Identifier: Apache-2.0
 *
 * Expansions that change what they give: "${NAME#pattern}", "${NAME/from/to}", "${NAME^^}",
 * "${NAME:0:2}", "${ARRAY[@]:1}", "${NAME@Q}". */
#include "policies/rewrite/param.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

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
                       const char *name, const struct rw_found *found)
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

void rw_put_transformed(struct rw *rw, struct rw_sink *sink, const struct rw_site *site,
                        const char *name, const struct rw_found *found, const char *index,
                        uint32_t at, uint32_t end)
{
    const char *b = site->buf->bytes;
    char op = b[at];
    struct rw_text word;

    if (found->state == RW_FOUND_KNOWN && op == '@' && at + 1 < end && b[at + 1] == 'Q') {
        put_quoted(rw, sink, site, name, found);
        return;
    }
    if (found->state == RW_FOUND_KNOWN && found->list && op == ':' && index && *index == '@') {
        int64_t from = 0;
        if (rw_arithmetic(rw, b + at + 1, end - at - 1, &from) && from >= 0) {
            size_t first = (size_t)from - (strchr("@*", *name) && from ? 1 : 0);
            if (first < found->count)
                rw_put_items(rw, sink, site, name, found, first, found->count, sink->split, " ");
            return;
        }
    }
    if (found->state == RW_FOUND_UNSET)
        return;
    if (found->state == RW_FOUND_OPAQUE || found->list || !found->count) {
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
