/* SPDX-License-Identifier: Apache-2.0
 *
 * All literals of all signatures become one Hyperscan database, so that a log is read once
 * whatever the number of signatures; frame rules become a hash by function name. */
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
        bool look_alike = set->items[owner].kind == SIG_LOOK_ALIKE;
        struct literal *last = out ? &set->literals[out - 1] : NULL;

        if (last && strcmp(last->text, l.text) == 0 && last->nocase == l.nocase) {
            free(l.text);
            if (set->literal_sigs[set->literal_sig_count - 1] == owner)
                continue;
            last->count++;
            last->only_progress &= progress;
            last->only_look_alike &= look_alike;
        } else {
            l.first = (uint32_t)set->literal_sig_count;
            l.count = 1;
            l.only_progress = progress;
            l.only_look_alike = look_alike;
            set->literals[out++] = l;
        }
        set->literal_sigs[set->literal_sig_count++] = owner;
    }
    set->literal_count = out;
    return 0;
}

static int database_build(const struct oom_signatures *set, bool look_alikes, hs_database_t **out,
                          struct oom_error *err)
{
    size_t n = set->literal_count;
    const char **texts = calloc(n, sizeof(*texts));
    size_t *lengths = calloc(n, sizeof(*lengths));
    unsigned int *flags = calloc(n, sizeof(*flags));
    unsigned int *ids = calloc(n, sizeof(*ids));
    hs_compile_error_t *compile_error = NULL;
    int rc = -1;

    if (texts && lengths && flags && ids) {
        size_t count = 0;
        for (size_t i = 0; i < n; i++) {
            if (set->literals[i].only_look_alike && !look_alikes)
                continue;
            texts[count] = set->literals[i].text;
            lengths[count] = set->literals[i].length;
            flags[count] = set->literals[i].nocase ? HS_FLAG_CASELESS : 0;
            ids[count++] = (unsigned int)i;
        }
        if (hs_compile_lit_multi(texts, flags, ids, lengths, (unsigned int)count, HS_MODE_BLOCK,
                                 NULL, out, &compile_error) == HS_SUCCESS)
            rc = 0;
        else
            oom_errorf(err, "signatures: cannot compile the search: %s",
                       compile_error ? compile_error->message : "unknown reason");
        if (compile_error)
            hs_free_compile_error(compile_error);
    } else {
        oom_errorf(err, "signatures: out of memory");
    }
    free(texts);
    free(lengths);
    free(flags);
    free(ids);
    return rc;
}

int oom_signatures_compile_literals(struct oom_signatures *set, struct oom_error *err)
{
    if (literals_group(set))
        return oom_errorf(err, "signatures: out of memory");
    oom_frame_rules_index(set);
    if (database_build(set, true, &set->database, err))
        return -1;
    return database_build(set, false, &set->essential, err);
}
