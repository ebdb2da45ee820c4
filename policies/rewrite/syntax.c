/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether bash would refuse a script. The grammar does not know all of bash ("for i do"), so an
 * error of its own is only believed when something is unbalanced or out of place here too. */
#include <string.h>

#include "policies/rewrite/rw.h"

#define MAX_OPEN 256

enum open {
    IF_CONDITION,
    IF_BODY,
    IF_ELSE,
    LOOP_CONDITION,
    FOR_HEAD,
    LOOP_BODY,
    CASE_HEAD,
    CASE_PATTERN,
    CASE_BODY,
    BRACE,
    PAREN,
};

struct checker {
    const char *b;
    uint32_t at, end;
    enum open stack[MAX_OPEN];
    uint32_t opened_at[MAX_OPEN];
    size_t depth;
    bool command;         /* a command may start here */
    bool assigned;        /* "A=1" stands there already */
    bool operator_before; /* "|", "&&": a command must follow */
    uint32_t fault;
};

static bool fault(struct checker *c, uint32_t at)
{
    if (c->fault == RW_NO_ERROR)
        c->fault = at;
    return false;
}

static bool push(struct checker *c, enum open what, uint32_t at)
{
    if (c->depth == MAX_OPEN)
        return fault(c, at);
    c->stack[c->depth] = what;
    c->opened_at[c->depth++] = at;
    return true;
}

static bool top_is(const struct checker *c, enum open what)
{
    return c->depth && c->stack[c->depth - 1] == what;
}

static bool turn(struct checker *c, enum open from, enum open to, uint32_t at)
{
    if (!top_is(c, from))
        return fault(c, at);
    c->stack[c->depth - 1] = to;
    c->command = true;
    return true;
}

static bool pop(struct checker *c, enum open a, enum open b, uint32_t at)
{
    if (!top_is(c, a) && !top_is(c, b))
        return fault(c, at);
    c->depth--;
    c->command = c->operator_before = false;
    return true;
}

static bool closed(const struct checker *c, uint32_t start, uint32_t stop, char close)
{
    return stop > start + 1 && stop <= c->end && c->b[stop - 1] == close;
}

/* Steps over a word; false when something in it is not closed. */
static bool word(struct checker *c)
{
    while (c->at < c->end) {
        uint32_t start = c->at;
        char ch = c->b[c->at];
        char next = c->at + 1 < c->end ? c->b[c->at + 1] : '\0';
        char close = '\0';
        if (ch == '\\') {
            c->at += 2;
            continue;
        }
        if (ch == '\'' || (ch == '$' && next == '\'')) {
            uint32_t quote = ch == '$' ? c->at + 1 : c->at;
            c->at = rw_skip_single(c->b, quote, c->end);
            if (ch == '$') /* "\'" does not close $'…' */
                while (c->at < c->end && c->b[c->at - 2] == '\\')
                    c->at = rw_skip_single(c->b, c->at - 1, c->end);
            if (!closed(c, quote, c->at, '\''))
                return fault(c, start);
            continue;
        }
        if (ch == '"') {
            c->at = rw_skip_double(c->b, c->at, c->end);
            close = '"';
        } else if (ch == '$' && next == '(') {
            c->at = rw_skip_paren(c->b, c->at + 1, c->end);
            close = ')';
        } else if (ch == '$' && next == '{') {
            c->at = rw_skip_brace(c->b, c->at + 1, c->end);
            close = '}';
        } else if (ch == '`') {
            for (c->at++; c->at < c->end && c->b[c->at] != '`'; c->at++)
                if (c->b[c->at] == '\\')
                    c->at++;
            c->at++;
            close = '`';
        } else if (ch == '(' && c->at > 0 && strchr("=@?*+!", c->b[c->at - 1])) {
            c->at = rw_skip_paren(c->b, c->at, c->end);
            close = ')';
        } else if (rw_separates(ch) || ch == ')' || ch == '<' || ch == '>') {
            return true;
        } else {
            c->at++;
            continue;
        }
        if (!closed(c, start, c->at, close))
            return fault(c, start);
    }
    return true;
}

static bool is(const struct checker *c, uint32_t start, const char *text)
{
    size_t n = strlen(text);

    return c->at - start == n && memcmp(c->b + start, text, n) == 0;
}

static void skip_test(struct checker *c)
{
    while (c->at < c->end) {
        while (c->at < c->end && strchr(" \t\n", c->b[c->at]))
            c->at++;
        uint32_t start = c->at;
        if (c->at < c->end && strchr(";|&()<>", c->b[c->at])) {
            c->at++;
            continue;
        }
        if (!word(c) || is(c, start, "]]"))
            return;
    }
}

/* A word where a command may start. */
static bool keyword(struct checker *c, uint32_t start)
{
    if (is(c, start, "if"))
        return push(c, IF_CONDITION, start);
    if (is(c, start, "then"))
        return turn(c, IF_CONDITION, IF_BODY, start);
    if (is(c, start, "elif"))
        return turn(c, IF_BODY, IF_CONDITION, start);
    if (is(c, start, "else"))
        return turn(c, IF_BODY, IF_ELSE, start);
    if (is(c, start, "fi"))
        return pop(c, IF_BODY, IF_ELSE, start);
    if (is(c, start, "while") || is(c, start, "until"))
        return push(c, LOOP_CONDITION, start);
    if (is(c, start, "do"))
        return turn(c, top_is(c, FOR_HEAD) ? FOR_HEAD : LOOP_CONDITION, LOOP_BODY, start);
    if (is(c, start, "done"))
        return pop(c, LOOP_BODY, LOOP_BODY, start);
    if (is(c, start, "esac"))
        return pop(c, CASE_PATTERN, CASE_BODY, start);
    if (is(c, start, "}"))
        return pop(c, BRACE, BRACE, start);
    if (is(c, start, "{"))
        return push(c, BRACE, start);
    if (is(c, start, "function")) {
        while (c->at < c->end && strchr(" \t", c->b[c->at]))
            c->at++;
        return word(c); /* its name: the body is a command of its own */
    }
    if (is(c, start, "[[")) {
        skip_test(c);
        c->command = false;
        return true;
    }
    if (is(c, start, "for") || is(c, start, "select") || is(c, start, "case")) {
        bool loop = !is(c, start, "case");
        if (!push(c, loop ? FOR_HEAD : CASE_HEAD, start))
            return false;
        while (c->at < c->end && strchr(" \t", c->b[c->at]))
            c->at++;
        if (loop && c->at < c->end && c->b[c->at] == '(')
            c->at = rw_skip_paren(c->b, c->at, c->end);
        else if (!word(c))
            return false;
        c->command = loop;
        return true;
    }
    c->command = is(c, start, "!") || is(c, start, "time") ||
                 memchr(c->b + start, '=', c->at - start) != NULL;
    return true;
}

static bool take_word(struct checker *c)
{
    uint32_t start = c->at;

    if (!word(c))
        return false;
    c->operator_before = false;
    c->assigned = c->command && memchr(c->b + start, '=', c->at - start) != NULL;
    if (top_is(c, CASE_HEAD)) {
        if (is(c, start, "in"))
            c->stack[c->depth - 1] = CASE_PATTERN;
        return true;
    }
    if (top_is(c, CASE_PATTERN))
        return is(c, start, "esac") ? pop(c, CASE_PATTERN, CASE_PATTERN, start) : true;
    if (top_is(c, FOR_HEAD) && c->command && is(c, start, "in")) {
        c->command = false;
        return true;
    }
    return c->command ? keyword(c, start) : true;
}

static bool parenthesis(struct checker *c)
{
    uint32_t start = c->at;

    if (c->b[c->at] == ')') {
        c->at++;
        if (top_is(c, CASE_PATTERN)) {
            c->stack[c->depth - 1] = CASE_BODY;
            c->command = true;
            return true;
        }
        return c->operator_before ? fault(c, start) : pop(c, PAREN, PAREN, start);
    }
    if (top_is(c, CASE_PATTERN)) {
        c->at++;
        return true;
    }
    uint32_t after = c->at + 1;
    while (after < c->end && strchr(" \t", c->b[after]))
        after++;
    if (!c->command || (after < c->end && c->b[after] == ')')) {
        if (after >= c->end || c->b[after] != ')')
            return fault(c, start);
        c->at = after + 1; /* name() */
        c->command = true;
        return true;
    }
    if (c->b[c->at + 1] == '(') {
        uint32_t stop = rw_skip_paren(c->b, c->at, c->end);
        if (!closed(c, start, stop, ')'))
            return fault(c, start);
        if (c->b[stop - 2] == ')') {
            c->at = stop;
            c->command = c->operator_before = false;
            return true;
        }
    }
    c->at++;
    c->operator_before = false;
    return push(c, PAREN, start);
}

static bool take_operator(struct checker *c)
{
    uint32_t start = c->at;
    char ch = c->b[c->at];
    char next = c->at + 1 < c->end ? c->b[c->at + 1] : '\0';

    if (ch == '<' || ch == '>') {
        c->at++;
        if (next == '(') {
            c->at = rw_skip_paren(c->b, c->at, c->end);
            return closed(c, start, c->at, ')') || fault(c, start);
        }
        while (c->at < c->end && strchr("<>&|-", c->b[c->at]))
            c->at++;
        return true;
    }
    if (ch == '&' && next == '>') {
        c->at += 2;
        return true;
    }
    if (ch == ';' && (next == ';' || next == '&')) {
        c->at += next == ';' && c->at + 2 < c->end && c->b[c->at + 2] == '&' ? 3 : 2;
        if (!top_is(c, CASE_BODY))
            return fault(c, start);
        c->stack[c->depth - 1] = CASE_PATTERN;
        return true;
    }
    c->at += next == ch || (ch == '|' && next == '&') ? 2 : 1;
    if (top_is(c, CASE_PATTERN) && ch == '|')
        return true;
    bool joins = ch == '|' || (ch == '&' && next == '&');
    if (c->operator_before || (joins && c->command && !c->assigned))
        return fault(c, start);
    c->operator_before = joins;
    c->assigned = false;
    c->command = true;
    return true;
}

uint32_t rw_syntax_fault(struct rw *rw, const char *bytes, uint32_t length)
{
    struct checker *c = rw_alloc(&rw->arena, sizeof(*c));

    c->b = bytes;
    c->end = length;
    c->command = true;
    c->fault = RW_NO_ERROR;
    while (c->at < c->end && c->fault == RW_NO_ERROR) {
        char ch = bytes[c->at];
        bool fresh = c->at == 0 || rw_separates(bytes[c->at - 1]) || bytes[c->at - 1] == ')';
        if (ch == ' ' || ch == '\t' || ch == '\r') {
            c->at++;
        } else if (ch == '\\' && c->at + 1 < c->end && bytes[c->at + 1] == '\n') {
            c->at += 2;
        } else if (ch == '\n') {
            c->at++;
            if (!top_is(c, CASE_HEAD))
                c->command = true;
        } else if (ch == '#' && fresh) {
            while (c->at < c->end && bytes[c->at] != '\n')
                c->at++;
        } else if (ch == '(' || ch == ')') {
            parenthesis(c);
        } else if (ch == ';' || ch == '|' || ch == '&' || ch == '<' || ch == '>') {
            take_operator(c);
        } else {
            take_word(c);
        }
    }
    if (c->fault == RW_NO_ERROR && c->depth)
        c->fault = c->opened_at[c->depth - 1];
    if (c->fault == RW_NO_ERROR && c->operator_before)
        c->fault = length ? length - 1 : 0;
    return c->fault;
}
