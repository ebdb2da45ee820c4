/* SPDX-License-Identifier: Apache-2.0
 *
 * What Hyperscan proposes PCRE2 confirms, and reads the numbers out of. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/classify_private.h"

bool oom_regex_matches(const struct oom_signatures *set, const pcre2_code *code,
                       pcre2_match_data *scratch, const char *text, size_t length)
{
    int rc = pcre2_jit_match(code, (PCRE2_SPTR)text, length, 0, 0, scratch, set->match_context);

    if (rc == PCRE2_ERROR_JIT_BADOPTION) /* built without a JIT */
        rc = pcre2_match(code, (PCRE2_SPTR)text, length, 0, 0, scratch, set->match_context);
    return rc >= 0;
}

static bool holds_one(const json_t *pieces, const char *text, size_t length)
{
    for (size_t i = 0; i < json_array_size(pieces); i++) {
        const json_t *piece = json_array_get(pieces, i);
        if (memmem(text, length, json_string_value(piece), json_string_length(piece)))
            return true;
    }
    return false;
}

bool oom_signature_confirms(const struct oom_signatures *set, const struct signature *sig,
                            pcre2_match_data *scratch, const char *text, size_t length)
{
    /* Plain text is cheaper to look for than an expression is to fail. */
    if ((sig->with && !holds_one(sig->with, text, length)) ||
        (sig->without && holds_one(sig->without, text, length)))
        return false;
    if (sig->match && !oom_regex_matches(set, sig->match, scratch, text, length))
        return false;
    return !sig->unless || !oom_regex_matches(set, sig->unless, scratch, text, length);
}

void oom_captures_init(struct captures *captures)
{
    memset(captures, 0, sizeof(*captures));
    oom_numbers_init(&captures->numbers);
    captures->reserved_total_bytes = OOM_UNSTATED;
    captures->rank = -1;
    captures->count = -1;
}

static bool group_get(const pcre2_code *code, pcre2_match_data *data, const char *name,
                      const char *text, const char **at, size_t *length)
{
    int number = pcre2_substring_number_from_name(code, (PCRE2_SPTR)name);

    if (number <= 0 || (uint32_t)number >= pcre2_get_ovector_count(data))
        return false;
    const PCRE2_SIZE *vector = pcre2_get_ovector_pointer(data);
    if (vector[2 * number] == PCRE2_UNSET)
        return false;
    *at = text + vector[2 * number];
    *length = vector[2 * number + 1] - vector[2 * number];
    return true;
}

/* "tried", or "tried_gib" where the unit is not beside the number. */
static void take_size(const pcre2_code *code, pcre2_match_data *data, const char *name,
                      const char *text, int64_t *out)
{
    const char *at;
    size_t length;
    char name_gib[40];
    char number[48];

    if (*out != OOM_UNSTATED)
        return;
    if (group_get(code, data, name, text, &at, &length)) {
        *out = oom_size_parse(at, length);
        return;
    }
    snprintf(name_gib, sizeof(name_gib), "%s_gib", name);
    if (group_get(code, data, name_gib, text, &at, &length) && length < 32) {
        int n = snprintf(number, sizeof(number), "%.*s GiB", (int)length, at);
        *out = oom_size_parse(number, (size_t)n);
    }
}

static void take_text(const pcre2_code *code, pcre2_match_data *data, const char *name,
                      const char *text, char *out, size_t size)
{
    const char *at;
    size_t length;

    if (out[0] || !group_get(code, data, name, text, &at, &length) || length >= size)
        return;
    memcpy(out, at, length);
    out[length] = '\0';
}

static void take_whole(const pcre2_code *code, pcre2_match_data *data, const char *name,
                       const char *text, int64_t *out)
{
    const char *at;
    size_t length;

    if (*out < 0 && group_get(code, data, name, text, &at, &length))
        *out = oom_size_parse(at, length);
}

void oom_captures_take(const struct oom_signatures *set, const struct signature *sig,
                       pcre2_match_data *scratch, const char *text, size_t length,
                       struct captures *captures)
{
    struct oom_numbers *n = &captures->numbers;

    for (size_t i = 0; i < sig->number_count; i++) {
        const pcre2_code *code = sig->numbers[i];
        int64_t rank = captures->rank;
        if (!oom_regex_matches(set, code, scratch, text, length))
            continue;
        take_size(code, scratch, "tried", text, &n->tried_bytes);
        take_size(code, scratch, "total", text, &n->total_bytes);
        take_size(code, scratch, "free", text, &n->free_bytes);
        take_size(code, scratch, "in_use", text, &n->in_use_bytes);
        take_size(code, scratch, "allocated", text, &n->allocated_bytes);
        take_size(code, scratch, "reserved_unallocated", text, &n->reserved_unallocated_bytes);
        take_size(code, scratch, "reserved_total", text, &captures->reserved_total_bytes);
        take_text(code, scratch, "method", text, captures->method, sizeof(captures->method));
        take_text(code, scratch, "node", text, captures->node, sizeof(captures->node));
        take_whole(code, scratch, "rank", text, &rank);
        take_whole(code, scratch, "count", text, &captures->count);
        if (rank >= 0 && rank < 10000000)
            captures->rank = (int)rank;
    }
    /* Old messages state both sums instead of the difference. */
    if (n->reserved_unallocated_bytes == OOM_UNSTATED && n->allocated_bytes != OOM_UNSTATED &&
        captures->reserved_total_bytes >= n->allocated_bytes)
        n->reserved_unallocated_bytes = captures->reserved_total_bytes - n->allocated_bytes;
}
