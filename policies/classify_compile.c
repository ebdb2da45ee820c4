/* SPDX-License-Identifier: Apache-2.0
 *
 * The literals of all signatures become one search, so that a log is read once whatever the number
 * of signatures; frame rules become a hash by function name. */
#include <stdlib.h>
#include <string.h>

#include "policies/classify_private.h"

static int literal_order(const void *a, const void *b)
{
    const struct literal *x = a;
    const struct literal *y = b;
    int by_text = strcmp(x->text, y->text);

    if (by_text)
        return by_text;
    if (x->nocase != y->nocase)
        return x->nocase ? 1 : -1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Literals that several signatures share are searched once. Before: one entry an owner, the owner
 * in `first`. After: distinct literals, their owners in literal_sigs. */
static int literals_group(struct oom_signatures *set)
{
    size_t out = 0;

    set->literal_sigs = calloc(set->literal_count + 1, sizeof(*set->literal_sigs));
    if (!set->literal_sigs)
        return -1;
    qsort(set->literals, set->literal_count, sizeof(*set->literals), literal_order);
    for (size_t i = 0; i < set->literal_count; i++) {
        struct literal l = set->literals[i];
        uint16_t owner = (uint16_t)l.first;
        bool progress = set->items[owner].kind == SIG_PROGRESS;
        /* One that settles changes what came before it: it is never too many. */
        bool look_alike = set->items[owner].kind == SIG_LOOK_ALIKE;
        bool only_look_alike = look_alike && !set->items[owner].settles;
        bool framework = set->items[owner].kind == SIG_FRAMEWORK;
        struct literal *last = out ? &set->literals[out - 1] : NULL;

        if (last && strcmp(last->text, l.text) == 0 && last->nocase == l.nocase) {
            free(l.text);
            if (set->literal_sigs[set->literal_sig_count - 1] == owner)
                continue;
            last->count++;
            last->only_progress &= progress;
            last->only_look_alike &= only_look_alike;
            last->look_alike |= look_alike;
            last->framework |= framework;
        } else {
            l.first = (uint32_t)set->literal_sig_count;
            l.count = 1;
            l.only_progress = progress;
            l.only_look_alike = only_look_alike;
            l.look_alike = look_alike;
            l.framework = framework;
            set->literals[out++] = l;
        }
        set->literal_sigs[set->literal_sig_count++] = owner;
    }
    set->literal_count = out;
    return 0;
}

int oom_signatures_compile_literals(struct oom_signatures *set, struct oom_error *err)
{
    if (literals_group(set) || oom_fragments_choose(set))
        return oom_errorf(err, "signatures: out of memory");
    oom_frame_rules_index(set);
    if (oom_fragments_compile(set, FRAGMENTS_ALL, &set->database, err) ||
        oom_fragments_compile(set, FRAGMENTS_CALM, &set->calm, err) ||
        oom_fragments_compile(set, FRAGMENTS_LOOK_ALIKES, &set->look_alikes, err))
        return -1;
    return oom_fragments_compile(set, FRAGMENTS_FRAMEWORKS, &set->frameworks, err);
}
