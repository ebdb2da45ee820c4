/* SPDX-License-Identifier: Apache-2.0
 *
 * What was noted, in bounded memory: OOMs that still count (pending), those that do not
 * (discounted: caught and survived, quoted, of an earlier attempt), and other failures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/classify_private.h"

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
static void borrow_time(struct event *event)
{
    if (event->time || !event->before)
        return;
    const char *at = event->before;
    while (*at) {
        const char *stop = strchrnul(at, '\n');
        uint64_t time = oom_line_time(at, (size_t)(stop - at));
        if (time)
            event->time = time;
        at = *stop ? stop + 1 : stop;
    }
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
    borrow_time(event);
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
    classifier->streams[event->stream].waiting++;
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
    struct stream *stream = &classifier->streams[event->stream];

    classifier->pending_count--;
    memmove(classifier->pending + pending_index, classifier->pending + pending_index + 1,
            (classifier->pending_count - pending_index) * sizeof(struct event *));
    stream->waiting--;
    snprintf(event->why, sizeof(event->why), "%s", why);
    oom_events_add_discounted(classifier, event);
}

void oom_events_add_failure(struct oom_classifier *classifier, struct event *event)
{
    if (classifier->failure_count == FAILURES_MAX) {
        oom_sighting_free(classifier->failures[FAILURES_MAX - 1]);
        classifier->failures[FAILURES_MAX - 1] = event;
        return;
    }
    classifier->failures[classifier->failure_count++] = event;
}

/* --- what later lines prove ------------------------------------------------------------------ */

void oom_events_progress(struct oom_classifier *classifier, struct stream *stream, bool weak,
                         int64_t line)
{
    int index = (int)(stream - classifier->streams);
    char why[160];

    if (!weak && stream->unproved > 0)
        stream->unproved--;
    for (size_t i = classifier->pending_count; i-- > 0;) {
        struct event *event = classifier->pending[i];
        if (event->stream != index || line <= event->line || (weak && !event->hinted))
            continue;
        event->progress++;
        if (event->progress < (event->hinted ? 1 : PROGRESS_PROVES))
            continue;
        snprintf(why, sizeof(why), "caught: the run went on (line %lld)", (long long)line);
        oom_events_discount(classifier, i, why);
    }
}

void oom_events_finished(struct oom_classifier *classifier, struct stream *stream, int64_t line)
{
    int index = (int)(stream - classifier->streams);
    char why[160];

    stream->finished_line = line;
    snprintf(why, sizeof(why), "the work finished after it (line %lld)", (long long)line);
    for (size_t i = classifier->pending_count; i-- > 0;)
        if (classifier->pending[i]->stream == index)
            oom_events_discount(classifier, i, why);
}

void oom_events_settle(struct oom_classifier *classifier, struct event *settling)
{
    for (size_t i = classifier->pending_count; i-- > 0;) {
        struct event *event = classifier->pending[i];
        if (event->stream != settling->stream || !event->hinted)
            continue;
        if (event->phase_strength > settling->phase_strength) {
            settling->phase = event->phase;
            settling->phase_strength = event->phase_strength;
        }
        settling->phase_sure &= event->phase_sure;
        oom_events_discount(classifier, i,
                            "caught and tried again with less, until nothing was left");
    }
}

/* Ray prints the name of an exception far above its message. */
#define NAME_LINES 200

void oom_events_void_names(struct oom_classifier *classifier, int stream, int64_t line)
{
    for (size_t i = classifier->pending_count; i-- > 0;) {
        const struct event *event = classifier->pending[i];
        if (event->stream == stream && event->sig->kind == SIG_WRAPPER &&
            line - event->line <= NAME_LINES)
            oom_events_discount(classifier, i, "the error that it names is none of memory");
    }
}

/* Several nodes may say it: there is one restart for one failure. */
void oom_events_own_restart(struct oom_classifier *classifier)
{
    bool pending = false;

    for (size_t i = 0; i < classifier->pending_count; i++)
        pending = pending || classifier->pending[i]->sig->kind == SIG_OOM;
    if (classifier->ran_out && pending)
        classifier->own_restarts++;
    classifier->ran_out = false;
}

int oom_classifier_own_restarts(const struct oom_classifier *classifier)
{
    return classifier->own_restarts;
}

/* A new attempt shows signs of life: what happened before its start is history. */
void oom_events_alive(struct oom_classifier *classifier, struct stream *stream)
{
    int index = (int)(stream - classifier->streams);
    size_t kept = 0;

    if (!stream->restarted)
        return;
    stream->restarted = false;
    stream->finished_line = 0;
    for (size_t i = classifier->pending_count; i-- > 0;)
        if (classifier->pending[i]->stream == index &&
            classifier->pending[i]->line < stream->restart_line)
            oom_events_discount(classifier, i, "of an earlier attempt: the last one counts");
    for (size_t i = 0; i < classifier->failure_count; i++) {
        struct event *event = classifier->failures[i];
        if (event->stream == index && event->line < stream->restart_line)
            oom_sighting_free(event);
        else
            classifier->failures[kept++] = event;
    }
    classifier->failure_count = kept;
}
