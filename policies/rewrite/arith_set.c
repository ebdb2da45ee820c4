/* SPDX-License-Identifier: Apache-2.0
 *
 * Assignments of arithmetic: ((MBS /= 2)), let ACC=4, ((i++)). */
#include <ctype.h>
#include <string.h>

#include "policies/rewrite/rw.h"

static bool name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static size_t blanks(const char *text, size_t at, size_t end)
{
    while (at < end && isspace((unsigned char)text[at]))
        at++;
    return at;
}

/* The text of a number that was computed: no place of the script has it. */
static void set_number(struct rw *rw, const struct rw_buf *buf, const char *name, int64_t number)
{
    struct rw_text text = {0};
    struct rw_frag frag = {.bytes = rw_printf(&rw->arena, "%lld", (long long)number),
                           .kind = RW_DERIVED,
                           .quote = RW_BARE,
                           .buf = buf,
                           .partial = true};

    frag.length = (uint32_t)strlen(frag.bytes);
    rw_text_push(rw, &text, &frag);
    rw_var_set_text(rw, name, &text);
}

/* "NAME = expression", "NAME += expression", "NAME++" as a whole. */
static bool sets_one(struct rw *rw, const struct rw_buf *buf, const char *text, size_t end)
{
    size_t at = blanks(text, 0, end), from = at;
    char op = '\0';
    int64_t number;

    while (at < end && name_char(text[at]))
        at++;
    if (at == from || isdigit((unsigned char)text[from]))
        return false;
    const char *name = rw_strndup(&rw->arena, text + from, at - from);
    at = blanks(text, at, end);
    if (at < end && strchr("+-*/%", text[at]))
        op = text[at++];
    const char *value = NULL;
    if (at < end && op && text[at] == op && blanks(text, at + 1, end) == end)
        value = "1"; /* "++" */
    else if (at < end && text[at] == '=' && (at + 1 == end || text[at + 1] != '='))
        value = rw_strndup(&rw->arena, text + at + 1, end - at - 1);
    if (!value)
        return false;
    if (op)
        value = rw_printf(&rw->arena, "%s %c (%s)", name, op, value);
    if (rw_arithmetic(rw, value, strlen(value), &number))
        set_number(rw, buf, name, number);
    else
        rw_var_set_unknown(rw, name);
    return true;
}

/* Wherever something is assigned inside of an expression, it is not known what. */
void rw_arithmetic_loses(struct rw *rw, const char *text, size_t end)
{
    for (size_t at = 0; at < end;) {
        size_t from = at;
        while (at < end && name_char(text[at]))
            at++;
        if (at == from || isdigit((unsigned char)text[from])) {
            at += at == from;
            continue;
        }
        size_t next = blanks(text, at, end);
        bool stepped = from >= 2 && (text[from - 1] == '+' || text[from - 1] == '-') &&
                       text[from - 2] == text[from - 1];
        if (next + 1 < end && (text[next] == '+' || text[next] == '-'))
            stepped |= text[next + 1] == text[next];
        while (next < end && strchr("+-*/%<>&^|", text[next]))
            next++;
        bool assigned = next < end && text[next] == '=' &&
                        (next + 1 == end || text[next + 1] != '=') &&
                        (next == at || !strchr("<>", text[next - 1]) ||
                         (next >= 2 && text[next - 2] == text[next - 1]));
        if (stepped || assigned)
            rw_var_set_unknown(rw, rw_strndup(&rw->arena, text + from, at - from));
    }
}

void rw_arithmetic_sets(struct rw *rw, const struct rw_buf *buf, const char *expr, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t stop = at;
        int depth = 0;
        while (stop < length && (depth || expr[stop] != ',')) {
            depth += (expr[stop] == '(') - (expr[stop] == ')');
            stop++;
        }
        if (!sets_one(rw, buf, expr + at, stop - at))
            rw_arithmetic_loses(rw, expr + at, stop - at);
        at = stop + 1;
    }
}
