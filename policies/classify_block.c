/* SPDX-License-Identifier: Apache-2.0
 *
 * A block of complete lines: the texts of all signatures are searched in it at once, and what was
 * found in one piece of a line is looked at together. Carriage returns split a line into pieces, as
 * progress bars use them, but do not count. */
#include <stdlib.h>
#include <string.h>

#include "policies/classify_private.h"

#define TAIL_BYTES           2048
#define LOOK_ALIKES_SEARCHED 512

/* --- counting lines -------------------------------------------------------------------------- */

typedef uint8_t lane __attribute__((vector_size(16)));

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
#define WIDEST __attribute__((target_clones("avx2", "default")))
#else
#define WIDEST
#endif

/* Byte lanes count up to 255 before they are summed; four of them keep the processor busy. */
WIDEST static int64_t count_in_lanes(const char *bytes, size_t blocks)
{
    int64_t total = 0;

    while (blocks > 0) {
        lane sums[4] = {{0}};
        size_t now = blocks < 255 ? blocks : 255;
        for (size_t b = 0; b < now; b++, bytes += sizeof(sums)) {
            lane value[4];
            memcpy(value, bytes, sizeof(value));
            for (size_t k = 0; k < 4; k++)
                sums[k] -= (lane)(value[k] == '\n');
        }
        for (size_t k = 0; k < 4; k++)
            for (size_t i = 0; i < sizeof(lane); i++)
                total += sums[k][i];
        blocks -= now;
    }
    return total;
}

static int64_t count_newlines(const char *bytes, size_t length)
{
    const char *end = bytes + length;
    int64_t total = 0;

    if (length >= 2048) {
        size_t blocks = length / (4 * sizeof(lane));
        total = count_in_lanes(bytes, blocks);
        bytes += blocks * 4 * sizeof(lane);
    }
    while (bytes < end && (bytes = memchr(bytes, '\n', (size_t)(end - bytes))) != NULL) {
        total++;
        bytes++;
    }
    return total;
}

int64_t oom_block_line_at(struct block *block, size_t offset)
{
    if (offset > block->counted) {
        block->line += count_newlines(block->bytes + block->counted, offset - block->counted);
        block->counted = offset;
    }
    return block->line;
}

/* --- pieces ---------------------------------------------------------------------------------- */

/* The piece of a line around a hit, at most LINE_MAX_BYTES of it. */
static void piece_open(struct block *block, size_t hit_end)
{
    const char *bytes = block->bytes;
    size_t low = hit_end > LINE_MAX_BYTES / 2 ? hit_end - LINE_MAX_BYTES / 2 : 0;
    size_t at = hit_end - 1;
    const char *cut = memrchr(bytes + low, '\n', at - low);
    size_t start = cut ? (size_t)(cut - bytes) + 1 : low;

    cut = memrchr(bytes + start, '\r', at - start);
    if (cut)
        start = (size_t)(cut - bytes) + 1;
    size_t high =
        block->length - hit_end > LINE_MAX_BYTES / 2 ? hit_end + LINE_MAX_BYTES / 2 : block->length;
    cut = memchr(bytes + hit_end, '\n', high - hit_end);
    size_t end = cut ? (size_t)(cut - bytes) : high;
    cut = memchr(bytes + hit_end, '\r', end - hit_end);
    if (cut)
        end = (size_t)(cut - bytes);
    block->piece_start = start;
    block->piece_end = end;
    oom_hits_clear(&block->hits);
}

static void piece_close(struct block *block)
{
    if (block->piece_start != SIZE_MAX)
        oom_piece_note(block);
    block->piece_start = SIZE_MAX;
}

/* Progress lines are most of many logs and matter only while somebody waits for them. */
static bool progress_wanted(const struct stream *stream)
{
    return stream->waiting > 0 || stream->restarted || stream->quoting ||
           stream->phase == OOM_PHASE_INIT || stream->phase == OOM_PHASE_CHECKPOINT ||
           stream->phase == OOM_PHASE_DATA || stream->ended_line > 0 || stream->unproved > 0;
}

static void literal_found(struct block *block, const struct literal *literal, size_t to)
{
    const struct oom_signatures *set = block->classifier->set;

    if (block->stream->skimming ? !literal->framework
                                : literal->only_progress && !progress_wanted(block->stream))
        return;
    if (block->piece_start == SIZE_MAX)
        piece_open(block, to);
    for (uint32_t i = 0; i < literal->count; i++) {
        uint16_t sig = set->literal_sigs[literal->first + i];
        if (block->stream->skimming && set->items[sig].kind != SIG_FRAMEWORK)
            continue;
        oom_hits_add(&block->hits, sig, set->items[sig].kind);
    }
}

static int on_hit(unsigned int id, unsigned long long from, unsigned long long to,
                  unsigned int flags, void *context)
{
    struct block *block = context;
    const struct oom_signatures *set = block->classifier->set;
    const struct fragment *fragment = &set->fragments[id];

    (void)from;
    (void)flags;
    to += block->from;
    if (to <= block->done)
        return 0;
    /* What the last piece says decides whether progress is waited for. */
    if (block->piece_start != SIZE_MAX && to > block->piece_end) {
        piece_close(block);
        if (block->calm && progress_wanted(block->stream))
            return 1; /* it is searched again from there */
    }
    for (uint32_t i = 0; i < fragment->count; i++) {
        const struct literal *literal = &set->literals[fragment->first + i];
        if (oom_literal_is_at(literal, block->bytes, block->length, (size_t)to))
            literal_found(block, literal, (size_t)to);
    }
    return 0;
}

/* --- blocks ---------------------------------------------------------------------------------- */

static int keep_tail(struct stream *stream, const char *bytes, size_t length)
{
    if (!stream->tail) {
        stream->tail = malloc(TAIL_BYTES);
        if (!stream->tail)
            return -1;
    }
    if (length >= TAIL_BYTES) {
        memcpy(stream->tail, bytes + length - TAIL_BYTES, TAIL_BYTES);
        stream->tail_length = TAIL_BYTES;
        return 0;
    }
    size_t keep = TAIL_BYTES - length;
    if (stream->tail_length > keep) {
        memmove(stream->tail, stream->tail + stream->tail_length - keep, keep);
        stream->tail_length = keep;
    }
    memcpy(stream->tail + stream->tail_length, bytes, length);
    stream->tail_length += length;
    return 0;
}

/* Look-alikes are for the account; enough of them tell the story. Those that stand on a line with
 * a failure are asked then. Few logs have so many. */
static const hs_database_t *essential(struct oom_classifier *classifier)
{
    hs_database_t **essential = &classifier->essential;

    if (!*essential &&
        oom_fragments_compile(classifier->set, FRAGMENTS_ESSENTIAL, essential, NULL) == 0 &&
        *essential)
        hs_alloc_scratch(*essential, &classifier->scratch); /* without it the search fails */
    return *essential ? *essential : classifier->set->database;
}

/* Texts of progress are short, and so cost the most. */
static const hs_database_t *database_for(struct block *block)
{
    const struct oom_signatures *set = block->classifier->set;

    if (block->stream->skimming)
        return oom_tail_frameworks(block->classifier);
    if (block->classifier->look_alikes >= LOOK_ALIKES_SEARCHED)
        return essential(block->classifier);
    block->calm = !progress_wanted(block->stream);
    return block->calm ? set->calm : set->database;
}

/* Searches what is behind `done`. */
static int search(struct block *block, const hs_database_t *database)
{
    block->from = block->done > FRAGMENT_MAX ? block->done - FRAGMENT_MAX : 0;
    const char *bytes = block->bytes + block->from;
    const unsigned int length = (unsigned int)(block->length - block->from);
    hs_error_t rc = database ? hs_scan_vector(database, &bytes, &length, 1, 0,
                                              block->classifier->scratch, on_hit, block)
                             : HS_SUCCESS;
    piece_close(block);
    return rc == HS_SUCCESS || rc == HS_SCAN_TERMINATED ? 0 : -1;
}

int oom_block_scan(struct oom_classifier *classifier, struct stream *stream, const char *bytes,
                   size_t length)
{
    struct block block = {
        .classifier = classifier,
        .stream = stream,
        .bytes = bytes,
        .length = length,
        .line = stream->line,
        .piece_start = SIZE_MAX,
    };

    if (stream->wants_after)
        oom_events_feed_after(classifier, stream, bytes, length);
    if (stream->folded.length > 0)
        oom_note_folded(&block, 0);
    if (search(&block, database_for(&block)))
        return -1;
    if (block.calm && progress_wanted(stream)) {
        block.calm = false;
        block.done = block.piece_end;
        if (search(&block, classifier->set->database))
            return -1;
    }
    stream->line = oom_block_line_at(&block, length);
    return keep_tail(stream, bytes, length);
}
