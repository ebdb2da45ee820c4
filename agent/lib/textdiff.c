/* SPDX-License-Identifier: Apache-2.0
 *
 * Rewrites touch few lines, so what both texts begin and end with is stripped first; the rest is
 * aligned by the longest common subsequence, or shown as one replacement when it is large. */
#include "agent/lib/textdiff.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 2, MAX_LCS_LINES = 2000 };

struct line {
    const char *bytes;
    size_t length; /* without the line feed */
    bool feed;
};

struct text {
    struct line *lines;
    size_t count;
};

static int split(const char *bytes, size_t length, struct text *out)
{
    size_t count = 1;

    for (size_t i = 0; i < length; i++)
        count += bytes[i] == '\n';
    out->count = 0;
    out->lines = calloc(count, sizeof(*out->lines));
    if (!out->lines)
        return -1;
    for (const char *p = bytes, *end = bytes + length; p < end;) {
        const char *feed = memchr(p, '\n', (size_t)(end - p));
        const char *stop = feed ? feed : end;
        out->lines[out->count++] = (struct line){p, (size_t)(stop - p), feed != NULL};
        p = stop + (feed ? 1 : 0);
    }
    return 0;
}

static bool same(const struct line *a, const struct line *b)
{
    return a->length == b->length && a->feed == b->feed &&
           memcmp(a->bytes, b->bytes, a->length) == 0;
}

/* marks[i]: line i of the old text stays; the same for the new text. */
static int align(const struct text *a, const struct text *b, bool *keep_a, bool *keep_b)
{
    size_t head = 0, tail = 0;

    while (head < a->count && head < b->count && same(&a->lines[head], &b->lines[head]))
        keep_a[head] = keep_b[head] = true, head++;
    while (tail < a->count - head && tail < b->count - head &&
           same(&a->lines[a->count - 1 - tail], &b->lines[b->count - 1 - tail])) {
        keep_a[a->count - 1 - tail] = keep_b[b->count - 1 - tail] = true;
        tail++;
    }
    size_t n = a->count - head - tail, m = b->count - head - tail;
    if (n == 0 || m == 0 || n > MAX_LCS_LINES || m > MAX_LCS_LINES)
        return 0;
    uint16_t *best = calloc((n + 1) * (m + 1), sizeof(*best));
    if (!best)
        return -1;
    for (size_t i = n; i-- > 0;)
        for (size_t k = m; k-- > 0;) {
            uint16_t down = best[(i + 1) * (m + 1) + k], right = best[i * (m + 1) + k + 1];
            best[i * (m + 1) + k] = same(&a->lines[head + i], &b->lines[head + k])
                                        ? (uint16_t)(best[(i + 1) * (m + 1) + k + 1] + 1)
                                    : down > right ? down
                                                   : right;
        }
    for (size_t i = 0, k = 0; i < n && k < m;) {
        if (same(&a->lines[head + i], &b->lines[head + k]))
            keep_a[head + i++] = keep_b[head + k++] = true;
        else if (best[(i + 1) * (m + 1) + k] >= best[i * (m + 1) + k + 1])
            i++;
        else
            k++;
    }
    free(best);
    return 0;
}

static void put_line(FILE *out, char mark, const struct line *line)
{
    fputc(mark, out);
    fwrite(line->bytes, 1, line->length, out);
    fputc('\n', out);
    if (!line->feed)
        fputs("\\ No newline at end of file\n", out);
}

/* Changes that are close to each other share a hunk. */
static void hunks(FILE *out, const struct text *a, const struct text *b, const bool *keep_a,
                  const bool *keep_b)
{
    size_t i = 0, k = 0;

    for (;;) {
        while (i < a->count && k < b->count && keep_a[i] && keep_b[k])
            i++, k++;
        if (i >= a->count && k >= b->count)
            return;
        size_t start_a = i > CONTEXT ? i - CONTEXT : 0, start_b = k - (i - start_a);
        size_t end_a = i, end_b = k, same_run = 0;
        while (end_a < a->count || end_b < b->count) {
            bool kept = end_a < a->count && end_b < b->count && keep_a[end_a] && keep_b[end_b];
            if (kept && ++same_run > 2 * CONTEXT)
                break;
            if (kept) {
                end_a++, end_b++;
                continue;
            }
            same_run = 0;
            if (end_a < a->count && !keep_a[end_a])
                end_a++;
            else if (end_b < b->count)
                end_b++;
            else
                break;
        }
        size_t trail = same_run > CONTEXT ? same_run - CONTEXT : 0;
        if (same_run > 2 * CONTEXT)
            trail = CONTEXT;
        end_a -= trail, end_b -= trail;
        fprintf(out, "@@ -%zu,%zu +%zu,%zu @@\n", end_a > start_a ? start_a + 1 : start_a,
                end_a - start_a, end_b > start_b ? start_b + 1 : start_b, end_b - start_b);
        for (size_t p = start_a, q = start_b; p < end_a || q < end_b;) {
            if (p < end_a && !keep_a[p])
                put_line(out, '-', &a->lines[p++]);
            else if (q < end_b && !keep_b[q])
                put_line(out, '+', &b->lines[q++]);
            else
                put_line(out, ' ', &a->lines[p++]), q++;
        }
        i = end_a, k = end_b;
    }
}

char *textdiff_unified(const char *old_name, const char *new_name, const char *old_bytes,
                       size_t old_length, const char *new_bytes, size_t new_length)
{
    struct text a = {NULL, 0}, b = {NULL, 0};
    bool *keep_a = NULL, *keep_b = NULL;
    char *result = NULL;
    size_t size = 0;

    if (old_length == new_length && memcmp(old_bytes, new_bytes, old_length) == 0)
        return calloc(1, 1);
    if (split(old_bytes, old_length, &a) == 0 && split(new_bytes, new_length, &b) == 0) {
        keep_a = calloc(a.count + 1, sizeof(bool));
        keep_b = calloc(b.count + 1, sizeof(bool));
        FILE *out = keep_a && keep_b && align(&a, &b, keep_a, keep_b) == 0
                        ? open_memstream(&result, &size)
                        : NULL;
        if (out) {
            fprintf(out, "--- %s\n+++ %s\n", old_name, new_name);
            hunks(out, &a, &b, keep_a, keep_b);
            fclose(out);
        }
    }
    free(keep_a);
    free(keep_b);
    free(a.lines);
    free(b.lines);
    return result;
}
