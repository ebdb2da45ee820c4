/* SPDX-License-Identifier: Apache-2.0
 *
 * What later lines prove of what was noted: that it was caught, that the work was done all the
 * same, that another attempt began. */
#include <stdio.h>
#include <string.h>

#include "policies/classify_private.h"

/* Did it come before this line of the same log? What is read now is the log's last part. */
static bool is_before(const struct oom_classifier *classifier, const struct event *event,
                      const struct stream *stream, int64_t line)
{
    int index = (int)(stream - classifier->streams);

    if (event->stream == index)
        return event->line < line;
    return oom_stream_now(classifier, event->stream) == index;
}

static void tell(const struct oom_classifier *classifier, const struct event *event,
                 const struct stream *stream, int64_t line, const char *what, char *out,
                 size_t size)
{
    bool elsewhere = event->stream != (int)(stream - classifier->streams) && stream->file;

    snprintf(out, size, "%s (line %lld%s%.64s)", what, (long long)line, elsewhere ? " of " : "",
             elsewhere ? oom_file_base(stream->file) : "");
}

void oom_events_progress(struct oom_classifier *classifier, struct stream *stream, bool weak,
                         int64_t line)
{
    char why[160];

    if (!weak && stream->unproved > 0)
        stream->unproved--;
    for (size_t i = classifier->pending_count; i-- > 0;) {
        struct event *event = classifier->pending[i];
        if (!is_before(classifier, event, stream, line) || (weak && !event->hinted))
            continue;
        event->progress++;
        if (event->progress < (event->hinted ? 1 : PROGRESS_PROVES))
            continue;
        tell(classifier, event, stream, line, "caught: the run went on", why, sizeof(why));
        oom_events_discount(classifier, i, why);
    }
    for (size_t i = 0; i < classifier->failure_count && !weak; i++) {
        struct event *failure = classifier->failures[i];
        if (failure->sig->root && failure->progress < PROGRESS_PROVES &&
            is_before(classifier, failure, stream, line) && ++failure->progress == PROGRESS_PROVES)
            stream->waiting--;
    }
}

void oom_events_finished(struct oom_classifier *classifier, struct stream *stream, int64_t line)
{
    char why[160];

    stream->finished_line = line;
    for (size_t i = classifier->pending_count; i-- > 0;) {
        struct event *event = classifier->pending[i];
        if (!is_before(classifier, event, stream, line))
            continue;
        tell(classifier, event, stream, line, "the work finished after it", why, sizeof(why));
        oom_events_discount(classifier, i, why);
    }
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
    size_t kept = 0;

    stream->lived = true;
    if (!stream->restarted)
        return;
    stream->restarted = false;
    stream->finished_line = 0;
    for (size_t i = classifier->pending_count; i-- > 0;)
        if (is_before(classifier, classifier->pending[i], stream, stream->restart_line))
            oom_events_discount(classifier, i, OOM_OF_EARLIER);
    for (size_t i = 0; i < classifier->failure_count; i++) {
        struct event *event = classifier->failures[i];
        if (is_before(classifier, event, stream, stream->restart_line))
            oom_events_drop_failure(classifier, event);
        else
            classifier->failures[kept++] = event;
    }
    classifier->failure_count = kept;
}
