/* SPDX-License-Identifier: Apache-2.0
 *
 * A pipe or terminal cannot be read again, so its bytes pass through here, untouched. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "agent/run/stream.h"

enum {
    LAST_WORDS_MAX_BYTES = 1024 * 1024,
    LAST_WORDS_MS = 20,
    WRITE_PATIENCE_MS = 50,
    CATCH_UP_TURNS = 64,
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void relay_end(struct stream *stream)
{
    if (stream->event)
        event_free(stream->event);
    if (stream->writable)
        event_free(stream->writable);
    stream->event = stream->writable = NULL;
    stream->from = stream->to = 0;
    close_fd(&stream->read_fd);
    close_fd(&stream->child_fd);
}

static int open_pair(struct stream *stream, struct oom_error *err)
{
    int ends[2];

    stream->relay = true;
    stream->from = stream->to = 0;
    stream->terminal = isatty(stream->fd);
    if (stream->terminal) {
        struct winsize size;
        struct termios raw;
        if (openpty(&ends[0], &ends[1], NULL, NULL, NULL) < 0)
            return oom_errorf(err, "cannot make a pseudo terminal: %s", strerror(errno));
        if (ioctl(stream->fd, TIOCGWINSZ, &size) == 0)
            ioctl(ends[1], TIOCSWINSZ, &size);
        if (tcgetattr(ends[1], &raw) == 0) {
            raw.c_oflag &= ~(tcflag_t)OPOST; /* the outer terminal does that */
            tcsetattr(ends[1], TCSANOW, &raw);
        }
        fcntl(ends[0], F_SETFD, FD_CLOEXEC);
        fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    } else if (pipe2(ends, O_CLOEXEC) < 0) {
        return oom_errorf(err, "cannot make a pipe: %s", strerror(errno));
    }
    stream->read_fd = ends[0];
    stream->child_fd = ends[1];
    fcntl(stream->read_fd, F_SETFL, fcntl(stream->read_fd, F_GETFL) | O_NONBLOCK);
    return 0;
}

/* Writes what the reader takes within the time: a pipe that is ready takes PIPE_BUF bytes without
 * blocking, and a blocked oomrun could pass no signal on. False when something is left. */
static bool flush(struct stream *stream, int patience_ms)
{
    while (stream->from < stream->to) {
        struct pollfd ready = {stream->fd, POLLOUT, 0};
        size_t length = stream->to - stream->from;

        if (poll(&ready, 1, patience_ms) <= 0)
            return false;
        ssize_t n = write(stream->fd, stream->waiting + stream->from,
                          length < PIPE_BUF ? length : PIPE_BUF);
        if (n < 0 && errno == EPIPE) {
            relay_end(stream);
            return true;
        }
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            n = (ssize_t)length; /* a full disk: nobody could be told */
        if (n > 0)
            stream->from += (size_t)n;
    }
    return true;
}

/* What read(2) says; at the end of the input there is nothing more to watch. */
static ssize_t take(struct stream *stream)
{
    ssize_t n = read(stream->read_fd, stream->waiting, sizeof(stream->waiting));

    if (n > 0) {
        stream->from = 0;
        stream->to = (size_t)n;
        stream_feed(stream, stream->waiting, (size_t)n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        if (stream->event)
            event_del(stream->event); /* the end, or EIO of a terminal without a writer */
    }
    return n;
}

/* A reader that is slow makes the command wait, not oomrun. */
static void relay_some(struct stream *stream)
{
    if (flush(stream, 0))
        return;
    event_del(stream->event);
    event_add(stream->writable, NULL);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    if (take(arg) > 0)
        relay_some(arg);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct stream *stream = arg;

    (void)fd;
    (void)what;
    event_add(stream->event, NULL);
    relay_some(stream);
}

bool relay_catch_up(struct stream *stream)
{
    struct pollfd more = {stream->read_fd, POLLIN, 0};

    for (int i = 0; i < CATCH_UP_TURNS && stream->from == stream->to; i++) {
        if (stream->read_fd < 0 || poll(&more, 1, 0) <= 0 || take(stream) <= 0)
            return true;
        relay_some(stream);
    }
    return false;
}

void relay_last_words(struct stream *stream, bool cancelled)
{
    int left = LAST_WORDS_MAX_BYTES;

    if (!stream->terminal && ioctl(stream->read_fd, FIONREAD, &left) < 0)
        return;
    for (;;) {
        while (!flush(stream, WRITE_PATIENCE_MS))
            if (cancelled || cancel_pending())
                return;
        struct pollfd more = {stream->read_fd, POLLIN, 0};
        if (left <= 0 || stream->read_fd < 0 ||
            (stream->terminal && poll(&more, 1, LAST_WORDS_MS) <= 0))
            return;
        ssize_t n = take(stream);
        if (n <= 0)
            return;
        left -= (int)n;
    }
}

int relay_begin(struct stream *stream, struct oom_error *err)
{
    if (open_pair(stream, err) < 0)
        return -1;
    stream->event =
        event_new(stream->output->base, stream->read_fd, EV_READ | EV_PERSIST, on_readable, stream);
    stream->writable = event_new(stream->output->base, stream->fd, EV_WRITE, on_writable, stream);
    if (!stream->event || !stream->writable || event_add(stream->event, NULL) < 0)
        return oom_errorf(err, "cannot watch the command's output");
    return 0;
}

void relay_started(struct stream *stream)
{
    close_fd(&stream->child_fd);
}

void relay_resize(const struct stream *stream)
{
    struct winsize size;

    if (stream->terminal && stream->read_fd >= 0 && ioctl(stream->fd, TIOCGWINSZ, &size) == 0)
        ioctl(stream->read_fd, TIOCSWINSZ, &size);
}
