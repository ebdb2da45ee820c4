/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "policies/rewrite/plan.h"

static const char *escape(struct rw *rw, const char *bytes, const char *which)
{
    char *out = rw_alloc(&rw->arena, strlen(bytes) * 2 + 1);
    char *to = out;

    for (; *bytes; bytes++) {
        if (strchr(which, *bytes))
            *to++ = '\\';
        *to++ = *bytes;
    }
    return out;
}

/* Bytes for the inside of single quotes: a quote closes, stands escaped, and opens again. */
static const char *inside_single(struct rw *rw, const char *bytes)
{
    char *out = rw_alloc(&rw->arena, strlen(bytes) * 4 + 1);
    char *to = out;

    for (; *bytes; bytes++) {
        if (*bytes == '\'') {
            memcpy(to, "'\\''", 4);
            to += 4;
        } else {
            *to++ = *bytes;
        }
    }
    return out;
}

const char *rw_shell_word(struct rw *rw, const char *bytes)
{
    if (*bytes && strspn(bytes, RW_PLAIN) == strlen(bytes))
        return bytes;
    return rw_printf(&rw->arena, "'%s'", inside_single(rw, bytes));
}

const char *rw_encode(struct rw *rw, enum rw_quote quote, const char *bytes)
{
    switch (quote) {
    case RW_DQ:
        return escape(rw, bytes, "\\\"$`");
    case RW_SQ:
        return inside_single(rw, bytes);
    case RW_ANSI:
        return escape(rw, bytes, "\\'");
    case RW_HEREDOC:
        return escape(rw, bytes, "\\$`");
    case RW_RAW:
        return bytes;
    case RW_BARE:
        break;
    }
    return rw_shell_word(rw, bytes);
}
