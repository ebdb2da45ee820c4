/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/head/sound.h"

/* The deepest and largest that is sent on purpose are policies and lists of the log's lines. */
enum { MAX_DEPTH = 32, MAX_MEMBERS = 2000 };

static bool is_sound(const json_t *json, int depth)
{
    const char *key;
    json_t *member;
    size_t i;

    if (depth > MAX_DEPTH || json_object_size(json) > MAX_MEMBERS ||
        json_array_size(json) > MAX_MEMBERS)
        return false;
    json_array_foreach(json, i, member)
    {
        if (!is_sound(member, depth + 1))
            return false;
    }
    json_object_foreach((json_t *)json, key, member)
    {
        if (!is_sound(member, depth + 1))
            return false;
    }
    return true;
}

bool sound_body(const json_t *body)
{
    return is_sound(body, 0);
}

bool sound_size(const json_t *member, size_t most_bytes)
{
    return !member || json_dumpb(member, NULL, 0, JSON_COMPACT) <= most_bytes;
}
