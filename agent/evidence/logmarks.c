/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/evidence/logmarks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_MARKS = 1024, TAIL_BYTES = 128 };

struct mark {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
    /* What stood before the mark: another text there is another log under the same name. */
    char tail[TAIL_BYTES];
    ssize_t tail_length;
};

struct logmarks {
    struct mark *items;
    int count;
};

struct logmarks *logmarks_new(void)
{
    return calloc(1, sizeof(struct logmarks));
}

void logmarks_clear(struct logmarks *marks)
{
    free(marks->items);
    *marks = (struct logmarks){NULL, 0};
}

void logmarks_free(struct logmarks *marks)
{
    if (!marks)
        return;
    logmarks_clear(marks);
    free(marks);
}

static ssize_t read_tail(int fd, off_t end, char *out)
{
    off_t from = end > TAIL_BYTES ? end - TAIL_BYTES : 0;

    return pread(fd, out, (size_t)(end - from), from);
}

bool logmarks_add(struct logmarks *marks, int fd, const struct stat *st)
{
    if (marks->count >= MAX_MARKS)
        return false;
    struct mark *grown =
        reallocarray(marks->items, (size_t)marks->count + 1, sizeof(*marks->items));
    if (!grown)
        return false;
    marks->items = grown;
    struct mark *mark = &marks->items[marks->count++];
    *mark = (struct mark){
        .device = st->st_dev, .inode = st->st_ino, .size = st->st_size, .changed = st->st_mtim};
    mark->tail_length = read_tail(fd, st->st_size, mark->tail);
    return true;
}

static const struct mark *mark_of(const struct logmarks *marks, const struct stat *st)
{
    for (int i = 0; marks && i < marks->count; i++)
        if (marks->items[i].device == st->st_dev && marks->items[i].inode == st->st_ino)
            return &marks->items[i];
    return NULL;
}

off_t logmarks_start(const struct logmarks *marks, int fd, const struct stat *st)
{
    const struct mark *mark = mark_of(marks, st);
    char tail[TAIL_BYTES];

    if (!mark)
        return 0;
    if (st->st_size == mark->size && st->st_mtim.tv_sec == mark->changed.tv_sec &&
        st->st_mtim.tv_nsec == mark->changed.tv_nsec)
        return -1;
    /* Written to and not longer: it was emptied first. */
    if (st->st_size <= mark->size)
        return 0;
    ssize_t length = read_tail(fd, mark->size, tail);
    bool same = length == mark->tail_length &&
                (length <= 0 || memcmp(tail, mark->tail, (size_t)length) == 0);
    return same ? mark->size : 0;
}
