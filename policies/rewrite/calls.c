/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that the script sources or calls, changed in copies: each that is touched gets one, and
 * what names it (the script, or another such file, which is then touched itself) names the copy. */
#include "policies/rewrite/calls.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 8

void rw_note_call(struct rw *rw, const struct rw_buf *buf, const struct rw_text *path)
{
    if (!buf->name || buf->text)
        return;
    rw->calls =
        rw_more(&rw->arena, rw->calls, rw->call_count, &rw->call_capacity, sizeof(*rw->calls));
    rw->calls[rw->call_count++] = (struct rw_call){buf, path};
}

bool rw_is_side_script(const struct rw_buf *buf)
{
    return !buf->editable && !buf->text && buf->name;
}

static bool in_line(const char *line, size_t length, const char *word)
{
    return memmem(line, length, word, strlen(word)) != NULL;
}

/* A copy has another name, in the same directory. A script that takes more than the directory from
 * its own name ("$(basename "$0")" in a run's name) would do something else. */
static bool minds_its_name(const struct rw_buf *buf)
{
    static const char *const self[] = {"$0", "${0", "BASH_SOURCE"};
    static const char *const directory[] = {"dirname", "%/*"};

    for (uint32_t at = 0; at < buf->length;) {
        const char *line = buf->bytes + at;
        const char *newline = memchr(line, '\n', buf->length - at);
        size_t length = newline ? (size_t)(newline - line) : buf->length - at;
        size_t blanks = strspn(line, " \t");
        bool named = false, only_directory = false;
        for (size_t i = 0; i < 3 && (blanks >= length || line[blanks] != '#'); i++)
            named |= in_line(line, length, self[i]);
        for (size_t i = 0; i < 2; i++)
            only_directory |= in_line(line, length, directory[i]);
        if (named && (!only_directory || in_line(line, length, "basename")))
            return true;
        at += (uint32_t)length + 1;
    }
    return false;
}

static const char *copy_name(struct rw *rw, struct rw_copies *copies, const struct rw_buf *buf)
{
    for (const struct rw_copy *copy = copies->first; copy; copy = copy->next)
        if (copy->buf == buf)
            return copy->new_path;
    char *place = NULL;
    if (rw->source->place_copy && !minds_its_name(buf))
        place = rw->source->place_copy(rw->source->place_copy_arg, buf->name, true);
    struct rw_copy *copy = rw_alloc(&rw->arena, sizeof(*copy));
    copy->buf = buf;
    copy->new_path = place ? rw_strndup(&rw->arena, place, strlen(place)) : NULL;
    copy->next = copies->first;
    copies->first = copy;
    free(place);
    return copy->new_path;
}

static bool reachable(const struct rw_changes *way)
{
    for (size_t i = 0; i < way->count; i++)
        if (!way->items[i].buf->editable && !rw_is_side_script(way->items[i].buf))
            return false;
    return way->count > 0;
}

/* Every call of the file names the copy. */
static bool rename_calls(struct rw *rw, const struct rw_buf *buf, const char *new_path,
                         struct rw_changes *all)
{
    bool any = false;

    for (size_t i = 0; i < rw->call_count; i++) {
        struct rw_places places = {0};
        size_t way = 0;
        if (rw->calls[i].buf != buf)
            continue;
        rw_places_replace(rw, rw->calls[i].path, new_path, &places);
        while (way < places.count && !reachable(&places.options[way]))
            way++;
        if (way == places.count)
            return false;
        for (size_t k = 0; k < places.options[way].count; k++)
            if (!rw_changes_add(rw, all, &places.options[way].items[k]))
                return false;
        any = true;
    }
    return any;
}

static bool renamed(const struct rw_buf *const *done, size_t count, const struct rw_buf *buf)
{
    for (size_t i = 0; i < count; i++)
        if (done[i] == buf)
            return true;
    return false;
}

bool rw_copies_follow(struct rw *rw, struct rw_copies *copies, struct rw_changes *all)
{
    const struct rw_buf *done[MAX_DEPTH];
    size_t count = 0;

    /* What is renamed is added to the changes, and may lie in a file that is not renamed yet. */
    for (size_t i = 0; i < all->count; i++) {
        const struct rw_buf *buf = all->items[i].buf;
        if (buf->editable || renamed(done, count, buf))
            continue;
        const char *new_path =
            count < MAX_DEPTH && rw_is_side_script(buf) ? copy_name(rw, copies, buf) : NULL;
        if (!new_path || !rename_calls(rw, buf, new_path, all))
            return false;
        done[count++] = buf;
    }
    for (size_t i = 0; i < count; i++) {
        struct rw_overlay *overlay = rw_alloc(&rw->arena, sizeof(*overlay));
        overlay->buf = done[i];
        overlay->path = copy_name(rw, copies, done[i]);
        overlay->bytes = rw_changes_apply(rw, all, done[i], &overlay->length);
        overlay->next = all->overlay;
        all->overlay = overlay;
    }
    return true;
}
