/* SPDX-License-Identifier: Apache-2.0
 *
 * The expressions that read numbers: what a group with another name captured would be lost. */
#include <stdio.h>
#include <string.h>

#include "policies/classify_schema.h"

static const char *const groups[] = {
    "tried",          "total", "free", "in_use", "allocated", "reserved_unallocated",
    "reserved_total", "rank",  "node", "method", "count",     NULL,
};

/* "tried_gib" is the number of "tried" where its unit does not stand beside it. */
static bool is_known(const char *name)
{
    size_t length = strlen(name);

    if (length > 4 && strcmp(name + length - 4, "_gib") == 0)
        length -= 4;
    for (const char *const *g = groups; *g; g++)
        if (strlen(*g) == length && memcmp(*g, name, length) == 0)
            return true;
    return false;
}

static int check_groups(const struct reading *r, const pcre2_code *code)
{
    uint32_t count = 0;
    uint32_t size = 0;
    PCRE2_SPTR table = NULL;

    pcre2_pattern_info(code, PCRE2_INFO_NAMECOUNT, &count);
    pcre2_pattern_info(code, PCRE2_INFO_NAMEENTRYSIZE, &size);
    pcre2_pattern_info(code, PCRE2_INFO_NAMETABLE, &table);
    if (count == 0)
        return oom_schema_refuse(r, "numbers",
                                 "every expression needs a group with a name: (?<tried>%size%)");
    for (uint32_t i = 0; i < count; i++) {
        const char *name = (const char *)table + (size_t)i * size + 2; /* behind its number */
        if (!is_known(name))
            return oom_schema_refuse_word(r, "numbers", name, groups);
    }
    return 0;
}

int oom_schema_take_numbers(const struct reading *r, json_t *object, bool nocase,
                            struct signature *sig)
{
    json_t *numbers = json_object_get(object, "numbers");

    if (!numbers)
        return 0;
    if (!json_is_array(numbers) || json_array_size(numbers) > SIG_NUMBERS_MAX)
        return oom_schema_refuse(r, "numbers", "must be an array of at most 6 expressions");
    for (size_t i = 0; i < json_array_size(numbers); i++) {
        const char *pattern = json_string_value(json_array_get(numbers, i));
        if (!pattern)
            return oom_schema_refuse(r, "numbers", "must hold strings");
        if (oom_schema_take_regex(r, "numbers", pattern, nocase, &sig->numbers[sig->number_count]))
            return -1;
        sig->number_count++;
        if (check_groups(r, sig->numbers[i]))
            return -1;
    }
    return 0;
}
