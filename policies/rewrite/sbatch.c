/* SPDX-License-Identifier: Apache-2.0
 *
 * #SBATCH lines: they stand before the first command, and the last of two wins. */
#include <stdlib.h>
#include <string.h>

#include "policies/rewrite/plan.h"

struct line {
    uint32_t start, end; /* without the newline */
    uint32_t number;
};

/* The next #SBATCH line at or behind *at; false when the first command is reached. */
static bool next_line(const struct rw_buf *root, uint32_t *at, uint32_t *number, struct line *out)
{
    while (*at < root->length) {
        const char *start = root->bytes + *at;
        const char *newline = memchr(start, '\n', root->length - *at);
        uint32_t end = newline ? (uint32_t)(newline - root->bytes) : root->length;
        out->start = *at;
        out->end = end;
        out->number = ++*number;
        *at = newline ? end + 1 : end;
        uint32_t length = end - out->start;
        if (length >= 8 && memcmp(start, "#SBATCH", 7) == 0 &&
            (start[7] == ' ' || start[7] == '\t'))
            return true;
        size_t blank = 0;
        while (blank < length &&
               (start[blank] == ' ' || start[blank] == '\t' || start[blank] == '\r'))
            blank++;
        if (blank < length && start[blank] != '#')
            return false;
    }
    return false;
}

/* Where the option's value stands in a line: "--mem=4G", "--mem 4G"; comments end the line. */
static bool value_in(const struct rw_buf *root, const struct line *line, const char *option,
                     uint32_t *from, uint32_t *to)
{
    const char *b = root->bytes;
    size_t n = strlen(option);
    bool found = false;

    for (uint32_t at = line->start + 7; at < line->end;) {
        while (at < line->end && (b[at] == ' ' || b[at] == '\t'))
            at++;
        uint32_t start = at;
        while (at < line->end && b[at] != ' ' && b[at] != '\t')
            at++;
        if (start < line->end && b[start] == '#')
            break;
        uint32_t length = at - start;
        if (length < n + 2 || memcmp(b + start, "--", 2) != 0 ||
            memcmp(b + start + 2, option, n) != 0)
            continue;
        if (length > n + 2 && b[start + 2 + n] == '=') {
            *from = start + 3 + (uint32_t)n;
            *to = at;
            found = true;
        } else if (length == n + 2) {
            while (at < line->end && (b[at] == ' ' || b[at] == '\t'))
                at++;
            *from = at;
            while (at < line->end && b[at] != ' ' && b[at] != '\t')
                at++;
            *to = at;
            found = true;
        }
    }
    return found;
}

static bool find(const struct rw_buf *root, const char *option, uint32_t *from, uint32_t *to,
                 struct line *last, uint32_t *number)
{
    uint32_t at = 0, count = 0;
    struct line line;
    bool found = false;

    last->start = last->end = UINT32_MAX;
    while (next_line(root, &at, &count, &line)) {
        *last = line;
        if (value_in(root, &line, option, from, to)) {
            found = true;
            *number = line.number;
        }
    }
    return found;
}

const char *rw_sbatch_value(struct rw *rw, const struct rw_buf *root, const char *option,
                            uint32_t *line)
{
    uint32_t from, to;
    struct line last;

    if (!find(root, option, &from, &to, &last, line))
        return NULL;
    return rw_strndup(&rw->arena, root->bytes + from, to - from);
}

void rw_sbatch_places(struct rw *rw, const struct rw_buf *root, const char *option,
                      const char *value, struct rw_places *out)
{
    static const char *const rivals[] = {"mem-per-cpu", "mem-per-gpu", NULL};
    struct rw_changes way = {0};
    uint32_t from, to, number;
    struct line last;

    /* Memory without a unit is in MiB. */
    bool memory = strncmp(option, "mem", 3) == 0;
    bool unit = value[0] && strspn(value, "0123456789") == strlen(value) && strcmp(value, "0") != 0;
    const char *text = memory && unit ? rw_printf(&rw->arena, "%sM", value) : value;
    struct rw_change change = {root, 0, 0, text, 0, 0};
    bool found = find(root, option, &change.start, &change.end, &last, &number);
    for (size_t i = 0; !found && strcmp(option, "mem") == 0 && rivals[i]; i++) {
        if (!find(root, rivals[i], &from, &to, &last, &number))
            continue;
        /* "--mem-per-cpu=4G" and "--mem" exclude each other: the word is replaced. */
        change.end = to;
        change.start = from;
        while (change.start > 0 && root->bytes[change.start - 1] != ' ' &&
               root->bytes[change.start - 1] != '\t')
            change.start--;
        change.text = rw_printf(&rw->arena, "--mem=%s", text);
        found = true;
    }
    if (!found) {
        uint32_t at = 0;
        if (last.end != UINT32_MAX)
            at = last.end < root->length ? last.end + 1 : last.end;
        else if (root->length > 2 && memcmp(root->bytes, "#!", 2) == 0) {
            const char *newline = memchr(root->bytes, '\n', root->length);
            at = newline ? (uint32_t)(newline - root->bytes) + 1 : root->length;
        }
        change.start = change.end = at;
        bool open = at > 0 && root->bytes[at - 1] != '\n';
        change.text = rw_printf(&rw->arena, "%s#SBATCH --%s=%s\n", open ? "\n" : "", option, text);
    }
    rw_changes_add(rw, &way, &change);
    out->options =
        rw_more(&rw->arena, out->options, out->count, &out->capacity, sizeof(*out->options));
    out->options[out->count++] = way;
}
