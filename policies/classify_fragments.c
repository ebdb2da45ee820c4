/* SPDX-License-Identifier: Apache-2.0
 *
 * What Hyperscan searches: of every literal one fragment of at most eight bytes. Up to that length
 * Hyperscan reports a match for the price of a comparison; of a longer literal it searches the
 * end, and literals that end alike ("... out of memory") are then tried one after the other. We
 * choose the fragment that a line which is no failure is least likely to hold, and the examples
 * and look-alikes of the signatures themselves say what such lines hold. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "policies/classify_private.h"

#define COUNTERS (1u << 16)

static uint32_t counter_of(const char *bytes, size_t length)
{
    uint32_t hash = UINT32_C(0x811c9dc5);

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (uint32_t)tolower((unsigned char)bytes[i])) * UINT32_C(0x01000193);
    return (hash ^ hash >> 16) % COUNTERS;
}

static void count_text(uint16_t *counters, const char *text)
{
    size_t length = strlen(text);

    for (size_t i = 0; i + FRAGMENT_MAX <= length; i++) {
        uint16_t *counter = &counters[counter_of(text + i, FRAGMENT_MAX)];
        if (*counter < UINT16_MAX)
            ++*counter;
    }
}

static void count_lines(uint16_t *counters, const json_t *lines)
{
    size_t i;
    const json_t *line;

    json_array_foreach(lines, i, line)
    {
        count_text(counters, json_string_value(line));
    }
}

/* How rare a byte is in what programs print. */
static int rarity(char byte)
{
    if (byte == '\0')
        return 0;
    if (strchr(" etaoinsr", byte))
        return 0;
    if (strchr("hldcum0123456789", byte))
        return 1;
    if (islower((unsigned char)byte))
        return 2;
    return strchr(".:,/-_()\"", byte) ? 3 : 4;
}

static size_t choose_offset(const uint16_t *counters, const struct literal *literal)
{
    size_t best = 0;
    uint16_t best_count = UINT16_MAX;
    int best_rarity = -1;

    for (size_t i = 0; i + FRAGMENT_MAX <= literal->length; i++) {
        uint16_t count = counters[counter_of(literal->text + i, FRAGMENT_MAX)];
        int sum = 0;
        for (size_t k = 0; k < FRAGMENT_MAX; k++)
            sum += rarity(literal->text[i + k]);
        if (count < best_count || (count == best_count && sum > best_rarity)) {
            best = i;
            best_count = count;
            best_rarity = sum;
        }
    }
    return best;
}

static int fragment_order(const void *a, const void *b)
{
    const struct literal *x = a;
    const struct literal *y = b;

    if (x->nocase != y->nocase)
        return x->nocase ? 1 : -1;
    if (x->fragment_length != y->fragment_length)
        return x->fragment_length < y->fragment_length ? -1 : 1;
    return (x->nocase ? strncasecmp : strncmp)(x->text + x->fragment_offset,
                                               y->text + y->fragment_offset, x->fragment_length);
}

int oom_fragments_choose(struct oom_signatures *set)
{
    uint16_t *counters = calloc(COUNTERS, sizeof(*counters));

    set->fragments = calloc(set->literal_count + 1, sizeof(*set->fragments));
    if (!counters || !set->fragments) {
        free(counters);
        return -1;
    }
    for (size_t i = 0; i < set->count; i++) {
        count_lines(counters, json_object_get(set->items[i].json, "examples"));
        count_lines(counters, json_object_get(set->items[i].json, "look_alikes"));
    }
    for (size_t i = 0; i < set->literal_count; i++)
        count_text(counters, set->literals[i].text);
    for (size_t i = 0; i < set->literal_count; i++) {
        struct literal *l = &set->literals[i];
        l->fragment_offset = choose_offset(counters, l);
        l->fragment_length = l->length < FRAGMENT_MAX ? l->length : FRAGMENT_MAX;
    }
    free(counters);
    /* Literals of one fragment stand together. */
    qsort(set->literals, set->literal_count, sizeof(*set->literals), fragment_order);
    for (size_t i = 0; i < set->literal_count; i++) {
        struct fragment *last =
            set->fragment_count ? &set->fragments[set->fragment_count - 1] : NULL;
        if (last && fragment_order(&set->literals[last->first], &set->literals[i]) == 0)
            last->count++;
        else
            set->fragments[set->fragment_count++] = (struct fragment){(uint32_t)i, 1};
    }
    return 0;
}

static bool is_wanted(const struct oom_signatures *set, const struct fragment *fragment,
                      enum fragments which)
{
    bool wanted = which == FRAGMENTS_ALL;

    for (uint32_t i = 0; i < fragment->count; i++) {
        const struct literal *literal = &set->literals[fragment->first + i];
        wanted |= which == FRAGMENTS_CALM          ? !literal->only_progress
                  : which == FRAGMENTS_FRAMEWORKS  ? literal->framework
                  : which == FRAGMENTS_LOOK_ALIKES ? literal->look_alike
                                                   : !literal->only_look_alike;
    }
    return wanted;
}

/* Vectored mode, although there is one buffer: for block mode Hyperscan builds another automaton
 * for buffers under 70 bytes, which takes longer than all the rest and serves nobody here. */
int oom_fragments_compile(const struct oom_signatures *set, enum fragments which,
                          hs_database_t **out, struct oom_error *err)
{
    size_t n = set->fragment_count;
    const char **texts = calloc(n + 1, sizeof(*texts));
    size_t *lengths = calloc(n + 1, sizeof(*lengths));
    unsigned int *flags = calloc(n + 1, sizeof(*flags));
    unsigned int *ids = calloc(n + 1, sizeof(*ids));
    hs_compile_error_t *why = NULL;
    unsigned int count = 0;
    int rc = -1;

    for (size_t i = 0; texts && lengths && flags && ids && i < n; i++) {
        const struct literal *l = &set->literals[set->fragments[i].first];
        if (!is_wanted(set, &set->fragments[i], which))
            continue;
        texts[count] = l->text + l->fragment_offset;
        lengths[count] = l->fragment_length;
        flags[count] = l->nocase ? HS_FLAG_CASELESS : 0;
        ids[count++] = (unsigned int)i;
    }
    if (!texts || !lengths || !flags || !ids)
        oom_errorf(err, "signatures: out of memory");
    else if (count == 0)
        rc = 0;
    else if (hs_compile_lit_multi(texts, flags, ids, lengths, count, HS_MODE_VECTORED, NULL, out,
                                  &why) == HS_SUCCESS)
        rc = 0;
    else
        oom_errorf(err, "signatures: cannot compile the search: %s",
                   why ? why->message : "unknown reason");
    hs_free_compile_error(why);
    free(texts);
    free(lengths);
    free(flags);
    free(ids);
    return rc;
}

bool oom_literal_is_at(const struct literal *literal, const char *bytes, size_t length,
                       size_t fragment_end)
{
    size_t before = literal->fragment_offset + literal->fragment_length;

    if (fragment_end < before || length - fragment_end < literal->length - before)
        return false;
    const char *start = bytes + fragment_end - before;
    return literal->nocase ? strncasecmp(start, literal->text, literal->length) == 0
                           : memcmp(start, literal->text, literal->length) == 0;
}
