/* SPDX-License-Identifier: Apache-2.0
 *
 * The signatures that a line proposes: those of which it holds a literal. */
#include <string.h>

#include "policies/classify_private.h"

void oom_hits_clear(struct hits *hits)
{
    hits->count = 0;
    hits->kinds = 0;
}

void oom_hits_add(struct hits *hits, uint16_t sig, enum sig_kind kind)
{
    size_t at = hits->count;

    while (at > 0 && hits->sig[at - 1] > sig)
        at--;
    if (hits->count == HITS_MAX || (at > 0 && hits->sig[at - 1] == sig))
        return;
    memmove(hits->sig + at + 1, hits->sig + at, (hits->count - at) * sizeof(sig));
    hits->sig[at] = sig;
    hits->count++;
    hits->kinds |= 1u << kind;
}

struct line_search {
    const struct oom_signatures *set;
    const char *text;
    size_t length;
    struct hits *hits;
};

static int on_look_alike(unsigned int id, unsigned long long from, unsigned long long to,
                         unsigned int flags, void *context)
{
    struct line_search *search = context;
    const struct oom_signatures *set = search->set;
    const struct fragment *fragment = &set->fragments[id];

    (void)from;
    (void)flags;
    for (uint32_t i = 0; i < fragment->count; i++) {
        const struct literal *literal = &set->literals[fragment->first + i];
        if (!literal->look_alike ||
            !oom_literal_is_at(literal, search->text, search->length, (size_t)to))
            continue;
        for (uint32_t k = 0; k < literal->count; k++) {
            uint16_t sig = set->literal_sigs[literal->first + k];
            if (set->items[sig].kind == SIG_LOOK_ALIKE)
                oom_hits_add(search->hits, sig, SIG_LOOK_ALIKE);
        }
    }
    return 0;
}

void oom_hits_add_look_alikes(struct oom_classifier *classifier, const char *text, size_t length,
                              struct hits *hits)
{
    struct line_search search = {classifier->set, text, length, hits};
    const unsigned int scan_length = (unsigned int)length;

    if (classifier->set->look_alikes &&
        hs_scan_vector(classifier->set->look_alikes, &text, &scan_length, 1, 0,
                       classifier->line_scratch, on_look_alike, &search) != HS_SUCCESS)
        classifier->broken = true;
}
