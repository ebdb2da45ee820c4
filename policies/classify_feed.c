/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes in. Complete lines are scanned where they lie (classify_block.c); only an incomplete last
 * line is kept. */
#include <stdlib.h>
#include <string.h>

#include "policies/classify_private.h"

#define CARRY_MAX (256u * 1024)
#define SCAN_MAX  (1024u * 1024)

/* Colours may stand in the middle of what is searched, and where a file was cut back there are NUL
 * bytes: such a portion is read from a copy without them. Most need none. */
static int scan_clean(struct oom_classifier *classifier, struct stream *stream, const char *bytes,
                      size_t length)
{
    if (!memchr(bytes, '\033', length) && !memchr(bytes, '\0', length))
        return oom_block_scan(classifier, stream, bytes, length);
    if (!classifier->clean)
        classifier->clean = malloc(SCAN_MAX);
    if (!classifier->clean)
        return -1;
    length = oom_bytes_clean(bytes, length, classifier->clean);
    return length > 0 ? oom_block_scan(classifier, stream, classifier->clean, length) : 0;
}

static int scan(struct oom_classifier *classifier, struct stream *stream, const char *bytes,
                size_t length)
{
    while (length > 0) {
        size_t take = length;
        if (take > SCAN_MAX) {
            const char *cut = memrchr(bytes, '\n', SCAN_MAX);
            take = cut ? (size_t)(cut - bytes) + 1 : SCAN_MAX;
        }
        if (scan_clean(classifier, stream, bytes, take))
            return -1;
        bytes += take;
        length -= take;
    }
    return 0;
}

static int carry_append(struct stream *stream, const char *bytes, size_t length)
{
    size_t need = stream->carry_length + length;

    if (need > stream->carry_size) {
        size_t size = stream->carry_size ? stream->carry_size : 4096;
        while (size < need)
            size *= 2;
        char *grown = realloc(stream->carry, size);
        if (!grown)
            return -1;
        stream->carry = grown;
        stream->carry_size = size;
    }
    memcpy(stream->carry + stream->carry_length, bytes, length);
    stream->carry_length = need;
    return 0;
}

int oom_carry_flush(struct oom_classifier *classifier, struct stream *stream)
{
    size_t length = stream->carry_length;

    stream->carry_length = 0;
    return scan(classifier, stream, stream->carry, length);
}

/* Where the last complete piece ends: behind the last '\n', or the last '\r' behind that. */
static size_t last_boundary(const char *bytes, size_t length)
{
    const char *cut = memrchr(bytes, '\n', length);
    size_t end = cut ? (size_t)(cut - bytes) + 1 : 0;

    cut = memrchr(bytes + end, '\r', length - end);
    return cut ? (size_t)(cut - bytes) + 1 : end;
}

int oom_text_feed(struct oom_classifier *classifier, struct stream *stream, const char *bytes,
                  size_t length)
{
    if (stream->carry_length > 0) {
        const char *cut = memchr(bytes, '\n', length);
        size_t take = cut ? (size_t)(cut - bytes) + 1 : length;
        size_t room = CARRY_MAX - stream->carry_length;
        if (take > room) {
            take = room;
            cut = bytes; /* a line without end is cut */
        }
        if (carry_append(stream, bytes, take))
            return -1;
        bytes += take;
        length -= take;
        if (!cut)
            return 0;
        if (oom_carry_flush(classifier, stream))
            return -1;
    }
    size_t whole = last_boundary(bytes, length);
    if (length - whole > CARRY_MAX)
        whole = length;
    if (scan(classifier, stream, bytes, whole))
        return -1;
    return length > whole ? carry_append(stream, bytes + whole, length - whole) : 0;
}

int oom_stream_feed(struct oom_classifier *classifier, int stream, const void *bytes, size_t length)
{
    if (length == 0)
        return 0;
    if (oom_encoding_feed(classifier, &classifier->streams[stream], bytes, length) ||
        classifier->broken) {
        classifier->broken = true;
        return -1;
    }
    return 0;
}

int oom_classifier_feed(struct oom_classifier *classifier, int stream, const void *bytes,
                        size_t length)
{
    if (stream < 0 || stream >= classifier->stream_count || classifier->broken)
        return -1;
    if (classifier->streams[stream].skimming && oom_tail_begin(classifier, stream))
        return -1;
    return oom_stream_feed(classifier, stream, bytes, length);
}
