/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/run/beginning.h"

#include <stdlib.h>
#include <string.h>

#include "oomretry/dump.h"

void beginning_add(struct beginning *beginning, const char *bytes, size_t length)
{
    size_t left = OOM_DUMP_BYTES - beginning->length;

    if (length > left)
        length = left;
    if (beginning->room < beginning->length + length) {
        size_t room = (beginning->length + length) * 2;
        char *more = realloc(beginning->bytes, room);
        if (!more)
            return;
        beginning->bytes = more;
        beginning->room = room;
    }
    if (length)
        memcpy(beginning->bytes + beginning->length, bytes, length);
    beginning->length += length;
}

void beginning_free(struct beginning *beginning)
{
    free(beginning->bytes);
    *beginning = (struct beginning){NULL, 0, 0};
}
