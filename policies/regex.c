/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "policies/expr.h"

/* The text is a log's: no pattern may take long on it. */
#define MATCH_LIMIT 20000
#define MAX_NUMBER  40

struct oom_regex {
    pcre2_code *code;
    pcre2_match_context *limits;
};

struct oom_regex *oom_regex_new(const char *pattern, struct oom_error *err)
{
    int code;
    PCRE2_SIZE offset;
    PCRE2_UCHAR why[128];
    uint32_t groups = 0;
    struct oom_regex *regex = calloc(1, sizeof(*regex));

    if (!regex) {
        oom_errorf(err, "out of memory");
        return NULL;
    }
    regex->limits = pcre2_match_context_create(NULL);
    regex->code =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, 0, &code, &offset, NULL);
    if (!regex->code) {
        pcre2_get_error_message(code, why, sizeof(why));
        oom_errorf(err, "column %zu of \"%s\": %s", (size_t)offset + 1, pattern, (char *)why);
        goto fail;
    }
    pcre2_pattern_info(regex->code, PCRE2_INFO_CAPTURECOUNT, &groups);
    if (groups != 1) {
        oom_errorf(err, "\"%s\" must have one group, ( ), around the number", pattern);
        goto fail;
    }
    if (!regex->limits) {
        oom_errorf(err, "out of memory");
        goto fail;
    }
    pcre2_set_match_limit(regex->limits, MATCH_LIMIT);
    pcre2_set_depth_limit(regex->limits, MATCH_LIMIT);
    return regex;
fail:
    oom_regex_free(regex);
    return NULL;
}

void oom_regex_free(struct oom_regex *regex)
{
    if (!regex)
        return;
    pcre2_code_free(regex->code);
    pcre2_match_context_free(regex->limits);
    free(regex);
}

bool oom_regex_number(const struct oom_regex *regex, const char *text, double *out)
{
    bool found = false;
    char number[MAX_NUMBER];
    pcre2_match_data *match = pcre2_match_data_create(2, NULL);

    if (!match)
        return false;
    int rc = pcre2_match(regex->code, (PCRE2_SPTR)text, strlen(text), 0, 0, match, regex->limits);
    if (rc >= 2) {
        const PCRE2_SIZE *at = pcre2_get_ovector_pointer(match);
        size_t length = at[3] - at[2];
        if (at[2] != PCRE2_UNSET && length < sizeof(number)) {
            memcpy(number, text + at[2], length);
            number[length] = '\0';
            found = oom_expr_read_number(number, out);
        }
    }
    pcre2_match_data_free(match);
    return found;
}
