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
    for (size_t i = 0; i < n->block->hits.count; i++)
        if (set->items[n->block->hits.sig[i]].kind == SIG_LOOK_ALIKE)
            note_look_alike(n, &set->items[n->block->hits.sig[i]]);
}

/* All of them, searched in its block or not: for a line that would count. */
static bool is_look_alike(struct note *n)
{
    struct hits hits;
    bool found = false;

    oom_hits_clear(&hits);
    oom_hits_add_look_alikes(n->classifier, n->view.text, n->view.length, &hits);
    for (size_t i = 0; i < hits.count; i++)
        found |= note_look_alike(n, &n->classifier->set->items[hits.sig[i]]);
    return found;
}

static const struct signature *find_memory(struct note *n)
{
    const struct oom_signatures *set = n->classifier->set;
    const struct signature *best = NULL;

    for (size_t i = 0; i < n->block->hits.count; i++) {
        const struct signature *sig = &set->items[n->block->hits.sig[i]];
        if (sig->kind > SIG_SUSPECT || (best && better(best, sig) == best))
            continue;
        if (oom_note_confirms(n, sig))
            best = sig;
    }
    return best;
}

/* An exception stands at the beginning of what is said, behind time stamps and names. */
static bool confirms_failure(struct note *n, const struct signature *sig)
{
    return oom_note_confirms(n, sig) ||
           (n->view.body_length < n->view.length &&
            oom_signature_confirms(n->classifier->set, sig, n->classifier->match_data, n->view.body,
                                   n->view.body_length));
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
    else if (sig->kind == SIG_FAILURE && oom_note_may_fail(n, sig) && confirms_failure(n, sig) &&
             (sig->root || !is_look_alike(n)))
        oom_note_failure(n, sig);
}

void oom_note_memory(struct note *n)
{
    const struct oom_signatures *set = n->classifier->set;
    uint32_t kinds = n->block->hits.kinds;
    const struct signature *best = kinds & MEMORY_KINDS ? find_memory(n) : NULL;
    bool look_alike = false;

    if (best)
        look_alike = is_look_alike(n);
    else if (kinds & KIND(SIG_LOOK_ALIKE))
        account_look_alikes(n);
    if (!best && !(kinds & BESIDE_KINDS))
        return;
    oom_note_speaker(n);
    if (best && n->view.shell && !best->comment) {
        struct event *event = oom_sighting_new(n->block, best, &n->view, n->line);
        if (event)
            oom_note_discounted(n, event, "a command or a comment, not output");
        return;
    }
    if (best && !look_alike)
        oom_note_oom(n, best);
    for (size_t i = 0; i < n->block->hits.count && !n->view.shell; i++) {
        const struct signature *sig = &set->items[n->block->hits.sig[i]];
        if (!best || sig->kind == SIG_RECOVERED)
            note_beside(n, sig);
    }
}
