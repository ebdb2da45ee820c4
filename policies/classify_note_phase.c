/* SPDX-License-Identifier: Apache-2.0
 *
 * What the job was doing: markers of phases, tracebacks, and what both say about a failure. */
#include <stdio.h>
#include <string.h>

#include "policies/classify_note.h"

/* A marker that says what ended speaks for an event this close behind it. */
#define ENDED_LINES 40

void oom_note_phase(struct note *n, const struct signature *sig)
{
    struct stream *s = n->stream;

    oom_note_tally(n, sig, false);
    oom_events_alive(n->classifier, s);
    if (sig->edge == EDGE_BEGIN) {
        oom_tail_phase(s, n->line);
        s->phase = sig->phase;
        s->phase_sig = sig;
        s->phase_line = n->line;
        s->phase_steps = 0;
        s->ended_line = 0;
        return;
    }
    /* Frameworks print ends of nested phases in one burst; the first is the innermost. */
    if (!s->ended_line || n->line - s->ended_line > ENDED_LINES) {
        s->ended_phase = sig->phase;
        s->ended_line = n->line;
    }
    s->phase = OOM_PHASE_UNKNOWN;
    s->phase_sig = NULL;
}

/* Steps follow what a marker had said: it is over, whether anything said so or not. The last one
 * before a checkpoint may be printed behind the marker of that, by another rank. */
#define STEPS_AFTER 3

void oom_note_phase_passed(struct note *n, const struct signature *sig)
{
    struct stream *s = n->stream;
    bool over = s->phase == OOM_PHASE_INIT;

    if ((s->phase == OOM_PHASE_CHECKPOINT || s->phase == OOM_PHASE_DATA) && sig->edge == EDGE_END)
        over = ++s->phase_steps >= STEPS_AFTER;
    if (over)
        s->phase = OOM_PHASE_UNKNOWN;
    s->ended_line = 0; /* what ended, ended well */
}

static struct traceback *traceback_of(struct note *n)
{
    struct traceback *own = &n->voice->traceback;

    if (own->depth > 0 && n->line - own->last_line < OWN_FRESH_LINES)
        return own;
    if (n->stream->recent.depth > 0 && n->line - n->stream->recent.last_line < FRESH_LINES)
        return &n->stream->recent;
    return NULL;
}

/* Remote methods carry the roles of their worker in front: actor_rollout_compute_log_prob. Rules
 * for "remote:NAME" hold for methods only. */
static uint16_t method_rule(const struct oom_signatures *set, const char *method)
{
    char remote[128];

    for (const char *name = method; name && *name;) {
        int n = snprintf(remote, sizeof(remote), "remote:%s", name);
        uint16_t rule = oom_frame_rule_find(set, remote, (size_t)n, NULL, 0);
        if (!rule)
            rule = oom_frame_rule_find(set, name, strlen(name), NULL, 0);
        if (rule)
            return rule;
        name = strchr(name, '_');
        name = name ? name + 1 : NULL;
    }
    return 0;
}

void oom_note_context(struct note *n, const struct signature *sig)
{
    struct captures captures;
    const struct oom_signatures *set = n->classifier->set;
    uint16_t rule = sig->context_rule;

    if (!oom_note_confirms(n, sig))
        return;
    oom_note_tally(n, sig, false);
    oom_captures_init(&captures);
    oom_captures_take(set, sig, n->classifier->match_data, n->view.text, n->view.length, &captures);
    if (captures.rank >= 0) {
        n->voice->told_rank = captures.rank;
        n->voice->told_line = n->line;
    }
    if (!rule && !captures.method[0])
        return;
    if (captures.method[0]) {
        uint16_t by_method = method_rule(set, captures.method);
        rule = by_method ? by_method : rule;
        /* Ray prints the frames of a remote method behind its name, without "Traceback". Those
         * just before are the caller's. */
        if (n->line - n->voice->traceback.last_line > FRESH_LINES)
            oom_traceback_reset(&n->voice->traceback);
        if (n->line - n->stream->recent.last_line > FRESH_LINES)
            oom_traceback_reset(&n->stream->recent);
    }
    oom_traceback_push(&n->voice->traceback, rule, n->line, OWN_FRESH_LINES);
    oom_traceback_push(&n->stream->recent, rule, n->line, FRESH_LINES);
}

void oom_note_find_phase(struct note *n, struct event *event)
{
    const struct stream *s = n->stream;
    const struct signature *sig = event->sig;
    const struct traceback *traceback = traceback_of(n);
    struct phase_guess guess = {sig->phase, STRENGTH_NONE, OOM_DIRECTION_NONE, OOM_DOMAIN_NONE};

    if (sig->phase != OOM_PHASE_UNKNOWN)
        guess.strength = sig->phase_strength;
    if (traceback) {
        struct phase_guess frames = oom_traceback_phase(n->classifier->set, traceback);
        if (frames.strength > guess.strength)
            guess = frames;
        /* "CUDA error: out of memory" says the driver for page-locked memory of the host too. */
        if (frames.domain != OOM_DOMAIN_NONE && event->numbers.tried_bytes == OOM_UNSTATED)
            event->domain = frames.domain;
    }
    if (guess.strength == STRENGTH_NONE && s->phase != OOM_PHASE_UNKNOWN)
        guess.phase = s->phase, guess.strength = STRENGTH_MARKER;
    if (guess.strength == STRENGTH_NONE && s->ended_line && n->line - s->ended_line <= ENDED_LINES)
        guess.phase = s->ended_phase, guess.strength = STRENGTH_MARKER;
    event->phase = guess.phase;
    event->phase_strength = guess.strength;
    event->phase_sure = oom_tail_phase_is_sure(s, traceback, guess.strength, n->line);
    if (event->direction == OOM_DIRECTION_NONE)
        event->direction = guess.direction;
}

/* A line may hold a whole traceback: loggers escape the line ends. */
#define FRAME_BYTES_LEAST 12 /* File "x", in f */

static void push_frame(struct stream *stream, struct voice *voice, int64_t line, uint16_t rule)
{
    oom_traceback_push(&voice->traceback, rule, line, OWN_FRESH_LINES);
    oom_traceback_push(&stream->recent, rule, line, FRESH_LINES);
}

void oom_note_folded(struct block *block, size_t at)
{
    struct stream *s = block->stream;
    struct line_view view = {.text = block->bytes + at};
    const char *end = memchr(view.text, '\n', block->length - at);
    uint16_t rule;

    view.length = end ? (size_t)(end - view.text) : block->length - at;
    if (view.length <= LINE_MAX_BYTES) {
        oom_line_speaker(&view);
        if (oom_wrapped_frame_end(block->classifier, &s->folded, &view, &rule))
            push_frame(
                s,
                oom_voice_get(block->classifier, (int)(s - block->classifier->streams), view.voice),
                s->folded.line, rule);
    }
    s->folded.length = 0;
}

static void note_folded(struct note *n)
{
    const struct block *block = n->block;

    if (!oom_wrapped_frame_begin(&n->stream->folded, &n->view))
        return;
    n->stream->folded.line = n->line;
    /* Where the block ends here, the next one begins with the rest. */
    if (block->piece_end + 1 < block->length)
        oom_note_folded(n->block, block->piece_end + 1);
}

void oom_note_frames(struct note *n)
{
    const char *at = n->view.text;
    const char *end = at + n->view.length;
    uint16_t rule;
    bool found = false;

    while (end - at > FRAME_BYTES_LEAST &&
           (at = oom_frame_parse(n->classifier, at, (size_t)(end - at), &rule)) != NULL) {
        push_frame(n->stream, n->voice, n->line, rule);
        found = true;
    }
    if (found)
        return;
    if (oom_frame_parse_bare(n->classifier, n->view.text, n->view.length, &rule))
        push_frame(n->stream, n->voice, n->line, rule);
    else
        note_folded(n);
}
