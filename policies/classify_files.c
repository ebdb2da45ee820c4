/* SPDX-License-Identifier: Apache-2.0
 *
 * What the names of log files tell: the rank that wrote one, the attempt that it is of, and which
 * are the parts of one log that was rotated. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "policies/classify_private.h"

const char *oom_file_base(const char *file)
{
    const char *slash = strrchr(file, '/');

    return slash ? slash + 1 : file;
}

/* --- ranks ------------------------------------------------------------------------------------ */

/* "rank7.log", "stderr_rank-07.log", "RANK_7.err"; a local rank is no rank of the job. */
static int rank_in_name(const char *name)
{
    const char *after;

    for (const char *at = name; (at = strcasestr(at, "rank")) != NULL; at += 4) {
        if (at - name >= 6 && strncasecmp(at - 6, "local", 5) == 0)
            continue;
        const char *digits = at + 4 + (at[4] == '_' || at[4] == '-');
        int value = oom_digits_read(digits, name + strlen(name), &after);
        if (value >= 0)
            return value;
    }
    return -1;
}

int oom_file_rank(const char *file)
{
    const char *base = oom_file_base(file);
    const char *after;
    int rank = rank_in_name(base);

    if (rank >= 0)
        return rank;
    /* torchelastic: .../attempt_0/3/stderr.log */
    if ((strcmp(base, "stderr.log") == 0 || strcmp(base, "stdout.log") == 0) && base - file > 2) {
        const char *slash = base - 1;
        const char *start = slash;
        while (start > file && start[-1] != '/')
            start--;
        int value = oom_digits_read(start, slash, &after);
        if (value >= 0 && after == slash)
            return value;
    }
    return -1;
}

/* --- attempts --------------------------------------------------------------------------------- */

/* "attempt_1", "train-restart2" */
static int counted_attempt(const char *part, const char *end)
{
    static const char *const words[] = {"attempt", "restart"};
    const char *after;

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        size_t length = strlen(words[i]);
        const char *at = memmem(part, (size_t)(end - part), words[i], length);
        if (!at || (at > part && isalnum((unsigned char)at[-1])))
            continue;
        at += length;
        if (at < end && strchr("_-.", *at))
            at++;
        int value = oom_digits_read(at, end, &after);
        if (value >= 0)
            return value;
    }
    return -1;
}

/* "4711-logs", and "4711-1-logs" after the job was requeued: NeMo-RL */
static int requeued_attempt(const char *part, const char *end)
{
    static const char logs[] = "-logs";
    const char *at;

    if (oom_digits_read(part, end, &at) < 0 && at - part < 7)
        return -1;
    while (at < end && isdigit((unsigned char)*at))
        at++;
    int value = 0;
    if (end - at > 1 && *at == '-' && isdigit((unsigned char)at[1]))
        value = oom_digits_read(at + 1, end, &at);
    return (size_t)(end - at) == sizeof(logs) - 1 && memcmp(at, logs, sizeof(logs) - 1) == 0 ? value
                                                                                             : -1;
}

int oom_file_attempt(const char *file, size_t *place)
{
    int attempt = -1;

    *place = 0;

    for (const char *part = file; *part; part += *part == '/') {
        const char *end = strchrnul(part, '/');
        int value = counted_attempt(part, end);
        if (value < 0)
            value = requeued_attempt(part, end);
        if (value >= 0) {
            attempt = value;
            *place = (size_t)(part - file);
        }
        part = end;
    }
    return attempt;
}

/* --- parts of a log --------------------------------------------------------------------------- */

#define COUNT_DIGITS_MAX 3 /* train.log.1; more of them are a date */

/* How much of a name is left when how it was packed is taken off. */
static size_t unpacked_length(const char *name)
{
    static const char *const packed[] = {".gz", ".xz", ".zst", ".bz2", ".lz4"};
    size_t length = strlen(name);

    for (size_t i = 0; i < sizeof(packed) / sizeof(*packed); i++) {
        size_t n = strlen(packed[i]);
        if (length > n && strcmp(name + length - n, packed[i]) == 0)
            return length - n;
    }
    return length;
}

struct part {
    size_t log_length; /* of the name of the log that it is of */
    const char *mark;  /* "2", "20260304", "2026-03-04_10-00-00" */
    size_t mark_length;
};

/* "train.log.2", "train.log-20260304.gz", "0.log.20260304-100000" */
static bool read_part(const char *name, struct part *part)
{
    size_t end = unpacked_length(name);
    size_t at = end;
    size_t digits = 0;

    while (at > 0 && (isdigit((unsigned char)name[at - 1]) || strchr("-_", name[at - 1])))
        digits += isdigit((unsigned char)name[--at]) != 0;
    /* A mark of a date may stand behind a dash. */
    if (at < end && at > 0 && name[at] == '-')
        at++;
    else if (at == 0 || name[at - 1] != '.')
        return false;
    if (digits == 0 || (digits > COUNT_DIGITS_MAX && digits < 8) || at < 2)
        return false;
    *part = (struct part){at - 1, name + at, end - at};
    return true;
}

/* The highest count is the oldest, the lowest date. */
static bool is_older(const struct part *a, const struct part *b)
{
    if (a->mark_length <= COUNT_DIGITS_MAX && b->mark_length <= COUNT_DIGITS_MAX)
        return strtol(a->mark, NULL, 10) > strtol(b->mark, NULL, 10);
    size_t n = a->mark_length < b->mark_length ? a->mark_length : b->mark_length;
    return strncmp(a->mark, b->mark, n) < 0;
}

static bool is_part_of(const char *log, const struct part *part, const char *name)
{
    return strncmp(log, name, part->log_length) == 0 && unpacked_length(log) == part->log_length;
}

struct names {
    const char **all;
    const char **left; /* NULL where one was taken */
    size_t count;
};

/* "train.log.0": such counts are of ranks, a rotated log's begin with 1. */
static bool counts_ranks(const struct names *names, const struct part *part, const char *name)
{
    for (size_t i = 0; i < names->count; i++) {
        const char *other = names->all[i];
        if (strncmp(other, name, part->log_length) == 0 &&
            strncmp(other + part->log_length, ".0", 2) == 0 &&
            unpacked_length(other) == part->log_length + 2)
            return true;
    }
    return false;
}

/* Hands the parts of `log` over, oldest first. */
static size_t take_parts(const char *log, const struct names *names, const char **out)
{
    size_t taken = 0;
    struct part part;
    struct part other;

    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->left[i];
        if (!name || !read_part(name, &part) || !is_part_of(log, &part, name) ||
            counts_ranks(names, &part, name))
            continue;
        size_t at = taken++;
        for (; at > 0 && read_part(out[at - 1], &other) && is_older(&part, &other); at--)
            out[at] = out[at - 1];
        out[at] = name;
        names->left[i] = NULL;
    }
    return taken;
}

/* The log that a file is a part of, if that is there: parts alone may be the files of ranks. */
static size_t find_log(const struct names *names, size_t index)
{
    const char *name = names->left[index];
    struct part part;

    if (!read_part(name, &part) || counts_ranks(names, &part, name))
        return index;
    for (size_t i = 0; i < names->count; i++)
        if (names->left[i] && is_part_of(names->left[i], &part, name))
            return i;
    return index;
}

int oom_logs_in_order(const char **files, size_t count, bool *goes_on)
{
    struct names names = {calloc(count + 1, sizeof(*files)), calloc(count + 1, sizeof(*files)),
                          count};
    size_t n = 0;

    if (names.all && names.left) {
        memcpy(names.all, files, count * sizeof(*files));
        memcpy(names.left, files, count * sizeof(*files));
    }
    for (size_t i = 0; names.all && names.left && i < count; i++) {
        if (!names.left[i])
            continue;
        size_t index = find_log(&names, i);
        const char *log = names.left[index];
        names.left[index] = NULL;
        size_t parts = take_parts(log, &names, files + n);
        for (size_t k = 0; k <= parts; k++)
            goes_on[n + k] = k > 0;
        files[n + parts] = log;
        n += parts + 1;
    }
    free(names.all);
    free(names.left);
    return n == count ? 0 : -1;
}
