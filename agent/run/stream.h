/* SPDX-License-Identifier: Apache-2.0
 *
 * One of the command's two output streams.
 *
 * follow.c: it goes to a file, which is read again.
 * relay.c: it goes through this process. */
#ifndef AGENT_RUN_STREAM_H
#define AGENT_RUN_STREAM_H

#include <limits.h>
#include <sys/stat.h>

#include "agent/run/beginning.h"
#include "agent/run/run.h"

enum { STREAM_BYTES = 64 * 1024 };

struct stream {
    int fd;       /* 1 or 2: ours, where the bytes finally go */
    int child_fd; /* what the child gets as `fd`; -1: our own */
    int read_fd;  /* of the pipe or terminal, or the followed file */
    bool relay, terminal, append;
    off_t offset;  /* of the followed file */
    int64_t lines; /* line feeds before offset, or of this attempt */
    int number;    /* of the classifier's stream */
    char name[PATH_MAX];
    struct event *event;        /* there is something to relay */
    struct event *writable;     /* the reader takes more */
    char waiting[STREAM_BYTES]; /* read, not yet written */
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

/* What has been read goes to the classifier. */
void stream_feed(struct stream *stream, const char *bytes, size_t length);

/* --- follow.c --- */

/* False: it is no file that can be read again. */
bool follow_open(struct stream *stream, const struct stat *st);

/* Reads what has been written since, at most so many bytes of it. */
void follow_some(struct stream *stream, off_t most);
void follow_close(struct stream *stream);

/* --- relay.c --- */

/* A new pipe or terminal for the command, whose bytes are passed on while the event loop runs. */
int relay_begin(struct stream *stream, struct oom_error *err);

/* The command has it now. */
void relay_started(struct stream *stream);

/* Passes on what is there, as long as the reader takes it; false when there may be more. */
bool relay_catch_up(struct stream *stream);

/* The command has ended and what it wrote is in the pipe; an orphan of it may go on for ever. A
 * terminal's bytes arrive a little later and are not counted before. */
void relay_last_words(struct stream *stream, bool cancelled);

/* The terminal that stands for ours gets its size. */
void relay_resize(const struct stream *stream);

/* Whoever still writes at the other end is told by SIGPIPE, as if the reader were its own. */
void relay_end(struct stream *stream);

#endif
