/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POLICIES_JSONTEXT_H
#define POLICIES_JSONTEXT_H

#include <jansson.h>

/* A JSON string of text that may hold any byte (names of files and jobs, arguments, lines of
 * scripts and logs, what snprintf has cut in the middle of a character): where it is not UTF-8,
 * which jansson refuses, a '?' stands for each byte. NULL: out of memory. */
json_t *oom_json_text(const char *text);

#endif
