/* SPDX-License-Identifier: Apache-2.0
 *
 * What was noted, in bounded memory: OOMs that still count (pending), those that do not
 * (discounted: caught and survived, quoted, of an earlier attempt), and other failures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/classify_private.h"

/* So far back is a clock looked for: tracebacks have none. */
#define CLOCK_LINES 300

/* --- lines around ----------------------------------------------------------------------------- */

static char *copy_text(const char *text, size_t length)
{
    char *copy = malloc(length + 1);

    if (!copy)
        return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    for (size_t i = 0; i < length; i++)
        if (copy[i] == '\0')
            copy[i] = ' ';
    return copy;
}

/* The start of the last `lines` whole lines of a buffer that ends with a newline. */
static size_t last_lines(const char *bytes, size_t length, int lines)
{
    size_t at = length;

    for (int i = 0; i < lines && at > 0; i++) {
        const char *cut = at > 1 ? memrchr(bytes, '\n', at - 1) : NULL;
        at = cut ? (size_t)(cut - bytes) + 1 : 0;
    }
    return at;
}

static char *lines_before(const struct block *block)
{
    char buffer[WINDOW_BYTES * 2];
    size_t have = 0;
    const char *cut = memrchr(block->bytes, '\n', block->piece_start);
    size_t line_start = cut ? (size_t)(cut - block->bytes) + 1 : 0;
    size_t take = line_start < WINDOW_BYTES ? line_start : WINDOW_BYTES;
    bool torn = take < line_start && block->bytes[line_start - take - 1] != '\n';

    if (take < WINDOW_BYTES && block->stream->tail_length > 0) {
        have = block->stream->tail_length;
        if (have > WINDOW_BYTES)
            have = WINDOW_BYTES;
        const char *begin = block->stream->tail + block->stream->tail_length - have;
        torn = begin > block->stream->tail && begin[-1] != '\n';
        memcpy(buffer, begin, have);
    }
    memcpy(buffer + have, block->bytes + line_start - take, take);
    have += take;
    size_t from = last_lines(buffer, have, WINDOW_LINES_BEFORE);
    if (have - from > WINDOW_BYTES || (from == 0 && torn)) {
        if (have - from > WINDOW_BYTES)
            from = have - WINDOW_BYTES;
        const char *line = memchr(buffer + from, '\n', have - from);
        from = line ? (size_t)(line - buffer) + 1 : have;
    }
    return copy_text(buffer + from, have - from);
}

static void append_after(struct event *event, const char *bytes, size_t length)
{
    size_t have = event->after ? strlen(event->after) : 0;
    const char *at = bytes;
    const char *end = bytes + length;

    while (event->after_lines > 0 && at < end) {
        const char *cut = memchr(at, '\n', (size_t)(end - at));
        at = cut ? cut + 1 : end;
        event->after_lines--;
    }
    size_t take = (size_t)(at - bytes);
    if (have + take >= WINDOW_BYTES) {
        take = WINDOW_BYTES - have;
        event->after_lines = 0;
    }
    char *piece = copy_text(bytes, take);
    char *grown = piece ? realloc(event->after, have + take + 1) : NULL;
    if (grown) {
        memcpy(grown + have, piece, take + 1);
        event->after = grown;
    }
    free(piece);
}

void oom_events_feed_after(struct oom_classifier *classifier, struct stream *stream,
                           const char *bytes, size_t length)
{
    int index = (int)(stream - classifier->streams);

    stream->wants_after = 0;
    for (size_t i = 0; i < classifier->pending_count; i++) {
        struct event *event = classifier->pending[i];
        if (event->stream != index || event->after_lines <= 0)
            continue;
        append_after(event, bytes, length);
        stream->wants_after += event->after_lines > 0;
    }
}

/* --- events ----------------------------------------------------------------------------------- */

struct event *oom_sighting_new(struct block *block, const struct signature *sig,
                               const struct line_view *view, int64_t line)
{
    struct event *event = calloc(1, sizeof(*event));
    size_t length = view->length < TEXT_MAX_BYTES ? view->length : TEXT_MAX_BYTES;

    if (!event)
        return NULL;
    event->sig = sig;
    event->stream = (int)(block->stream - block->classifier->streams);
    event->line = line;
    event->order = ++block->classifier->clock;
    event->voice = view->voice;
    event->rank = view->rank >= 0 ? view->rank : block->stream->file_rank;
    memcpy(event->node, view->node, sizeof(event->node));
    event->text = copy_text(view->text, length);
    event->time = oom_line_time(view->text, view->length);
    event->domain = sig->domain;
    event->direction = sig->direction;
    event->count = 1;
    oom_numbers_init(&event->numbers);
    if (!event->text) {
        oom_sighting_free(event);
        return NULL;
    }
    return event;
}

void oom_sighting_free(struct event *event)
{
    if (!event)
        return;
    free(event->text);
    free(event->before);
    free(event->after);
    free(event);
}

/* The clock of a line that has none is that of the last line before it that has one. */
static uint64_t last_time(const char *bytes, size_t length)
{
    size_t end = length;

    for (int i = 0; i < CLOCK_LINES && end > 0; i++) {
        const char *cut = memrchr(bytes, '\n', end - 1);
        size_t start = cut ? (size_t)(cut - bytes) + 1 : 0;
        uint64_t time = oom_line_time(bytes + start, end - start);
        if (time)
            return time;
        end = start;
    }
    return 0;
}

static void borrow_time(const struct block *block, struct event *event)
{
    if (!event->time)
        event->time = last_time(block->bytes, block->piece_start);
    if (!event->time && block->stream->tail_length > 0)
        event->time = last_time(block->stream->tail, block->stream->tail_length);
}

void oom_sighting_take_surroundings(struct block *block, struct event *event)
{
    const char *end = block->bytes + block->length;
    const char *cut =
        memchr(block->bytes + block->piece_end, '\n', block->length - block->piece_end);

    event->before = lines_before(block);
    event->after_lines = WINDOW_LINES_AFTER;
    if (cut && cut + 1 < end)
        append_after(event, cut + 1, (size_t)(end - cut - 1));
    if (event->after_lines > 0)
        block->stream->wants_after++;
    borrow_time(block, event);
}

/* The same failure told again: by the driver, by a tail of the log, by a wrapper. */
static bool same_story(const struct event *a, const struct event *b)
{
    return a->domain == b->domain && a->numbers.tried_bytes != OOM_UNSTATED &&
           a->numbers.tried_bytes == b->numbers.tried_bytes &&
           a->numbers.free_bytes == b->numbers.free_bytes &&
           a->numbers.total_bytes == b->numbers.total_bytes;
}

static void absorb(struct event *first, struct event *again)
{
    first->count++;
    if (again->phase_strength > first->phase_strength) {
        first->phase = again->phase;
        first->phase_strength = again->phase_strength;
    }
    first->phase_sure &= again->phase_sure;
    if (first->direction == OOM_DIRECTION_NONE)
        first->direction = again->direction;
    first->hinted &= again->hinted;
    first->progress = 0;
    oom_sighting_free(again);
}

void oom_events_add_pending(struct oom_classifier *classifier, struct event *event)
{
    oom_tail_failure(&classifier->streams[event->stream], event);
    classifier->ran_out = classifier->ran_out || event->sig->kind == SIG_OOM;
    for (size_t i = 0; i < classifier->pending_count; i++) {
        struct event *first = classifier->pending[i];
        if (first->sig->kind == SIG_OOM && event->sig->kind == SIG_OOM &&
            same_story(first, event)) {
            absorb(first, event);
            return;
        }
        if (first->sig == event->sig && first->stream == event->stream &&
            first->voice == event->voice && event->numbers.tried_bytes == OOM_UNSTATED &&
            first->numbers.tried_bytes == OOM_UNSTATED && event->line - first->line < 100) {
            absorb(first, event);
            return;
        }
    }
    if (classifier->pending_count == PENDING_MAX) { /* the first ones are what decides */
        oom_sighting_free(event);
        classifier->discounted_more++;
        return;
    }
    classifier->pending[classifier->pending_count++] = event;
    classifier->streams[oom_stream_now(classifier, event->stream)].waiting++;
}

void oom_events_add_discounted(struct oom_classifier *classifier, struct event *event)
{
    if (classifier->discounted_count == DISCOUNTED_MAX) {
        /* Keep the first ones and the newest. */
        oom_sighting_free(classifier->discounted[DISCOUNTED_MAX - 1]);
        classifier->discounted[DISCOUNTED_MAX - 1] = event;
        classifier->discounted_more++;
        return;
    }
    classifier->discounted[classifier->discounted_count++] = event;
}

void oom_events_discount(struct oom_classifier *classifier, size_t pending_index, const char *why)
{
    struct event *event = classifier->pending[pending_index];
    struct stream *stream = &classifier->streams[oom_stream_now(classifier, event->stream)];

    classifier->pending_count--;
    memmove(classifier->pending + pending_index, classifier->pending + pending_index + 1,
            (classifier->pending_count - pending_index) * sizeof(struct event *));
    stream->waiting--;
    snprintf(event->why, sizeof(event->why), "%s", why);
    oom_events_add_discounted(classifier, event);
}

void oom_events_drop_failure(struct oom_classifier *classifier, struct event *failure)
{
    if (failure->sig->root && failure->progress < PROGRESS_PROVES)
        classifier->streams[oom_stream_now(classifier, failure->stream)].waiting--;
    oom_sighting_free(failure);
}

void oom_events_add_failure(struct oom_classifier *classifier, struct event *event)
{
    if (event->sig->root) /* was it survived? */
        classifier->streams[oom_stream_now(classifier, event->stream)].waiting++;
    if (classifier->failure_count == FAILURES_MAX) {
        oom_events_drop_failure(classifier, classifier->failures[FAILURES_MAX - 1]);
        classifier->failures[FAILURES_MAX - 1] = event;
        return;
    }
    classifier->failures[classifier->failure_count++] = event;
}
