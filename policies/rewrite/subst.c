/* SPDX-License-Identifier: Apache-2.0
 *
 * "$(…)": text that is put together by echo, printf or cat of a heredoc is known; so is
 * the script's own directory; a training command in one is walked; the rest is not known. */
#include "policies/rewrite/rw.h"

#include <string.h>

static bool mentions(const char *bytes, size_t length, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        if (memmem(bytes, length, words[i], strlen(words[i])))
            return true;
    return false;
}

void rw_expand_command(struct rw *rw, const struct rw_site *site, uint32_t start, uint32_t end,
                       struct rw_sink *sink)
{
    static const char *const makers[] = {"cat", "echo", "printf", NULL};
    static const char *const starters[] = {"python",  "torchrun", "accelerate", "deepspeed",
                                           "srun",    "ray job",  "-cli",       "sbatch",
                                           "axolotl", "trl ",     "uv run",     NULL};
    const char *bytes = site->buf->bytes + start;
    size_t length = end > start ? end - start : 0;
    bool maker = mentions(bytes, length, makers);
    const char *directory = rw_own_directory(rw, site->buf, bytes, length);

    if (directory) {
        rw_sink_derived(rw, sink, site, directory, strlen(directory));
        return;
    }
    if (rw->depth < 32 && (maker || mentions(bytes, length, starters))) {
        struct rw_frag frag = {
            bytes, (uint32_t)length, RW_LITERAL, RW_RAW, site->buf, start, end, NULL, false};
        struct rw_text text = {0}, out;
        rw_text_push(rw, &text, &frag);
        struct rw_buf *buf = rw_text_buf(rw, &text, rw_hash(site->buf->key, UINT64_C(0x5c) + end));
        size_t mark = rw_trail_mark(rw);
        rw->depth++;
        bool known = maker && rw_output_of_buf(rw, buf, &out);
        if (!known)
            rw_walk_buf(rw, buf);
        rw->depth--;
        rw_trail_undo(rw, mark);
        if (known) {
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
            return;
        }
    }
    rw_sink_unknown(rw, sink, site, false);
}
