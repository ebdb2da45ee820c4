/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests that the script itself settles ([ "$USE_LORA" = 1 ] behind USE_LORA=0). Whatever depends
 * on the environment, the machine or files stays open: a requeued job may find another. */
#include <stdlib.h>
#include <string.h>

#include "policies/rewrite/walk.h"

#define MAX_WORDS 4

static bool settled(const struct rw_text *text)
{
    for (size_t i = 0; i < text->count; i++) {
        if (text->frags[i].kind != RW_LITERAL)
            return false;
        for (const struct rw_via *via = text->frags[i].via; via; via = via->next)
            if (via->fixed)
                return false;
    }
    return !text->wild;
}

static int words_of(struct rw *rw, const struct rw_buf *buf, uint32_t at, uint32_t end,
                    const char **words, bool *quoted)
{
    const char *b = buf->bytes;
    int count = 0;

    while (at < end) {
        while (at < end && strchr(" \t\n", b[at]))
            at++;
        if (at == end)
            break;
        uint32_t start = at;
        while (at < end && !strchr(" \t\n", b[at])) {
            if (b[at] == '\'')
                at = rw_skip_single(b, at, end);
            else if (b[at] == '"')
                at = rw_skip_double(b, at, end);
            else if (b[at] == '$' && at + 1 < end && b[at + 1] == '{')
                at = rw_skip_brace(b, at + 1, end);
            else if (b[at] == '$' && at + 1 < end && b[at + 1] == '(')
                at = rw_skip_paren(b, at + 1, end);
            else
                at += b[at] == '\\' ? 2 : 1;
        }
        if (at > end)
            at = end;
        if (count == MAX_WORDS)
            return -1;
        struct rw_text text;
        rw_expand_text(rw, buf, start, at, RW_BARE, &text);
        if (!settled(&text))
            return -1;
        quoted[count] = b[start] == '"' || b[start] == '\'';
        words[count++] = rw_text_string(rw, &text);
    }
    return count;
}

static int compare(const char *a, const char *op, const char *b, bool quoted)
{
    char *end_a, *end_b;

    if (strcmp(op, "=") == 0 || strcmp(op, "==") == 0 || strcmp(op, "!=") == 0) {
        if (!quoted && strpbrk(b, "*?["))
            return -1;
        return (strcmp(a, b) == 0) == (op[0] != '!');
    }
    if (op[0] != '-' || !*a || !*b)
        return -1;
    long long x = strtoll(a, &end_a, 10), y = strtoll(b, &end_b, 10);
    if (*end_a || *end_b)
        return -1;
    if (strcmp(op, "-eq") == 0)
        return x == y;
    if (strcmp(op, "-ne") == 0)
        return x != y;
    if (strcmp(op, "-gt") == 0)
        return x > y;
    if (strcmp(op, "-ge") == 0)
        return x >= y;
    if (strcmp(op, "-lt") == 0)
        return x < y;
    if (strcmp(op, "-le") == 0)
        return x <= y;
    return -1;
}

int rw_condition(struct rw *rw, const struct rw_buf *buf, const struct rw_node *node)
{
    const char *b = buf->bytes;
    uint32_t at = node->start, end = node->end;
    const char *words[MAX_WORDS];
    bool quoted[MAX_WORDS];
    uint64_t reads = rw->env_reads;

    if (node->type != RW_N_TEST || end - at < 4 || b[at] != '[')
        return -1;
    at += b[at + 1] == '[' ? 2 : 1;
    end -= b[end - 2] == ']' ? 2 : 1;
    int count = words_of(rw, buf, at, end, words, quoted);
    if (count < 1 || rw->env_reads != reads)
        return -1;
    bool negated = count > 1 && strcmp(words[0], "!") == 0;
    const char **w = words + (negated ? 1 : 0);
    const bool *q = quoted + (negated ? 1 : 0);
    count -= negated;
    int result = -1;
    if (count == 1)
        result = w[0][0] != '\0';
    else if (count == 2 && strcmp(w[0], "-n") == 0)
        result = w[1][0] != '\0';
    else if (count == 2 && strcmp(w[0], "-z") == 0)
        result = w[1][0] == '\0';
    else if (count == 3)
        result = compare(w[0], w[1], w[2], q[2]);
    return result < 0 ? -1 : negated ? !result : result;
}
