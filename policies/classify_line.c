/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes without terminal control; what digits and clocks say. */
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

/* --- clocks ---------------------------------------------------------------------------------- */

/* Seconds to take off a clock that states its zone behind seconds and fractions: "+02:00". */
static int zone_seconds(const char *at, const char *end)
{
    while (at < end && (isdigit((unsigned char)*at) || *at == '.' || *at == ','))
        at++;
    if (end - at < 6 || (*at != '+' && *at != '-') || !oom_digits_only(at + 1, 2) || at[3] != ':' ||
        !oom_digits_only(at + 4, 2))
        return 0;
    int seconds =
        ((at[1] - '0') * 10 + (at[2] - '0')) * 3600 + ((at[4] - '0') * 10 + (at[5] - '0')) * 60;
    return *at == '+' ? seconds : -seconds;
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
        int zone = day ? zone_seconds(text + i + 6, text + length) : 0;
        return (uint64_t)((int64_t)(day * 86400 + time) - zone) * 1000 + 1;
    }
    return 0;
}
