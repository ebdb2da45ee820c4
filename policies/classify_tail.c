/* SPDX-License-Identifier: Apache-2.0
 *
 * Logs of which only the end is read as a whole. When does it decide? Whatever the rest may hold,
 * the state behind it has to be the one that a whole reading leaves:
 *
 * - no failure of memory of the rest still counts. Four lines of progress end all that are pending,
 *   and they come before the first failure of the end;
 * - no traceback of the rest belongs to a failure of the end: tracebacks grow stale, the first
 *   failure stands further behind the beginning of the end than that, and its own traceback was
 *   seen to begin;
 * - the phase is told by the message, by its traceback or by a marker that lies in the end;
 * - no text is quoted in the end, which may begin in the middle of a quotation;
 * - nothing was killed from outside: whether that counts depends on whether the work was done;
 * - no report of a whole node: whether that counts depends on what else failed.
 *
 * What names the framework is searched in the rest too, and the lines are counted. */
#include "policies/classify_private.h"

int oom_classifier_skim(struct oom_classifier *classifier, int stream, const void *bytes,
                        size_t length)
{
    if (stream < 0 || stream >= classifier->stream_count || classifier->broken)
        return -1;
    classifier->streams[stream].partial = true;
    classifier->streams[stream].skimming = true;
    return oom_stream_feed(classifier, stream, bytes, length);
}

int oom_tail_begin(struct oom_classifier *classifier, int stream)
{
    struct stream *s = &classifier->streams[stream];

    if (s->carry_length > 0 && oom_carry_flush(classifier, s))
        return -1;
    s->skimming = false;
    s->unproved = PROGRESS_PROVES;
    s->end_line = s->line;
    return 0;
}

const hs_database_t *oom_tail_frameworks(const struct oom_classifier *classifier)
{
    const struct oom_signatures *set = classifier->set;
    int highest = -1;

    for (size_t i = 0; i < set->count; i++)
        if (set->items[i].kind == SIG_FRAMEWORK && set->items[i].priority > highest)
            highest = set->items[i].priority;
    return classifier->framework && classifier->framework->priority >= highest ? NULL
                                                                               : set->frameworks;
}

void oom_tail_failure(struct stream *stream, const struct event *event)
{
    if (!stream->partial || stream->failure_line)
        return;
    stream->failure_line = event->line;
    stream->early = stream->unproved > 0;
}

void oom_tail_phase(struct stream *stream, int64_t line)
{
    if (stream->partial && !stream->phase_known_line)
        stream->phase_known_line = line;
}

bool oom_tail_phase_is_sure(const struct stream *stream, const struct traceback *traceback,
                            int strength, int64_t line)
{
    if (!stream->partial)
        return true;
    if (traceback && !traceback->begun &&
        traceback->first_line - stream->end_line < OWN_FRESH_LINES)
        return false;
    return strength > STRENGTH_MARKER ||
           (stream->phase_known_line > 0 && stream->phase_known_line < line);
}

bool oom_classifier_end_decides(const struct oom_classifier *classifier, int stream)
{
    const struct stream *s =
        stream >= 0 && stream < classifier->stream_count ? &classifier->streams[stream] : NULL;
    bool failed = false;

    if (!s || !s->partial || s->early || s->quoting || !s->failure_line ||
        s->failure_line - s->end_line < OWN_FRESH_LINES)
        return false;
    for (size_t i = 0; i < classifier->pending_count; i++) {
        const struct event *event = classifier->pending[i];
        if (event->stream != stream)
            continue;
        if (event->sig->kill || event->sig->shared ||
            (event->sig->kind == SIG_OOM && !event->phase_sure))
            return false;
        failed |= event->sig->kind == SIG_OOM;
    }
    return failed;
}

bool oom_classifier_has_skimmed(const struct oom_classifier *classifier)
{
    for (int i = 0; i < classifier->stream_count; i++)
        if (classifier->streams[i].partial)
            return true;
    return false;
}
