/* SPDX-License-Identifier: Apache-2.0
 *
 * One piece of a line and the signatures proposed for it: what it means for the state. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/classify_private.h"

/* Frames of another voice count for a line without a prefix of its own while they are fresh. */
#define FRESH_LINES 60
/* A voice's own traceback may be interleaved with thousands of lines of others. */
#define OWN_FRESH_LINES 20000
/* Quoted text that nothing closes ends by itself. */
#define QUOTE_LINES 400
/* A marker that says what ended speaks for an event this close behind it. */
#define ENDED_LINES 40

struct note {
    struct block *block;
    struct oom_classifier *classifier;
    struct stream *stream;
    struct line_view view;
    int64_t line;
    struct voice *voice;
    bool progressed; /* one line is one sign of progress */
};

static bool confirms(struct note *n, const struct signature *sig)
{
    return oom_signature_confirms(n->classifier->set, sig, n->classifier->match_data, n->view.text,
                                  n->view.length);
}

/* Who speaks, and where: only asked when a line means something. */
static void note_speaker(struct note *n)
{
    if (n->voice)
        return;
    oom_line_speaker(&n->view);
    n->line = oom_block_line_at(n->block, n->block->piece_start);
    n->voice =
        oom_voice_get(n->classifier, (int)(n->stream - n->classifier->streams), n->view.voice);
}

static void tally(struct note *n, const struct signature *sig, bool keep_first)
{
    struct tally *t = &n->classifier->tallies[sig - n->classifier->set->items];

    t->count++;
    t->last_line = n->line;
    if (t->count > 1)
        return;
    t->first_line = n->line;
    t->first_stream = (int)(n->stream - n->classifier->streams);
    if (keep_first)
        t->first = oom_sighting_new(n->block, sig, &n->view, n->line);
}

/* --- quoted text ------------------------------------------------------------------------------ */

static bool is_quoting(struct note *n)
{
    if (n->line - n->voice->quote_line > QUOTE_LINES)
        n->voice->quoting = n->voice->fenced = false;
    return n->voice->quoting || n->voice->fenced;
}

static bool note_quote(struct note *n, const struct signature *sig)
{
    /* A fence stands alone behind the prefix. */
    if (!oom_signature_confirms(n->classifier->set, sig, n->classifier->match_data, n->view.body,
                                n->view.body_length))
        return false;
    tally(n, sig, false);
    is_quoting(n);
    if (sig->edge == EDGE_TOGGLE)
        n->voice->fenced = !n->voice->fenced;
    else
        n->voice->quoting = sig->edge == EDGE_BEGIN;
    n->voice->quote_line = n->line;
    n->stream->quoting = true;
    return true;
}

/* --- phase ------------------------------------------------------------------------------------ */

static void note_phase(struct note *n, const struct signature *sig)
{
    struct stream *s = n->stream;

    tally(n, sig, false);
    oom_events_alive(n->classifier, s);
    if (sig->edge == EDGE_BEGIN) {
        s->phase = sig->phase;
        s->phase_sig = sig;
        s->phase_line = n->line;
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

static void note_context(struct note *n, const struct signature *sig)
{
    struct captures captures;
    const struct oom_signatures *set = n->classifier->set;
    uint16_t rule = sig->context_rule;

    if (!confirms(n, sig))
        return;
    tally(n, sig, false);
    oom_captures_init(&captures);
    oom_captures_take(set, sig, n->classifier->match_data, n->view.text, n->view.length, &captures);
    if (captures.method[0]) {
        uint16_t by_method = method_rule(set, captures.method);
        rule = by_method ? by_method : rule;
    }
    oom_traceback_push(&n->voice->traceback, rule, n->line);
    oom_traceback_push(&n->stream->recent, rule, n->line);
}

static void find_phase(struct note *n, struct event *event)
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
    if (event->direction == OOM_DIRECTION_NONE)
        event->direction = guess.direction;
}

/* --- out of memory -----------------------------------------------------------------------------
 */

static void event_fill(struct note *n, struct event *event)
{
    struct captures captures;

    oom_captures_init(&captures);
    oom_captures_take(n->classifier->set, event->sig, n->classifier->match_data, n->view.text,
                      n->view.length, &captures);
    event->numbers = captures.numbers;
    if (captures.rank >= 0 && event->rank < 0)
        event->rank = captures.rank;
    if (captures.node[0])
        memcpy(event->node, captures.node, sizeof(event->node));
}

static void discount_now(struct note *n, struct event *event, const char *why)
{
    snprintf(event->why, sizeof(event->why), "%s", why);
    oom_events_add_discounted(n->classifier, event);
}

static void note_oom(struct note *n, const struct signature *sig)
{
    struct event *event = oom_sighting_new(n->block, sig, &n->view, n->line);

    if (!event) {
        n->classifier->broken = true;
        return;
    }
    tally(n, sig, false);
    event_fill(n, event);
    if (is_quoting(n) || oom_line_is_data(&n->view)) {
        discount_now(n, event, "quoted text: data or chat, not output of the job");
        return;
    }
    find_phase(n, event);
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

static void note_detail(struct note *n, const struct signature *sig)
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
        tally(n, sig, false);
        return;
    }
}

static void note_recovered(struct note *n, const struct signature *sig)
{
    struct oom_classifier *c = n->classifier;
    int index = (int)(n->stream - c->streams);

    tally(n, sig, true);
    for (size_t i = 0; i < c->pending_count; i++)
        if (c->pending[i]->stream == index && n->line - c->pending[i]->line <= sig->within_lines)
            c->pending[i]->hinted = true;
}

/* --- other failures -----------------------------------------------------------------------------
 */

static void note_failure(struct note *n, const struct signature *sig)
{
    struct traceback *own = &n->voice->traceback;

    if (sig->traceback && (own->depth == 0 || n->line - own->last_line > 4))
        return;
    if (is_quoting(n) || oom_line_is_data(&n->view))
        return;
    struct event *event = oom_sighting_new(n->block, sig, &n->view, n->line);
    if (!event) {
        n->classifier->broken = true;
        return;
    }
    tally(n, sig, false);
    oom_sighting_take_surroundings(n->block, event);
    event->after_finish = n->stream->finished_line > 0;
    if (!n->stream->restart_weak)
        oom_events_alive(n->classifier, n->stream);
    oom_events_add_failure(n->classifier, event);
}

static void note_framework(struct note *n, const struct signature *sig)
{
    const struct signature *now = n->classifier->framework;

    if (now && now->priority >= sig->priority)
        return;
    if (confirms(n, sig)) {
        tally(n, sig, false);
        n->classifier->framework = sig;
    }
}

/* A line may hold a whole traceback: loggers escape the line ends. */
#define FRAME_BYTES_LEAST 12 /* File "x", in f */

static void note_frames(struct note *n)
{
    const char *at = n->view.text;
    const char *end = at + n->view.length;
    uint16_t rule;

    while (end - at > FRAME_BYTES_LEAST &&
           (at = oom_frame_parse(n->classifier, at, (size_t)(end - at), &rule)) != NULL) {
        oom_traceback_push(&n->voice->traceback, rule, n->line);
        oom_traceback_push(&n->stream->recent, rule, n->line);
    }
}

/* --- the order of meanings -----------------------------------------------------------------------
 */

static void note_structure(struct note *n, const struct signature *sig)
{
    switch (sig->kind) {
    case SIG_TRACEBACK:
        oom_traceback_reset(&n->voice->traceback);
        n->voice->traceback.last_line = n->line;
        oom_traceback_reset(&n->stream->recent);
        break;
    case SIG_FRAME:
        note_frames(n);
        break;
    case SIG_CONTEXT:
        note_context(n, sig);
        break;
    case SIG_FRAMEWORK:
        note_framework(n, sig);
        break;
    default:
        break;
    }
}

static void note_course(struct note *n, const struct signature *sig)
{
    struct stream *s = n->stream;

    if (sig->kind != SIG_PROGRESS && sig->kind != SIG_FINISHED && sig->kind != SIG_RESTART &&
        sig->kind != SIG_PHASE)
        return;
    if (!confirms(n, sig))
        return;
    /* The program goes on: what it quoted is over, closed or not. */
    n->voice->quoting = n->voice->fenced = false;
    switch (sig->kind) {
    case SIG_PROGRESS:
        tally(n, sig, false);
        if (!sig->weak) {
            oom_events_alive(n->classifier, s);
            if (s->phase == OOM_PHASE_INIT)
                s->phase = OOM_PHASE_UNKNOWN;
        }
        if (!n->progressed)
            oom_events_progress(n->classifier, s, sig->weak, n->line);
        n->progressed = true;
        break;
    case SIG_FINISHED:
        tally(n, sig, true);
        oom_events_alive(n->classifier, s);
        oom_events_finished(n->classifier, s, n->line);
        break;
    case SIG_RESTART:
        tally(n, sig, true);
        s->restarted = true;
        s->restart_weak = sig->weak && (s->restart_weak || s->restart_line != n->line);
        s->restart_line = n->line;
        s->phase = OOM_PHASE_UNKNOWN;
        s->ended_line = 0;
        break;
    default:
        note_phase(n, sig);
    }
}

/* Of the OOMs that a line matches the most specific counts: priority, then how sure its kind
 * is. */
static const struct signature *better(const struct signature *a, const struct signature *b)
{
    if (!a)
        return b;
    if (a->priority != b->priority)
        return a->priority > b->priority ? a : b;
    return a->kind <= b->kind ? a : b;
}

static bool note_look_alike(struct note *n, const struct signature *sig)
{
    if (!confirms(n, sig))
        return false;
    note_speaker(n);
    tally(n, sig, true);
    if (sig->settles)
        oom_events_void_names(n->classifier, (int)(n->stream - n->classifier->streams), n->line);
    return true;
}

/* Those that were proposed: for the account. */
static void account_look_alikes(struct note *n)
{
    const struct oom_signatures *set = n->classifier->set;

    n->classifier->look_alikes++;
    for (size_t i = 0; i < n->block->hit_count; i++)
        if (set->items[n->block->hits[i]].kind == SIG_LOOK_ALIKE)
            note_look_alike(n, &set->items[n->block->hits[i]]);
}

static bool holds_find(const struct note *n, const struct signature *sig)
{
    const json_t *find = json_object_get(sig->json, "find");
    size_t i;
    const json_t *piece;

    json_array_foreach(find, i, piece)
    {
        if (memmem(n->view.text, n->view.length, json_string_value(piece),
                   json_string_length(piece)))
            return true;
    }
    return false;
}

/* All of them, proposed or not: for a line that would count. */
static bool is_look_alike(struct note *n)
{
    const struct oom_signatures *set = n->classifier->set;
    bool found = false;

    for (size_t i = 0; i < set->count; i++)
        if (set->items[i].kind == SIG_LOOK_ALIKE && holds_find(n, &set->items[i]))
            found |= note_look_alike(n, &set->items[i]);
    return found;
}

static const struct signature *find_memory(struct note *n)
{
    const struct oom_signatures *set = n->classifier->set;
    const struct signature *best = NULL;

    for (size_t i = 0; i < n->block->hit_count; i++) {
        const struct signature *sig = &set->items[n->block->hits[i]];
        if (sig->kind > SIG_SUSPECT || (best && better(best, sig) == best))
            continue;
        if (confirms(n, sig))
            best = sig;
    }
    return best;
}

static void note_beside(struct note *n, const struct signature *sig)
{
    bool waiting = n->stream->waiting > 0;

    if (sig->kind == SIG_RECOVERED && waiting && confirms(n, sig))
        note_recovered(n, sig);
    else if (sig->kind == SIG_DETAIL && waiting && confirms(n, sig))
        note_detail(n, sig);
    else if (sig->kind == SIG_SECONDARY && confirms(n, sig))
        tally(n, sig, true);
    else if (sig->kind == SIG_FAILURE && confirms(n, sig) && !is_look_alike(n))
        note_failure(n, sig);
}

#define KIND(kind)   (1u << (kind))
#define MEMORY_KINDS (KIND(SIG_OOM) | KIND(SIG_WRAPPER) | KIND(SIG_SUSPECT))
#define BESIDE_KINDS                                                                               \
    (KIND(SIG_RECOVERED) | KIND(SIG_DETAIL) | KIND(SIG_SECONDARY) | KIND(SIG_FAILURE))
#define STRUCTURE_KINDS                                                                            \
    (KIND(SIG_TRACEBACK) | KIND(SIG_FRAME) | KIND(SIG_CONTEXT) | KIND(SIG_FRAMEWORK))
#define COURSE_KINDS (KIND(SIG_PROGRESS) | KIND(SIG_FINISHED) | KIND(SIG_RESTART) | KIND(SIG_PHASE))

static void note_memory(struct note *n)
{
    const struct oom_signatures *set = n->classifier->set;
    uint32_t kinds = n->block->hit_kinds;
    const struct signature *best = kinds & MEMORY_KINDS ? find_memory(n) : NULL;
    bool look_alike = false;

    if (best)
        look_alike = is_look_alike(n);
    else if (kinds & KIND(SIG_LOOK_ALIKE))
        account_look_alikes(n);
    if (!best && !(kinds & BESIDE_KINDS))
        return;
    note_speaker(n);
    if (best && n->view.shell) {
        struct event *event = oom_sighting_new(n->block, best, &n->view, n->line);
        if (event)
            discount_now(n, event, "a command or a comment, not output");
        return;
    }
    if (best && !look_alike)
        note_oom(n, best);
    for (size_t i = 0; i < n->block->hit_count && !n->view.shell; i++) {
        const struct signature *sig = &set->items[n->block->hits[i]];
        if (!best || sig->kind == SIG_RECOVERED)
            note_beside(n, sig);
    }
}

static bool note_quotes(struct note *n)
{
    const struct oom_signatures *set = n->classifier->set;

    for (size_t i = 0; i < n->block->hit_count; i++)
        if (set->items[n->block->hits[i]].kind == SIG_QUOTE &&
            note_quote(n, &set->items[n->block->hits[i]]))
            return true;
    return false;
}

void oom_piece_note(struct block *block)
{
    struct note n = {
        .block = block,
        .classifier = block->classifier,
        .stream = block->stream,
    };
    const struct oom_signatures *set = block->classifier->set;
    uint32_t kinds = block->hit_kinds;

    oom_line_clean(block->bytes + block->piece_start, block->piece_end - block->piece_start,
                   n.classifier->line_buffer, &n.view);
    if (kinds & (KIND(SIG_QUOTE) | STRUCTURE_KINDS | COURSE_KINDS))
        note_speaker(&n);
    if ((kinds & KIND(SIG_QUOTE)) && note_quotes(&n))
        return;
    if (kinds & STRUCTURE_KINDS)
        for (size_t i = 0; i < block->hit_count; i++)
            note_structure(&n, &set->items[block->hits[i]]);
    if ((kinds & COURSE_KINDS) && !n.view.shell)
        for (size_t i = 0; i < block->hit_count; i++)
            note_course(&n, &set->items[block->hits[i]]);
    if (kinds & (MEMORY_KINDS | BESIDE_KINDS | KIND(SIG_LOOK_ALIKE)))
        note_memory(&n);
}
