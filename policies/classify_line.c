/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes without terminal control; what digits, file names and clocks say. */
#include <ctype.h>
#include <string.h>

#include "policies/classify_private.h"

/* --- cleaning ------------------------------------------------------------------------------- */

static size_t escape_length(const char *text, size_t length)
{
    size_t i = 1;

    if (length < 2)
        return length;
    if (text[1] == '[') { /* CSI: parameters, then a final byte */
        for (i = 2; i < length && text[i] >= 0x20; i++)
            if (text[i] >= 0x40 && text[i] <= 0x7e)
                return i + 1;
        return i;
    }
    if (text[1] == ']') { /* OSC: up to BEL or ST */
        for (i = 2; i < length && i < 512 && text[i] != '\n'; i++) {
            if (text[i] == '\a')
                return i + 1;
            if (text[i] == '\033')
                return i + 1 < length ? i + 2 : length;
        }
        return 2;
    }
    return 2;
}

size_t oom_bytes_clean(const char *raw, size_t length, char *out)
{
    size_t n = 0;

    for (size_t i = 0; i < length;) {
        if (raw[i] == '\033')
            i += escape_length(raw + i, length - i);
        else if (raw[i] == '\0')
            i++;
        else
            out[n++] = raw[i++];
    }
    return n;
}

void oom_line_strip(char *text)
{
    text[oom_bytes_clean(text, strlen(text), text)] = '\0';
}

/* --- digits ----------------------------------------------------------------------------------- */

int oom_digits_read(const char *at, const char *end, const char **after)
{
    int value = 0;
    const char *p = at;

    while (p < end && isdigit((unsigned char)*p) && p - at < 7)
        value = value * 10 + (*p++ - '0');
    *after = p;
    return p == at || (p < end && isdigit((unsigned char)*p)) ? -1 : value;
}

bool oom_digits_only(const char *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isdigit((unsigned char)at[i]))
            return false;
    return true;
}

/* --- file names and clocks ------------------------------------------------------------------- */

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

int oom_line_file_rank(const char *file)
{
    const char *base = file ? strrchr(file, '/') : NULL;
    const char *after;

    if (!file)
        return -1;
    base = base ? base + 1 : file;
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

uint64_t oom_line_time(const char *text, size_t length)
{
    size_t window = length < 160 ? length : 160;

    for (size_t i = 2; i + 6 <= window; i++) {
        if (text[i] != ':' || text[i + 3] != ':' || !oom_digits_only(text + i - 2, 2) ||
            !oom_digits_only(text + i + 1, 2) || !oom_digits_only(text + i + 4, 2))
            continue;
        uint64_t time = (uint64_t)((text[i - 2] - '0') * 10 + (text[i - 1] - '0')) * 3600 +
                        (uint64_t)((text[i + 1] - '0') * 10 + (text[i + 2] - '0')) * 60 +
                        (uint64_t)((text[i + 4] - '0') * 10 + (text[i + 5] - '0'));
        uint64_t day = 0;
        size_t back = i - 2;
        /* "2026-03-10 07:", "2026-03-10T07:", "[E0310 07:" */
        if (back >= 6 && text[back - 4] == '-' && oom_digits_only(text + back - 3, 2) &&
            back >= 6 && oom_digits_only(text + back - 6, 2))
            day = (uint64_t)((text[back - 6] - '0') * 10 + (text[back - 5] - '0')) * 31 +
                  (uint64_t)((text[back - 3] - '0') * 10 + (text[back - 2] - '0'));
        else if (back >= 5 && oom_digits_only(text + back - 5, 4))
            day = (uint64_t)((text[back - 5] - '0') * 10 + (text[back - 4] - '0')) * 31 +
                  (uint64_t)((text[back - 3] - '0') * 10 + (text[back - 2] - '0'));
        return (day * 86400 + time) * 1000 + 1;
    }
    return 0;
}
