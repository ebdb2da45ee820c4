/* SPDX-License-Identifier: Apache-2.0
 *
 * Standard output and error of the attempts: both streams together. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/run/stream.h"
#include "policies/jsontext.h"

enum { FOLLOW_MAX_BYTES = 64 * 1024 * 1024 }; /* in one go: signals are waiting meanwhile */

static bool same_place(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_rdev == b->st_rdev;
}

static void name_of(struct stream *stream)
{
    char link[64];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", stream->fd);
    ssize_t n = readlink(link, stream->name, sizeof(stream->name) - 1);
    stream->name[n > 0 ? n : 0] = '\0';
    if (stream->relay || stream->name[0] != '/')
        strcpy(stream->name, stream->fd == 1 ? "standard output" : "standard error");
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
        stream->relay = !follow_open(stream, &st[i]);
        name_of(stream);
    }
    return output;
}

void output_close(struct output *output)
{
    if (!output)
        return;
    for (int i = 0; i < 2; i++) {
        struct stream *stream = &output->streams[i];
        if (stream->relay)
            relay_end(stream);
        else
            follow_close(stream);
        beginning_free(&stream->beginning);
    }
    free(output);
}

const char *output_beginning(const struct output *output, int i, size_t *length)
{
    *length = output && i < output->count ? output->streams[i].beginning.length : 0;
    return *length ? output->streams[i].beginning.bytes : NULL;
}

void stream_feed(struct stream *stream, const char *bytes, size_t length)
{
    struct output *output = stream->output;

    for (size_t i = 0; i < length; i++)
        stream->lines += bytes[i] == '\n';
    output->fresh_bytes += (int64_t)length;
    beginning_add(&stream->beginning, bytes, length);
    if (output->classifier)
        oom_classifier_feed(output->classifier, stream->number, bytes, length);
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
        stream->beginning.length = 0;
        if (stream->relay)
            stream->lines = 0;
        stream->number = oom_classifier_open(classifier, stream->name, stream->lines + 1);
        if (stream->number < 0)
            return oom_errorf(err, "out of memory");
        if (!stream->relay)
            continue;
        relay_end(stream);
        if (relay_begin(stream, err) < 0)
            return -1;
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
        relay_started(&output->streams[i]);
}

bool output_catch_up(struct output *output)
{
    bool all = true;

    for (int i = 0; i < output->count; i++) {
        struct stream *stream = &output->streams[i];
        if (stream->relay)
            all &= relay_catch_up(stream);
        else
            follow_some(stream, FOLLOW_MAX_BYTES);
    }
    return all;
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
            relay_last_words(stream, cancelled);
    }
}

void output_resize(const struct output *output)
{
    for (int i = 0; i < output->count; i++)
        if (output->streams[i].relay)
            relay_resize(&output->streams[i]);
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

const char *output_name_of(const struct output *output, int i)
{
    return i < output->count ? output->streams[i].name : "";
}

int output_stream(const struct output *output, const char *name)
{
    for (int i = 0; output && name && i < output->count; i++)
        if (strcmp(output->streams[i].name, name) == 0)
            return i;
    return -1;
}

int64_t output_lines(const struct output *output, int i)
{
    return i < output->count ? output->streams[i].lines : 0;
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
