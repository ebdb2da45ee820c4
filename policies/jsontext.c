/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/jsontext.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of the character that begins here; 0: none does. */
static size_t character(const unsigned char *text)
{
    size_t length = *text < 0x80 ? 1 : *text >= 0xf0 ? 4 : *text >= 0xe0 ? 3 : 2;
    unsigned value = length == 1 ? *text : *text & (0x7fU >> length);

    if (*text >= 0xf8 || (*text >= 0x80 && *text < 0xc2))
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (text[i] & 0x3fU);
    }
    if ((length == 3 && value < 0x800) || (length == 4 && value < 0x10000) || value > 0x10ffff ||
        (value >= 0xd800 && value < 0xe000))
        return 0;
    return length;
}

json_t *oom_json_text(const char *text)
{
    char *clean = strdup(text);

    if (!clean)
        return NULL;
    for (unsigned char *p = (unsigned char *)clean; *p;) {
        size_t length = character(p);
        if (length == 0)
            *p = '?';
        p += length ? length : 1;
    }
    json_t *json = json_string(clean);
    free(clean);
    return json;
}
