/* SPDX-License-Identifier: Apache-2.0
 *
 * What the first bytes of a log say of its encoding. PowerShell and other programs of Windows write
 * UTF-16, where a byte that looks like the end of a line may be half of a Chinese character: such
 * a log is read from a copy in UTF-8. Whatever else a log may hold (Latin-1, torn characters) is
 * read as it is: all that is searched is ASCII. */
#include <stdlib.h>
#include <string.h>

#include "policies/classify_private.h"

#define WIDE_BYTES  (64u * 1024) /* of UTF-16 that are copied at a time */
#define REPLACEMENT 0xFFFDu

/* Looks at the first bytes of a log; ENCODING_UNKNOWN: more are needed. `mark`: the length of a
 * byte order mark, which is no text. */
static enum encoding recognise(const unsigned char *head, size_t length, size_t *mark)
{
    static const struct {
        unsigned char bytes[3];
        size_t length;
        enum encoding encoding;
    } marks[] = {
        {{0xEF, 0xBB, 0xBF}, 3, ENCODING_BYTES},
        {{0xFF, 0xFE}, 2, ENCODING_UTF16_LE},
        {{0xFE, 0xFF}, 2, ENCODING_UTF16_BE},
    };

    *mark = 0;
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        size_t n = length < marks[i].length ? length : marks[i].length;
        if (memcmp(head, marks[i].bytes, n) != 0)
            continue;
        *mark = n;
        return n == marks[i].length ? marks[i].encoding : ENCODING_UNKNOWN;
    }
    /* Without a mark: ASCII, every second byte of it zero. A file that was cut back while it was
     * written begins with zeros only. */
    bool little = true;
    bool big = true;
    for (size_t i = 0; i < length; i++) {
        little &= (head[i] == 0) == (i % 2 == 1);
        big &= (head[i] == 0) == (i % 2 == 0);
    }
    if (!little && !big)
        return ENCODING_BYTES;
    if (length < ENCODING_HEAD_BYTES)
        return ENCODING_UNKNOWN;
    return little ? ENCODING_UTF16_LE : ENCODING_UTF16_BE;
}

bool oom_log_is_wide(const void *head, size_t length)
{
    size_t mark;
    size_t told = length < ENCODING_HEAD_BYTES ? length : ENCODING_HEAD_BYTES;
    enum encoding encoding = recognise(head, told, &mark);

    return encoding == ENCODING_UTF16_LE || encoding == ENCODING_UTF16_BE;
}

static char *put_utf8(char *out, uint32_t character)
{
    if (character < 0x80) {
        *out++ = (char)character;
        return out;
    }
    if (character < 0x800) {
        *out++ = (char)(0xC0 | character >> 6);
    } else {
        if (character < 0x10000) {
            *out++ = (char)(0xE0 | character >> 12);
        } else {
            *out++ = (char)(0xF0 | character >> 18);
            *out++ = (char)(0x80 | (character >> 12 & 0x3F));
        }
        *out++ = (char)(0x80 | (character >> 6 & 0x3F));
    }
    *out++ = (char)(0x80 | (character & 0x3F));
    return out;
}

/* One unit of UTF-16. A half of a pair waits for the other one; without it, it is no character. */
static char *put_unit(struct encoding_state *state, char *out, uint32_t unit)
{
    uint32_t high = state->high_surrogate;
    bool low = unit >= 0xDC00 && unit <= 0xDFFF;

    state->high_surrogate = 0;
    if (high && low)
        return put_utf8(out, 0x10000 + ((high & 0x3FF) << 10) + (unit & 0x3FF));
    if (high)
        out = put_utf8(out, REPLACEMENT);
    if (unit >= 0xD800 && unit <= 0xDBFF) {
        state->high_surrogate = (uint16_t)unit;
        return out;
    }
    return put_utf8(out, low ? REPLACEMENT : unit);
}

static int feed_wide(struct oom_classifier *classifier, struct stream *stream,
                     const unsigned char *bytes, size_t length)
{
    struct encoding_state *state = &stream->encoding;
    bool big = state->encoding == ENCODING_UTF16_BE;

    if (!classifier->narrow) /* a unit becomes three bytes at most; and one that was waited for */
        classifier->narrow = malloc(WIDE_BYTES / 2 * 3 + 6);
    if (!classifier->narrow)
        return -1;
    while (length > 0) {
        size_t take = length < WIDE_BYTES ? length : WIDE_BYTES;
        char *out = classifier->narrow;
        for (size_t i = 0; i < take; i++) {
            state->head[state->head_length++] = bytes[i];
            if (state->head_length < 2)
                continue;
            state->head_length = 0;
            out = put_unit(state, out,
                           big ? (uint32_t)state->head[0] << 8 | state->head[1]
                               : (uint32_t)state->head[1] << 8 | state->head[0]);
        }
        size_t made = (size_t)(out - classifier->narrow);
        if (made > 0 && oom_text_feed(classifier, stream, classifier->narrow, made))
            return -1;
        bytes += take;
        length -= take;
    }
    return 0;
}

static int feed_known(struct oom_classifier *classifier, struct stream *stream,
                      const unsigned char *bytes, size_t length)
{
    if (length == 0)
        return 0;
    return stream->encoding.encoding == ENCODING_BYTES
               ? oom_text_feed(classifier, stream, (const char *)bytes, length)
               : feed_wide(classifier, stream, bytes, length);
}

int oom_encoding_feed(struct oom_classifier *classifier, struct stream *stream, const void *from,
                      size_t length)
{
    struct encoding_state *state = &stream->encoding;
    const unsigned char *bytes = from;
    unsigned char head[ENCODING_HEAD_BYTES];
    size_t mark = 0;

    if (state->encoding != ENCODING_UNKNOWN)
        return feed_known(classifier, stream, bytes, length);
    while (length > 0 && state->encoding == ENCODING_UNKNOWN) {
        state->head[state->head_length++] = *bytes++;
        length--;
        state->encoding = recognise(state->head, state->head_length, &mark);
    }
    if (state->encoding == ENCODING_UNKNOWN)
        return 0;
    size_t kept = state->head_length - mark;
    memcpy(head, state->head + mark, kept);
    state->head_length = 0;
    return feed_known(classifier, stream, head, kept) ||
                   feed_known(classifier, stream, bytes, length)
               ? -1
               : 0;
}
