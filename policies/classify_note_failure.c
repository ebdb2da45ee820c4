/* SPDX-License-Identifier: Apache-2.0
 *
 * A line that is a failure: out of memory or another, what adds to it and what takes it back. */
#include <stdio.h>
#include <string.h>

#include "policies/classify_note.h"

/* A report names the rank so far above the message. */
#define TOLD_LINES 100

/* --- out of memory --------------------------------------------------------------------------- */

static void event_fill(struct note *n, struct event *event)
{
    struct captures captures;

    oom_captures_init(&captures);
    oom_captures_take(n->classifier->set, event->sig, n->classifier->match_data, n->view.text,
                      n->view.length, &captures);
    event->numbers = captures.numbers;
    if (captures.rank >= 0 && event->rank < 0)
        event->rank = captures.rank;
    if (event->rank < 0 && n->voice->told_line && n->line - n->voice->told_line < TOLD_LINES)
        event->rank = n->voice->told_rank;
    if (captures.node[0])
        memcpy(event->node, captures.node, sizeof(event->node));
}

void oom_note_discounted(struct note *n, struct event *event, const char *why)
{
    snprintf(event->why, sizeof(event->why), "%s", why);
    oom_events_add_discounted(n->classifier, event);
}

void oom_note_oom(struct note *n, const struct signature *sig)
{
    struct event *event = oom_sighting_new(n->block, sig, &n->view, n->line);

    if (!event) {
        n->classifier->broken = true;
        return;
    }
    oom_note_tally(n, sig, false);
    event_fill(n, event);
    if (oom_note_is_quoting(n) || oom_line_is_data(&n->view)) {
        oom_note_discounted(n, event, "quoted text: data or chat, not output of the job");
        return;
    }
    oom_note_find_phase(n, event);
    oom_sighting_take_surroundings(n->block, event);
    event->after_finish = n->stream->finished_line > 0;
    if (!n->stream->restart_weak)
        oom_events_alive(n->classifier, n->stream);
    if (sig->settles)
        oom_events_settle(n->classifier, event);
    /* What comes next is another story, unless this was only the name of one. */
    if (sig->kind == SIG_OOM) {
        oom_traceback_reset(&n->voice->traceback);
        oom_traceback_reset(&n->stream->recent);
    }
    oom_events_add_pending(n->classifier, event);
}

void oom_note_detail(struct note *n, const struct signature *sig)
{
    struct oom_classifier *c = n->classifier;
    int index = (int)(n->stream - c->streams);

    for (size_t i = c->pending_count; i-- > 0;) {
        struct event *event = c->pending[i];
        if (event->stream != index || n->line - event->line > sig->within_lines)
            continue;
        if (sig->of && strncmp(event->sig->id, sig->of, strlen(sig->of)) != 0)
            continue;
        struct captures captures;
        oom_captures_init(&captures);
        captures.numbers = event->numbers;
        oom_captures_take(c->set, sig, c->match_data, n->view.text, n->view.length, &captures);
        event->numbers = captures.numbers;
        if (sig->domain != OOM_DOMAIN_NONE)
            event->domain = sig->domain;
        if (sig->phase != OOM_PHASE_UNKNOWN && sig->phase_strength > event->phase_strength) {
            event->phase = sig->phase;
            event->phase_strength = sig->phase_strength;
        }
        if (event->direction == OOM_DIRECTION_NONE)
            event->direction = sig->direction;
        oom_note_tally(n, sig, false);
        return;
    }
}

void oom_note_recovered(struct note *n, const struct signature *sig)
{
    struct oom_classifier *c = n->classifier;
    int index = (int)(n->stream - c->streams);

    oom_note_tally(n, sig, true);
    for (size_t i = 0; i < c->pending_count; i++)
        if (c->pending[i]->stream == index && n->line - c->pending[i]->line <= sig->within_lines)
            c->pending[i]->hinted = true;
}

/* --- other failures -------------------------------------------------------------------------- */

bool oom_note_may_fail(const struct note *n, const struct signature *sig)
{
    const struct traceback *own = &n->voice->traceback;

    return !sig->traceback || (own->depth > 0 && n->line - own->last_line <= 4);
}

void oom_note_failure(struct note *n, const struct signature *sig)
{
    if (oom_note_is_quoting(n) || oom_line_is_data(&n->view))
        return;
    struct event *event = oom_sighting_new(n->block, sig, &n->view, n->line);
    if (!event) {
        n->classifier->broken = true;
        return;
    }
    oom_note_tally(n, sig, false);
    oom_sighting_take_surroundings(n->block, event);
    event->after_finish = n->stream->finished_line > 0;
    if (!n->stream->restart_weak)
        oom_events_alive(n->classifier, n->stream);
    oom_events_add_failure(n->classifier, event);
}
