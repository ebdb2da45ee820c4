/* SPDX-License-Identifier: Apache-2.0
 *
 * One piece of a line and the signatures proposed for it: what it means for the state. */

#include "policies/classify_note.h"

/* Quoted text that nothing closes ends by itself. */
#define QUOTE_LINES 400

bool oom_note_confirms(struct note *n, const struct signature *sig)
{
    return oom_signature_confirms(n->classifier->set, sig, n->classifier->match_data, n->view.text,
                                  n->view.length);
}

/* Who speaks, and where: only asked when a line means something. */
void oom_note_speaker(struct note *n)
{
    if (n->voice)
        return;
    oom_line_speaker(&n->view);
    n->line = oom_block_line_at(n->block, n->block->piece_start);
    n->voice =
        oom_voice_get(n->classifier, (int)(n->stream - n->classifier->streams), n->view.voice);
}

void oom_note_tally(struct note *n, const struct signature *sig, bool keep_first)
{
    struct tally *t = &n->classifier->tallies[sig - n->classifier->set->items];
    int stream = (int)(n->stream - n->classifier->streams);

    t->files += t->count == 0 || t->last_stream != stream; /* files come one after another */
    t->last_stream = stream;
    t->count++;
    t->last_line = n->line;
    if (t->count > 1)
        return;
    t->first_line = n->line;
    t->first_stream = stream;
    if (keep_first)
        t->first = oom_sighting_new(n->block, sig, &n->view, n->line);
}

/* --- quoted text ------------------------------------------------------------------------------ */

bool oom_note_is_quoting(struct note *n)
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
    oom_note_tally(n, sig, false);
    oom_note_is_quoting(n);
    if (sig->edge == EDGE_TOGGLE)
        n->voice->fenced = !n->voice->fenced;
    else
        n->voice->quoting = sig->edge == EDGE_BEGIN;
    n->voice->quote_line = n->line;
    n->stream->quoting = true;
    return true;
}

static void note_framework(struct note *n, const struct signature *sig)
{
    const struct signature *now = n->classifier->framework;

    if (now && now->priority >= sig->priority)
        return;
    if (oom_note_confirms(n, sig)) {
        oom_note_tally(n, sig, false);
        n->classifier->framework = sig;
    }
}

/* --- the order of meanings ------------------------------------------------------------------- */

static void note_structure(struct note *n, const struct signature *sig)
{
    switch (sig->kind) {
    case SIG_TRACEBACK:
        oom_traceback_reset(&n->voice->traceback);
        n->voice->traceback.last_line = n->line;
        oom_traceback_reset(&n->stream->recent);
        break;
    case SIG_FRAME:
        oom_note_frames(n);
        break;
    case SIG_CONTEXT:
        oom_note_context(n, sig);
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
    if (!oom_note_confirms(n, sig))
        return;
    /* The program goes on: what it quoted is over, closed or not. */
    n->voice->quoting = n->voice->fenced = false;
    switch (sig->kind) {
    case SIG_PROGRESS:
        oom_note_tally(n, sig, false);
        if (!sig->weak) {
            oom_events_alive(n->classifier, s);
            oom_note_phase_passed(n, sig);
        }
        if (!n->progressed)
            oom_events_progress(n->classifier, s, sig->weak, n->line);
        n->progressed = true;
        break;
    case SIG_FINISHED:
        oom_note_tally(n, sig, true);
        oom_events_alive(n->classifier, s);
        oom_events_finished(n->classifier, s, n->line);
        break;
    case SIG_RESTART:
        oom_note_tally(n, sig, true);
        if (sig->own)
            oom_events_own_restart(n->classifier);
        s->restarted = true;
        s->restart_weak = sig->weak && (s->restart_weak || s->restart_line != n->line);
        s->restart_line = n->line;
        s->phase = OOM_PHASE_UNKNOWN;
        s->ended_line = 0;
        break;
    default:
        oom_note_phase(n, sig);
    }
}

static bool note_quotes(struct note *n)
{
    const struct oom_signatures *set = n->classifier->set;

    for (size_t i = 0; i < n->block->hits.count; i++)
        if (set->items[n->block->hits.sig[i]].kind == SIG_QUOTE &&
            note_quote(n, &set->items[n->block->hits.sig[i]]))
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
    uint32_t kinds = block->hits.kinds;

    n.view.text = block->bytes + block->piece_start;
    n.view.length = block->piece_end - block->piece_start;
    if (n.view.length > 0 && *n.view.text == '{')
        oom_line_unwrap(&n.view);
    if (kinds & (KIND(SIG_QUOTE) | STRUCTURE_KINDS | COURSE_KINDS))
        oom_note_speaker(&n);
    if ((kinds & KIND(SIG_QUOTE)) && note_quotes(&n))
        return;
    if (kinds & STRUCTURE_KINDS)
        for (size_t i = 0; i < block->hits.count; i++)
            note_structure(&n, &set->items[block->hits.sig[i]]);
    if ((kinds & COURSE_KINDS) && !n.view.shell)
        for (size_t i = 0; i < block->hits.count; i++)
            note_course(&n, &set->items[block->hits.sig[i]]);
    if (kinds & (MEMORY_KINDS | BESIDE_KINDS | KIND(SIG_LOOK_ALIKE)))
        oom_note_memory(&n);
}
