/* SPDX-License-Identifier: Apache-2.0
 *
 * The grammar is wanted for the structure of a script, not for what is inside its words: quoted
 * text and expansions are shown to it as plain letters, comments as blanks. It is then several
 * times faster, and what it does not know about words cannot trip it. Offsets stay the same. */
#include <ctype.h>
#include <string.h>

#include "policies/rewrite/rw.h"

/* End of the quoted text or expansion at `at`; `at` when there is none. */
static uint32_t opaque_end(const char *b, uint32_t at, uint32_t end)
{
    char c = b[at], next = at + 1 < end ? b[at + 1] : '\0';

    if (c == '\'' || (c == '$' && next == '\'')) {
        uint32_t quote = c == '$' ? at + 1 : at;
        uint32_t stop = rw_skip_single(b, quote, end);
        while (c == '$' && stop < end && b[stop - 2] == '\\') /* "\'" does not close $'…' */
            stop = rw_skip_single(b, stop - 1, end);
        return stop;
    }
    if (c == '"')
        return rw_skip_double(b, at, end);
    if (c == '`') {
        for (at++; at < end && b[at] != '`'; at++)
            if (b[at] == '\\')
                at++;
        return at < end ? at + 1 : end;
    }
    if (c == '$' && next == '(')
        return rw_skip_paren(b, at + 1, end);
    if (c == '$' && next == '{')
        return rw_skip_brace(b, at + 1, end);
    if (c == '$' && (isalnum((unsigned char)next) || (next && strchr("_@*#?$!-", next))))
        return at + 2;
    if ((c == '<' || c == '>') && next == '(')
        return rw_skip_paren(b, at + 1, end);
    return at;
}

void rw_mask_words(const char *bytes, uint32_t length, char *out)
{
    bool fresh = true;

    for (uint32_t at = 0; at < length;) {
        char c = bytes[at];
        uint32_t stop = at;
        if (c == '#' && fresh) {
            while (at < length && bytes[at] != '\n')
                out[at++] = ' ';
            continue;
        }
        if (c == '\\') {
            at += 2;
            fresh = false;
            continue;
        }
        if (c == '\'' || c == '"' || c == '`' || c == '$' || c == '<' || c == '>')
            stop = opaque_end(bytes, at, length);
        if (stop > at) {
            memset(out + at, 'x', stop - at);
            at = stop;
            fresh = false;
            continue;
        }
        fresh = rw_separates(c);
        at++;
    }
}
