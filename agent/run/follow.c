/* SPDX-License-Identifier: Apache-2.0
 *
 * A regular file is left to the command and read again through a second descriptor, from where the
 * attempt began: the log is the job's own output. */
#include <fcntl.h>
#include <unistd.h>

#include "agent/run/stream.h"

enum { COUNT_LINES_MAX_BYTES = 64 * 1024 * 1024 }; /* more would delay the start of the job */

/* Lines that the file holds already, so that line numbers are the file's own. */
static int64_t count_lines(int fd, off_t end)
{
    char buffer[STREAM_BYTES];
    int64_t lines = 0;

    if (end > COUNT_LINES_MAX_BYTES)
        return 0;
    for (off_t at = 0; at < end;) {
        size_t want = end - at < (off_t)sizeof(buffer) ? (size_t)(end - at) : sizeof(buffer);
        ssize_t n = pread(fd, buffer, want, at);
        if (n <= 0)
            break;
        for (ssize_t i = 0; i < n; i++)
            lines += buffer[i] == '\n';
        at += n;
    }
    return lines;
}

bool follow_open(struct stream *stream, const struct stat *st)
{
    char link[64];

    if (!S_ISREG(st->st_mode))
        return false;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", stream->fd);
    stream->read_fd = open(link, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (stream->read_fd < 0)
        return false;
    /* Without O_APPEND the next write goes to the descriptor's own offset. */
    off_t at = lseek(stream->fd, 0, SEEK_CUR);
    int flags = fcntl(stream->fd, F_GETFL);
    stream->append = flags >= 0 && (flags & O_APPEND);
    stream->offset = at < 0 || stream->append ? st->st_size : at;
    stream->lines = count_lines(stream->read_fd, stream->offset);
    return true;
}

void follow_some(struct stream *stream, off_t most)
{
    char buffer[STREAM_BYTES];
    struct stat st;

    /* To where the file ends now: somebody may write faster than this reads. */
    if (fstat(stream->read_fd, &st) < 0)
        return;
    if (st.st_size < stream->offset && stream->append)
        stream->offset = stream->lines = 0; /* the job has emptied its log */
    off_t end = st.st_size - stream->offset > most ? stream->offset + most : st.st_size;
    while (stream->offset < end) {
        size_t want =
            end - stream->offset < STREAM_BYTES ? (size_t)(end - stream->offset) : sizeof(buffer);
        ssize_t n = pread(stream->read_fd, buffer, want, stream->offset);
        if (n <= 0)
            return;
        stream->offset += n;
        stream_feed(stream, buffer, (size_t)n);
    }
}

void follow_close(struct stream *stream)
{
    if (stream->read_fd >= 0)
        close(stream->read_fd);
    stream->read_fd = -1;
}
