/* SPDX-License-Identifier: Apache-2.0
 *
 * What a parameter's name stands for, and putting that where an expansion goes. */
#include "policies/rewrite/param.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool rw_name_start(char c)
{
    return isalpha((unsigned char)c) || c == '_';
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

static void find_positional(struct rw *rw, const char *name, struct rw_found *out)
{
    size_t index = (size_t)strtoul(name, NULL, 10);

    out->from_script = true;
    if (*name == '@' || *name == '*') {
        out->list = true;
        out->state = rw->positional_known ? RW_FOUND_KNOWN : RW_FOUND_OPAQUE;
        out->items = rw->positional.items;
        out->count = rw->positional.count;
    } else if (index && index <= rw->positional.count) {
        out->state = RW_FOUND_KNOWN;
        out->items = &rw->positional.items[index - 1];
        out->count = 1;
    } else {
        out->from_script = false;
        out->state = index && rw->positional_known ? RW_FOUND_UNSET : RW_FOUND_OPAQUE;
    }
}

void rw_find_name(struct rw *rw, const char *name, size_t length, const struct rw_site *site,
                  struct rw_found *out)
{
    memset(out, 0, sizeof(*out));
    if (!rw_name_start(*name)) {
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
        out->state = var->value->unknown ? RW_FOUND_OPAQUE
                     : var->value->unset ? RW_FOUND_UNSET
                                         : RW_FOUND_KNOWN;
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
        out->state = RW_FOUND_KNOWN;
    } else {
        bool unset =
            rw->source->environ_list && !rw->opaque_env && !rw_shell_sets_variable(var->name);
        out->state = unset ? RW_FOUND_UNSET : RW_FOUND_OPAQUE;
    }
}

void rw_put_items(struct rw *rw, struct rw_sink *sink, const struct rw_site *site, const char *name,
                  const struct rw_found *found, size_t from, size_t to, bool each,
                  const char *between)
{
    struct rw_via via = {.buf = site->buf,
                         .start = site->start,
                         .end = site->end,
                         .quote = site->quote,
                         .name = name,
                         .instance = ++rw->instances,
                         .fixed = found->loop};
    struct rw_frag gap = {between,     *between ? 1 : 0, RW_DERIVED, site->quote, site->buf,
                          site->start, site->end,        NULL,       false};
    bool first = true;

    for (size_t i = from; i < to; i++) {
        if (found->items[i].gone)
            continue;
        via.total += found->items[i].text.length + (first || each ? 0 : gap.length);
        first = false;
    }
    first = true;
    for (size_t i = from; i < to; i++) {
        struct rw_text text = {0};
        if (found->items[i].gone)
            continue;
        if (!first && each)
            rw_sink_break(sink);
        else if (!first && gap.length)
            rw_text_push(rw, &text, &gap);
        first = false;
        rw_text_append(rw, &text, &found->items[i].text);
        rw_text_through(rw, &text, &via);
        rw_sink_put(rw, sink, &text, site->quote != RW_BARE);
        if (each && site->quote != RW_BARE && !text.length)
            rw_sink_text(rw, sink);
    }
}

void rw_put_value(struct rw *rw, struct rw_sink *sink, const struct rw_site *site, const char *name,
                  const struct rw_found *found, const char *index)
{
    bool all = found->list && index && (*index == '@' || *index == '*');
    bool each = all && index && *index == '@' && sink->split;

    if (found->state == RW_FOUND_UNSET)
        return;
    if (found->state == RW_FOUND_OPAQUE) {
        rw_sink_unknown(rw, sink, site, found->list || (index && *index == '@'));
        return;
    }
    if (all || (index && !found->list && (*index == '@' || *index == '*'))) {
        rw_put_items(rw, sink, site, name, found, 0, found->count,
                     each || (site->quote == RW_BARE && sink->split),
                     *index == '*' ? rw_ifs(rw) : " ");
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
        rw_put_items(rw, sink, site, name, found, (size_t)at, (size_t)at + 1, false, " ");
}
