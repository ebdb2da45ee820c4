/* SPDX-License-Identifier: Apache-2.0
 *
 * Standard output and error of the attempt. A regular file is left to the command and read again
 * through a second descriptor, from where the attempt began: the log is the job's own output. A
 * pipe or terminal cannot be read again, so its bytes pass through here, untouched. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "agent/run/beginning.h"
#include "agent/run/run.h"
#include "policies/jsontext.h"

enum {
    COUNT_LINES_MAX_BYTES = 64 * 1024 * 1024, /* more would delay the start of the job */
    RELAY_BYTES = 64 * 1024,
    FOLLOW_MAX_BYTES = 64 * 1024 * 1024, /* in one go: signals are waiting meanwhile */
    LAST_WORDS_MAX_BYTES = 1024 * 1024,
    LAST_WORDS_MS = 20,
    WRITE_PATIENCE_MS = 50,
};

struct stream {
    int fd;       /* 1 or 2: ours, where the bytes finally go */
    int child_fd; /* what the child gets as `fd`; -1: our own */
    int read_fd;  /* of the pipe or terminal, or the followed file */
    bool relay, terminal, append;
    off_t offset;  /* of the followed file */
    int64_t lines; /* line feeds before offset */
    int number;    /* of the classifier's stream */
    char name[PATH_MAX];
    struct event *event;       /* there is something to relay */
    struct event *writable;    /* the reader takes more */
    char waiting[RELAY_BYTES]; /* read, not yet written */
    size_t from, to;
    struct beginning beginning; /* of this attempt's output */
    struct output *output;
};

struct output {
    struct event_base *base;
    struct oom_classifier *classifier;
    struct stream streams[2];
    int count; /* 1 when both go to the same place */
    int64_t fresh_bytes;
};

static void name_of(struct stream *stream)
{
    char link[64];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", stream->fd);
    ssize_t n = readlink(link, stream->name, sizeof(stream->name) - 1);
    stream->name[n > 0 ? n : 0] = '\0';
    if (stream->relay || stream->name[0] != '/')
        strcpy(stream->name, stream->fd == 1 ? "standard output" : "standard error");
}

/* Lines that the file holds already, so that line numbers are the file's own. */
static int64_t count_lines(int fd, off_t end)
{
    char buffer[RELAY_BYTES];
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

static bool follow(struct stream *stream, const struct stat *st)
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

static int make_relay(struct stream *stream, struct oom_error *err)
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

static bool same_place(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_rdev == b->st_rdev;
}

struct output *output_open(struct event_base *base, struct oom_error *err)
{
    struct output *output = calloc(1, sizeof(*output));
    struct stat st[2] = {{0}};

    if (!output) {
        oom_errorf(err, "out of memory");
        return NULL;
    }
    output->base = base;
    output->count =
        fstat(1, &st[0]) == 0 && fstat(2, &st[1]) == 0 && same_place(&st[0], &st[1]) ? 1 : 2;
    for (int i = 0; i < 2; i++)
        output->streams[i] = (struct stream){
            .fd = i + 1, .read_fd = -1, .child_fd = -1, .number = -1, .output = output};
    for (int i = 0; i < output->count; i++) {
        struct stream *stream = &output->streams[i];
        stream->relay = !follow(stream, &st[i]);
        name_of(stream);
    }
    return output;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Whoever still writes at the other end is told by SIGPIPE, as if the reader were its own. */
static void end_relay(struct stream *stream)
{
    if (!stream->relay)
        return;
    if (stream->event)
        event_free(stream->event);
    if (stream->writable)
        event_free(stream->writable);
    stream->event = stream->writable = NULL;
    stream->from = stream->to = 0;
    close_fd(&stream->read_fd);
    close_fd(&stream->child_fd);
}

void output_close(struct output *output)
{
    if (!output)
        return;
    for (int i = 0; i < 2; i++) {
        struct stream *stream = &output->streams[i];
        if (!stream->relay)
            close_fd(&stream->read_fd);
        end_relay(stream);
        beginning_free(&stream->beginning);
    }
    free(output);
}

const char *output_beginning(const struct output *output, int i, size_t *length)
{
    *length = output && i < output->count ? output->streams[i].beginning.length : 0;
    return *length ? output->streams[i].beginning.bytes : NULL;
}

static void feed(struct stream *stream, const char *bytes, size_t length)
{
    struct output *output = stream->output;

    output->fresh_bytes += (int64_t)length;
    beginning_add(&stream->beginning, bytes, length);
    if (output->classifier)
        oom_classifier_feed(output->classifier, stream->number, bytes, length);
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
            end_relay(stream);
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
        feed(stream, stream->waiting, (size_t)n);
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

/* The command has ended and what it wrote is in the pipe; an orphan of it may go on for ever. A
 * terminal's bytes arrive a little later and are not counted before. */
static void last_words(struct stream *stream, bool cancelled)
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

static void follow_some(struct stream *stream, off_t most)
{
    char buffer[RELAY_BYTES];
    struct stat st;

    /* To where the file ends now: somebody may write faster than this reads. */
    if (fstat(stream->read_fd, &st) < 0)
        return;
    if (st.st_size < stream->offset && stream->append)
        stream->offset = stream->lines = 0; /* the job has emptied its log */
    off_t end = st.st_size - stream->offset > most ? stream->offset + most : st.st_size;
    while (stream->offset < end) {
        size_t want =
            end - stream->offset < RELAY_BYTES ? (size_t)(end - stream->offset) : sizeof(buffer);
        ssize_t n = pread(stream->read_fd, buffer, want, stream->offset);
        if (n <= 0)
            return;
        for (ssize_t i = 0; i < n; i++)
            stream->lines += buffer[i] == '\n';
        stream->offset += n;
        feed(stream, buffer, (size_t)n);
    }
}

int output_begin(struct output *output, struct oom_classifier *classifier, struct oom_error *err)
{
    /* What was written between two attempts is oomrun's own words: not evidence. */
    output->classifier = NULL;
    for (int i = 0; i < output->count; i++)
        if (!output->streams[i].relay)
            follow_some(&output->streams[i], INT64_MAX);
    output->classifier = classifier;
    for (int i = 0; i < output->count; i++) {
        struct stream *stream = &output->streams[i];
        end_relay(stream);
        stream->beginning.length = 0;
        stream->number = oom_classifier_open(classifier, stream->name, stream->lines + 1);
        if (stream->number < 0)
            return oom_errorf(err, "out of memory");
        if (!stream->relay)
            continue;
        if (make_relay(stream, err) < 0)
            return -1;
        stream->event =
            event_new(output->base, stream->read_fd, EV_READ | EV_PERSIST, on_readable, stream);
        stream->writable = event_new(output->base, stream->fd, EV_WRITE, on_writable, stream);
        if (!stream->event || !stream->writable || event_add(stream->event, NULL) < 0)
            return oom_errorf(err, "cannot watch the command's output");
    }
    return 0;
}

void output_child(const struct output *output)
{
    for (int i = 0; i < output->count; i++)
        if (output->streams[i].child_fd >= 0)
            dup2(output->streams[i].child_fd, output->streams[i].fd);
    if (output->count == 1 && output->streams[0].child_fd >= 0)
        dup2(output->streams[0].child_fd, 2);
}

void output_parent(struct output *output)
{
    for (int i = 0; i < output->count; i++)
        close_fd(&output->streams[i].child_fd);
}

int64_t output_poll(struct output *output)
{
    for (int i = 0; i < output->count; i++)
        if (!output->streams[i].relay)
            follow_some(&output->streams[i], FOLLOW_MAX_BYTES);
    int64_t fresh = output->fresh_bytes;
    output->fresh_bytes = 0;
    return fresh;
}

void output_end(struct output *output, bool cancelled)
{
    for (int i = 0; i < output->count; i++) {
        struct stream *stream = &output->streams[i];
        if (!stream->relay)
            follow_some(stream, INT64_MAX);
        else if (stream->read_fd >= 0)
            last_words(stream, cancelled);
    }
}

void output_resize(const struct output *output)
{
    struct winsize size;

    for (int i = 0; i < output->count; i++) {
        const struct stream *stream = &output->streams[i];
        if (stream->relay && stream->terminal && stream->read_fd >= 0 &&
            ioctl(stream->fd, TIOCGWINSZ, &size) == 0)
            ioctl(stream->read_fd, TIOCSWINSZ, &size);
    }
}

bool output_relayed(const struct output *output)
{
    for (int i = 0; i < output->count; i++)
        if (output->streams[i].relay)
            return true;
    return false;
}

const char *output_name(const struct output *output)
{
    return output ? output->streams[0].name : "the job's output";
}

json_t *output_places(const struct output *output)
{
    json_t *places = json_array();

    for (int i = 0; output && i < output->count; i++) {
        const struct stream *stream = &output->streams[i];
        if (!stream->relay && stream->name[0] == '/')
            json_array_append_new(places,
                                  json_pack("{s:o, s:I}", "path", oom_json_text(stream->name),
                                            "offset", (json_int_t)stream->offset));
    }
    return places;
}
