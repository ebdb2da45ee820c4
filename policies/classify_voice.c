/* SPDX-License-Identifier: Apache-2.0
 *
 * Who speaks: lines of many processes are interleaved, and a traceback belongs to one of them.
 * The table is bounded; who has been silent for longest is forgotten. */
#include <string.h>

#include "policies/classify_private.h"

struct voice *oom_voice_get(struct oom_classifier *classifier, int stream, uint64_t id)
{
    uint64_t key = (id ^ ((uint64_t)(stream + 1) * UINT64_C(0x9e3779b97f4a7c15))) | 1;
    size_t home = (size_t)(oom_hash_spread(key) % VOICES_MAX);
    struct voice *oldest = NULL;

    for (size_t i = 0; i < 8; i++) {
        struct voice *voice = &classifier->voices[(home + i) % VOICES_MAX];
        if (voice->id == key) {
            voice->used = ++classifier->clock;
            return voice;
        }
        if (!oldest || voice->used < oldest->used)
            oldest = voice;
    }
    memset(oldest, 0, sizeof(*oldest));
    oldest->id = key;
    oldest->used = ++classifier->clock;
    return oldest;
}
