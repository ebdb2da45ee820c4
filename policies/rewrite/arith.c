/* SPDX-License-Identifier: Apache-2.0
 *
 * Shell arithmetic over values that are known; anything else is "not known". */
#include "policies/rewrite/rw.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct expr {
    struct rw *rw;
    const char *at, *end;
    int depth;
    bool ok;
};

static int64_t ternary(struct expr *e);

static void skip_blanks(struct expr *e)
{
    while (e->at < e->end && isspace((unsigned char)*e->at))
        e->at++;
}

static bool eat(struct expr *e, const char *op)
{
    size_t length = strlen(op);

    skip_blanks(e);
    if ((size_t)(e->end - e->at) < length || memcmp(e->at, op, length) != 0)
        return false;
    e->at += length;
    return true;
}

static int64_t number_of(struct expr *e, const char *text)
{
    char *stop;
    long long value = strtoll(text, &stop, 10);

    while (isspace((unsigned char)*stop))
        stop++;
    if (stop == text || *stop || value > INT32_MAX * 1024LL || value < INT32_MIN * 1024LL)
        e->ok = false;
    return value;
}

static int64_t variable(struct expr *e, const char *name, size_t length)
{
    struct rw *rw = e->rw;
    const struct rw_var *var = rw_var_at(rw, name, length);
    const char *text = NULL;

    if (var->value) {
        if (!var->value->unknown && var->value->count == 1 &&
            rw_text_known(&var->value->items[0].text))
            text = rw_text_string(rw, &var->value->items[0].text);
    } else {
        text = rw_env_get(rw, var->name);
    }
    if (!text || !*text) {
        e->ok = false;
        return 0;
    }
    return number_of(e, text);
}

static int64_t primary(struct expr *e)
{
    skip_blanks(e);
    if (++e->depth > 64 || e->at >= e->end) {
        e->ok = false;
        return 0;
    }
    int64_t value = 0;
    if (eat(e, "(")) {
        value = ternary(e);
        e->ok &= eat(e, ")");
    } else if (eat(e, "-")) {
        value = -primary(e);
    } else if (eat(e, "+")) {
        value = primary(e);
    } else if (isdigit((unsigned char)*e->at)) {
        const char *start = e->at;
        while (e->at < e->end && isalnum((unsigned char)*e->at))
            e->at++;
        value = number_of(e, rw_strndup(&e->rw->arena, start, (size_t)(e->at - start)));
    } else if (*e->at == '$' && e->at + 1 < e->end && e->at[1] == '{') {
        /* "${NAME}" and "${NAME:-8}" go through the full expansion. */
        struct rw *rw = e->rw;
        uint32_t length = (uint32_t)(e->end - e->at);
        struct rw_buf *buf = rw_buf_new(rw, e->at, length, NULL, 0);
        struct rw_fields fields = {0};
        struct rw_sink sink = {.fields = &fields};
        uint32_t stop = rw_expand_dollar(rw, buf, 0, length, RW_DQ, &sink);
        if (fields.count == 1 && rw_text_known(&fields.items[0].text))
            value = number_of(e, rw_text_string(rw, &fields.items[0].text));
        else
            e->ok = false;
        e->at += stop;
    } else {
        if (*e->at == '$')
            e->at++;
        const char *start = e->at;
        while (e->at < e->end && (isalnum((unsigned char)*e->at) || *e->at == '_'))
            e->at++;
        if (start == e->at || isdigit((unsigned char)*start))
            e->ok = false;
        else
            value = variable(e, start, (size_t)(e->at - start));
    }
    e->depth--;
    return value;
}

static int64_t product(struct expr *e)
{
    int64_t value = primary(e);

    while (e->ok) {
        if (eat(e, "**")) {
            int64_t power = primary(e), base = value;
            value = 1;
            for (int64_t i = 0; i < power && i < 62; i++)
                e->ok &= !__builtin_mul_overflow(value, base, &value);
        } else if (eat(e, "*")) {
            e->ok &= !__builtin_mul_overflow(value, primary(e), &value);
        } else if (eat(e, "/") || eat(e, "%")) {
            char op = e->at[-1];
            int64_t by = primary(e);
            if (!by || by == -1) {
                e->ok = false;
                return 0;
            }
            value = op == '/' ? value / by : value % by;
        } else {
            break;
        }
    }
    return value;
}

static int64_t sum(struct expr *e)
{
    int64_t value = product(e);

    while (e->ok) {
        if (eat(e, "+"))
            e->ok &= !__builtin_add_overflow(value, product(e), &value);
        else if (eat(e, "-"))
            e->ok &= !__builtin_sub_overflow(value, product(e), &value);
        else
            break;
    }
    return value;
}

static int64_t comparison(struct expr *e)
{
    int64_t value = sum(e);

    if (!e->ok)
        return 0;
    if (eat(e, "<="))
        return value <= sum(e);
    if (eat(e, ">="))
        return value >= sum(e);
    if (eat(e, "=="))
        return value == sum(e);
    if (eat(e, "!="))
        return value != sum(e);
    if (eat(e, "<"))
        return value < sum(e);
    if (eat(e, ">"))
        return value > sum(e);
    return value;
}

static int64_t ternary(struct expr *e)
{
    int64_t value = comparison(e);

    if (!e->ok || !eat(e, "?"))
        return value;
    int64_t yes = ternary(e);
    e->ok &= eat(e, ":");
    int64_t no = e->ok ? ternary(e) : 0;
    return value ? yes : no;
}

bool rw_arithmetic(struct rw *rw, const char *expr, size_t length, int64_t *out)
{
    struct expr e = {.rw = rw, .at = expr, .end = expr + length, .ok = true};

    int64_t value = ternary(&e);
    skip_blanks(&e);
    if (!e.ok || e.at != e.end)
        return false;
    *out = value;
    return true;
}
