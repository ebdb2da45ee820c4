/* SPDX-License-Identifier: Apache-2.0
 *
 * "$(…)": text that is put together by echo, printf or cat of a heredoc is known, also in
 * functions; so is the script's own directory; a training command in one is walked; the rest is
 * not known. */
#include "policies/rewrite/rw.h"

#include <string.h>

static bool mentions(const char *bytes, size_t length, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        if (memmem(bytes, length, words[i], strlen(words[i])))
            return true;
    return false;
}

/* Its first word is a function of the script. */
static bool calls_function(struct rw *rw, const char *bytes, size_t length)
{
    size_t at = 0, stop;

    while (at < length && strchr(" \t\n", bytes[at]))
        at++;
    for (stop = at; stop < length && !strchr(" \t\n;|&<>()$\"'", bytes[stop]);)
        stop++;
    return stop > at && rw_function_find(rw, rw_strndup(&rw->arena, bytes + at, stop - at));
}

bool rw_capture_region(struct rw *rw, const struct rw_buf *outer, uint32_t start, uint32_t end,
                       struct rw_text *out)
{
    static const char *const makers[] = {"cat", "echo", "printf", NULL};
    static const char *const starters[] = {"python",  "torchrun", "accelerate", "deepspeed",
                                           "srun",    "ray job",  "-cli",       "sbatch",
                                           "axolotl", "trl ",     "uv run",     NULL};
    const char *bytes = outer->bytes + start;
    size_t length = end > start ? end - start : 0;
    bool maker = mentions(bytes, length, makers) || calls_function(rw, bytes, length);

    memset(out, 0, sizeof(*out));
    if (rw->depth >= 32 || !(maker || mentions(bytes, length, starters)))
        return false;
    struct rw_frag frag = {bytes, (uint32_t)length, RW_LITERAL, RW_RAW, outer, start, end, NULL,
                           false};
    struct rw_text text = {0};
    rw_text_push(rw, &text, &frag);
    struct rw_buf *buf = rw_text_buf(rw, &text, rw_hash(outer->key, UINT64_C(0x5c) + end));
    struct rw_capture *kept = rw->capture, own = {{0}, !maker};
    size_t mark = rw_trail_mark(rw);
    rw->depth++;
    rw->capture = &own;
    rw_walk_buf(rw, buf);
    rw->capture = kept;
    rw->depth--;
    rw->leaving = RW_GOES_ON;
    rw_trail_undo(rw, mark);
    *out = own.text;
    return !own.unknown;
}

void rw_expand_command(struct rw *rw, const struct rw_site *site, uint32_t start, uint32_t end,
                       struct rw_sink *sink)
{
    const char *bytes = site->buf->bytes + start;
    size_t length = end > start ? end - start : 0;
    const char *directory = rw_own_directory(rw, site->buf, bytes, length);
    struct rw_text out;

    if (directory) {
        rw_sink_derived(rw, sink, site, directory, strlen(directory));
        return;
    }
    if (!rw_capture_region(rw, site->buf, start, end, &out)) {
        rw_sink_unknown(rw, sink, site, false);
        return;
    }
    const char *string = rw_text_string(rw, &out);
    uint32_t stop = out.length;
    while (stop && string[stop - 1] == '\n')
        stop--;
    struct rw_text trimmed;
    rw_text_slice(rw, &out, 0, stop, &trimmed);
    struct rw_via via = {.buf = site->buf,
                         .start = site->start,
                         .end = site->end,
                         .quote = site->quote,
                         .name = "",
                         .instance = ++rw->instances,
                         .total = trimmed.length};
    rw_text_through(rw, &trimmed, &via);
    rw_sink_put(rw, sink, &trimmed, site->quote != RW_BARE);
}
