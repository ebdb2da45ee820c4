/* SPDX-License-Identifier: Apache-2.0
 *
 * The first bytes of an attempt's output, where programs say what they run with. */
#ifndef AGENT_RUN_BEGINNING_H
#define AGENT_RUN_BEGINNING_H

#include <stddef.h>

struct beginning {
    char *bytes;
    size_t length, room;
};

/* Keeps what there is room for. */
void beginning_add(struct beginning *beginning, const char *bytes, size_t length);
void beginning_free(struct beginning *beginning);

#endif
