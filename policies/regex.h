/* SPDX-License-Identifier: Apache-2.0
 *
 * One bounded regular expression with one group that is a number. */
#ifndef POLICIES_REGEX_H
#define POLICIES_REGEX_H

#include <stdbool.h>

#include "oomretry/error.h"

struct oom_regex;

struct oom_regex *oom_regex_new(const char *pattern, struct oom_error *err);
void oom_regex_free(struct oom_regex *regex);

/* The number that the first group holds. */
bool oom_regex_number(const struct oom_regex *regex, const char *text, double *out);

#endif
