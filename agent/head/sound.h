/* SPDX-License-Identifier: Apache-2.0
 *
 * Bodies of requests are anybody's. How large one may be is the transport's to say (http.c); what
 * is within has a measure too, since what reads it later was not made for more: SQLite refuses JSON
 * that is nested too deep, and values are looked up one behind the other. */
#ifndef AGENT_HEAD_SOUND_H
#define AGENT_HEAD_SOUND_H

#include <jansson.h>
#include <stdbool.h>

/* No object or array of it has too many members, or is nested too deep. NULL is sound. */
bool sound_body(const json_t *body);

/* Is its text at most so long? NULL is. */
bool sound_size(const json_t *member, size_t most_bytes);

#endif
