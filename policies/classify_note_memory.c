/* SPDX-License-Identifier: Apache-2.0
 *
 * A line that names memory or a failure: is it one, a look-alike, or text about one? */
#include <string.h>

#include "policies/classify_note.h"

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
    if (!oom_note_confirms(n, sig))
        return false;
    oom_note_speaker(n);
    oom_note_tally(n, sig, true);
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
        if (oom_note_confirms(n, sig))
            best = sig;
    }
    return best;
}

static void note_beside(struct note *n, const struct signature *sig)
{
    bool waiting = n->stream->waiting > 0;

    if (sig->kind == SIG_RECOVERED && waiting && oom_note_confirms(n, sig))
        oom_note_recovered(n, sig);
    else if (sig->kind == SIG_DETAIL && waiting && oom_note_confirms(n, sig))
        oom_note_detail(n, sig);
    else if (sig->kind == SIG_SECONDARY && oom_note_confirms(n, sig))
        oom_note_tally(n, sig, true);
    else if (sig->kind == SIG_FAILURE && oom_note_confirms(n, sig) && !is_look_alike(n))
        oom_note_failure(n, sig);
}

#define KIND(kind)   (1u << (kind))
#define MEMORY_KINDS (KIND(SIG_OOM) | KIND(SIG_WRAPPER) | KIND(SIG_SUSPECT))
#define BESIDE_KINDS                                                                               \
    (KIND(SIG_RECOVERED) | KIND(SIG_DETAIL) | KIND(SIG_SECONDARY) | KIND(SIG_FAILURE))
#define STRUCTURE_KINDS                                                                            \
    (KIND(SIG_TRACEBACK) | KIND(SIG_FRAME) | KIND(SIG_CONTEXT) | KIND(SIG_FRAMEWORK))
#define COURSE_KINDS (KIND(SIG_PROGRESS) | KIND(SIG_FINISHED) | KIND(SIG_RESTART) | KIND(SIG_PHASE))

void oom_note_memory(struct note *n)
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
    oom_note_speaker(n);
    if (best && n->view.shell) {
        struct event *event = oom_sighting_new(n->block, best, &n->view, n->line);
        if (event)
            oom_note_discounted(n, event, "a command or a comment, not output");
        return;
    }
    if (best && !look_alike)
        oom_note_oom(n, best);
    for (size_t i = 0; i < n->block->hit_count && !n->view.shell; i++) {
        const struct signature *sig = &set->items[n->block->hits[i]];
        if (!best || sig->kind == SIG_RECOVERED)
            note_beside(n, sig);
    }
}
