/* SPDX-License-Identifier: Apache-2.0
 *
 * Where quoted and bracketed things end. Each function gets the index of the opening character and
 * returns the index behind the closing one, or `end` when it is missing. Nesting is followed to a
 * fixed depth; beyond it the rest counts as inside. */
#include "policies/rewrite/rw.h"

#define MAX_NESTING 64

static uint32_t skip_double(const char *b, uint32_t at, uint32_t end, int depth);
static uint32_t skip_dollar(const char *b, uint32_t at, uint32_t end, int depth);

uint32_t rw_skip_single(const char *b, uint32_t at, uint32_t end)
{
    for (at++; at < end; at++)
        if (b[at] == '\'')
            return at + 1;
    return end;
}

static uint32_t skip_backtick(const char *b, uint32_t at, uint32_t end)
{
    for (at++; at < end; at++) {
        if (b[at] == '\\')
            at++;
        else if (b[at] == '`')
            return at + 1;
    }
    return end;
}

/* Up to the closing character of a pair, over quotes and expansions. */
static uint32_t skip_pair(const char *b, uint32_t at, uint32_t end, char open, char close,
                          int depth)
{
    int level = 1;

    if (depth > MAX_NESTING)
        return end;
    for (at++; at < end;) {
        char c = b[at];
        if (c == '\\') {
            at += 2;
        } else if (c == '\'') {
            at = rw_skip_single(b, at, end);
        } else if (c == '"') {
            at = skip_double(b, at, end, depth + 1);
        } else if (c == '`') {
            at = skip_backtick(b, at, end);
        } else if (c == '$' && at + 1 < end && (b[at + 1] == '(' || b[at + 1] == '{')) {
            at = skip_dollar(b, at, end, depth + 1);
        } else if (c == '#' && close == ')' && at > 0 &&
                   (b[at - 1] == ' ' || b[at - 1] == '\n' || b[at - 1] == '\t')) {
            while (at < end && b[at] != '\n')
                at++;
        } else {
            at++;
            if (c == open)
                level++;
            else if (c == close && --level == 0)
                return at;
        }
    }
    return end;
}

static uint32_t skip_dollar(const char *b, uint32_t at, uint32_t end, int depth)
{
    return b[at + 1] == '(' ? skip_pair(b, at + 1, end, '(', ')', depth)
                            : skip_pair(b, at + 1, end, '{', '}', depth);
}

static uint32_t skip_double(const char *b, uint32_t at, uint32_t end, int depth)
{
    if (depth > MAX_NESTING)
        return end;
    for (at++; at < end;) {
        if (b[at] == '\\')
            at += 2;
        else if (b[at] == '"')
            return at + 1;
        else if (b[at] == '`')
            at = skip_backtick(b, at, end);
        else if (b[at] == '$' && at + 1 < end && (b[at + 1] == '(' || b[at + 1] == '{'))
            at = skip_dollar(b, at, end, depth + 1);
        else
            at++;
    }
    return end;
}

uint32_t rw_skip_double(const char *b, uint32_t at, uint32_t end)
{
    return skip_double(b, at, end, 0);
}

uint32_t rw_skip_paren(const char *b, uint32_t at, uint32_t end)
{
    return skip_pair(b, at, end, '(', ')', 0);
}

uint32_t rw_skip_brace(const char *b, uint32_t at, uint32_t end)
{
    return skip_pair(b, at, end, '{', '}', 0);
}
