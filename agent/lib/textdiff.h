/* SPDX-License-Identifier: Apache-2.0
 *
 * A unified diff of two texts, by lines. */
#ifndef AGENT_LIB_TEXTDIFF_H
#define AGENT_LIB_TEXTDIFF_H

#include <stddef.h>

/* New string; "" when both are equal. NULL when out of memory. */
char *textdiff_unified(const char *old_name, const char *new_name, const char *old_bytes,
                       size_t old_length, const char *new_bytes, size_t new_length);

#endif
