/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/evidence/logs.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_BYTES      (128u * 1024) /* what the processor keeps near */
#define DECOMPRESSED_MAX (INT64_C(1) << 40)

static int read_some(int fd, char *buffer, size_t size, size_t *length)
{
    ssize_t n;

    do
        n = read(fd, buffer, size);
    while (n < 0 && errno == EINTR);
    *length = n > 0 ? (size_t)n : 0;
    return n < 0 ? -1 : 0;
}

/* --- plain ------------------------------------------------------------------------------------ */

static int feed_plain(struct oom_classifier *classifier, int stream, int fd, char *buffer,
                      size_t have, const char *name, struct oom_error *err)
{
    while (have > 0) {
        if (oom_classifier_feed(classifier, stream, buffer, have))
            return oom_errorf(err, "%s: out of memory", name);
        if (read_some(fd, buffer, CHUNK_BYTES, &have))
            return oom_errorf(err, "cannot read %s: %s", name, strerror(errno));
    }
    return 0;
}

/* --- compressed ------------------------------------------------------------------------------ */

struct source {
    int fd;
    char *buffer;
    size_t have; /* bytes read before the format was known */
};

static la_ssize_t source_read(struct archive *archive, void *data, const void **bytes)
{
    struct source *source = data;

    if (source->have == 0 && read_some(source->fd, source->buffer, CHUNK_BYTES, &source->have)) {
        archive_set_error(archive, errno, "%s", strerror(errno));
        return -1;
    }
    *bytes = source->buffer;
    la_ssize_t n = (la_ssize_t)source->have;
    source->have = 0;
    return n;
}

static int feed_archive(struct oom_classifier *classifier, int stream, struct archive *archive,
                        const char *name, struct oom_error *err)
{
    struct archive_entry *entry;
    char *buffer = malloc(CHUNK_BYTES);
    int64_t total = 0;
    int rc = -1;

    if (!buffer)
        return oom_errorf(err, "%s: out of memory", name);
    if (archive_read_next_header(archive, &entry) != ARCHIVE_OK) {
        oom_errorf(err, "%s: cannot decompress: %s", name, archive_error_string(archive));
        goto out;
    }
    for (;;) {
        la_ssize_t n = archive_read_data(archive, buffer, CHUNK_BYTES);
        if (n == 0)
            break;
        /* A truncated file still holds what was written before: a killed job leaves such. */
        if (n < 0 && total > 0)
            break;
        if (n < 0) {
            oom_errorf(err, "%s: cannot decompress: %s", name, archive_error_string(archive));
            goto out;
        }
        total += n;
        if (total > DECOMPRESSED_MAX) {
            oom_errorf(err, "%s: more than 1 TiB when decompressed", name);
            goto out;
        }
        if (oom_classifier_feed(classifier, stream, buffer, (size_t)n)) {
            oom_errorf(err, "%s: out of memory", name);
            goto out;
        }
    }
    rc = 0;
out:
    free(buffer);
    return rc;
}

static int feed_compressed(struct oom_classifier *classifier, int stream, int fd, char *buffer,
                           size_t have, const char *name, struct oom_error *err)
{
    struct source source = {fd, buffer, have};
    struct archive *archive = archive_read_new();
    int rc = -1;

    if (!archive)
        return oom_errorf(err, "%s: out of memory", name);
    archive_read_support_filter_gzip(archive);
    archive_read_support_filter_bzip2(archive);
    archive_read_support_filter_xz(archive);
    archive_read_support_filter_zstd(archive);
    archive_read_support_filter_lz4(archive);
    archive_read_support_format_raw(archive);
    if (archive_read_open(archive, &source, NULL, source_read, NULL) != ARCHIVE_OK)
        oom_errorf(err, "%s: cannot decompress: %s", name, archive_error_string(archive));
    else
        rc = feed_archive(classifier, stream, archive, name, err);
    archive_read_free(archive);
    return rc;
}

static int is_compressed(const char *bytes, size_t length)
{
    static const struct {
        const char *magic;
        size_t length;
    } magics[] = {
        {"\x1f\x8b", 2},
        {"\x28\xb5\x2f\xfd", 4},
        {"\xfd"
         "7zXZ\0",
         6},
        {"BZh", 3},
        {"\x04\x22\x4d\x18", 4},
    };

    for (size_t i = 0; i < sizeof(magics) / sizeof(*magics); i++)
        if (length >= magics[i].length && memcmp(bytes, magics[i].magic, magics[i].length) == 0)
            return 1;
    return 0;
}

/* --- opening --------------------------------------------------------------------------------- */

static int open_log(const char *path, int flags, struct oom_error *err)
{
    struct stat st;
    /* Non-blocking so that a pipe in place of the log cannot hold a daemon. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY |
                            (flags & LOGS_NO_SYMLINK ? O_NOFOLLOW : 0));

    if (fd < 0)
        return oom_errorf(err, "cannot open %s: %s", path, strerror(errno));
    bool known = fstat(fd, &st) == 0;
    if (known && S_ISFIFO(st.st_mode) && (flags & LOGS_PIPES)) {
        fcntl(fd, F_SETFL, 0); /* wait for what comes */
        return fd;
    }
    if (!known || !S_ISREG(st.st_mode)) {
        close(fd);
        return oom_errorf(err,
                          known && S_ISDIR(st.st_mode) ? "%s is a directory: name the logs in it"
                                                       : "%s is not a regular file",
                          path);
    }
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return fd;
}

int logs_feed(struct oom_classifier *classifier, const char *path, int before, int flags,
              struct oom_error *err)
{
    int from_stdin = strcmp(path, "-") == 0;
    int fd = from_stdin ? STDIN_FILENO : open_log(path, flags, err);
    char *buffer = malloc(CHUNK_BYTES);
    size_t have = 0;
    int rc = -1;

    if (fd < 0) {
        free(buffer);
        return -1;
    }
    const char *name = from_stdin ? "standard input" : path;
    int stream = -1;
    if (buffer)
        stream = before < 0 ? oom_classifier_open(classifier, from_stdin ? "-" : path, 1)
                            : oom_classifier_go_on(classifier, before, path);
    if (stream < 0)
        oom_errorf(err, "%s: out of memory, or more than 4096 logs", name);
    else if (read_some(fd, buffer, CHUNK_BYTES, &have))
        oom_errorf(err, "cannot read %s: %s", name, strerror(errno));
    else if (is_compressed(buffer, have))
        rc = feed_compressed(classifier, stream, fd, buffer, have, name, err);
    else
        rc = feed_plain(classifier, stream, fd, buffer, have, name, err);
    if (!from_stdin)
        close(fd);
    free(buffer);
    return rc ? -1 : stream;
}

/* --- the end first ------------------------------------------------------------------------------
 */

#define END_BYTES (INT64_C(32) << 20)

/* The first beginning of a line at or behind `at`, -1: none in a whole portion. */
static int64_t next_line(int fd, int64_t at, char *buffer)
{
    if (at <= 0)
        return 0;
    ssize_t n = pread(fd, buffer, CHUNK_BYTES, at - 1);
    const char *cut = n > 0 ? memchr(buffer, '\n', (size_t)n) : NULL;

    return cut ? at + (cut - buffer) : -1;
}

typedef int feed_function(struct oom_classifier *classifier, int stream, const void *bytes,
                          size_t length);

static int feed_range(struct oom_classifier *classifier, int stream, int fd, int64_t from,
                      int64_t to, feed_function *feed, char *buffer)
{
    while (from < to) {
        size_t want = to - from < (int64_t)CHUNK_BYTES ? (size_t)(to - from) : CHUNK_BYTES;
        ssize_t n = pread(fd, buffer, want, from);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        if (feed(classifier, stream, buffer, (size_t)n))
            return -1;
        from += n;
    }
    return 0;
}

static int64_t end_that_decides(const struct oom_signatures *set, int fd, int64_t size,
                                char *buffer)
{
    struct oom_classifier *classifier = oom_classifier_new(set);
    int64_t end = next_line(fd, size - END_BYTES, buffer);
    int stream = classifier ? oom_classifier_open(classifier, NULL, 1) : -1;
    bool decides =
        stream >= 0 && end > 0 && oom_classifier_skim(classifier, stream, NULL, 0) == 0 &&
        feed_range(classifier, stream, fd, end, size, oom_classifier_feed, buffer) == 0 &&
        oom_classifier_end_decides(classifier, stream);

    oom_classifier_free(classifier);
    return decides ? end : 0;
}

bool logs_is_long(const char *path)
{
    struct stat st;

    return strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
           st.st_size > LOGS_LONG_BYTES;
}

int64_t logs_end_that_decides(const struct oom_signatures *set, const char *path)
{
    struct stat st;
    int64_t end = 0;
    int fd = strcmp(path, "-") ? open_log(path, 0, NULL) : -1;
    char *buffer = malloc(CHUNK_BYTES);

    if (fd >= 0 && buffer && fstat(fd, &st) == 0 && st.st_size > LOGS_LONG_BYTES) {
        ssize_t n = pread(fd, buffer, CHUNK_BYTES, 0);
        if (n > 0 && !is_compressed(buffer, (size_t)n) && !oom_log_is_wide(buffer, (size_t)n))
            end = end_that_decides(set, fd, st.st_size, buffer);
    }
    free(buffer);
    if (fd >= 0)
        close(fd);
    return end;
}

int logs_feed_end_of(struct oom_classifier *classifier, int fd, const char *name, int64_t from,
                     int64_t end, struct oom_error *err)
{
    struct stat st;
    char *buffer = malloc(CHUNK_BYTES);
    int stream = buffer ? oom_classifier_open(classifier, name, 1) : -1;

    if (stream < 0) {
        free(buffer);
        return oom_errorf(err, "%s: out of memory, or more than 4096 logs", name);
    }
    int64_t line = next_line(fd, end, buffer);
    if (line >= 0)
        end = line;
    if (fstat(fd, &st) < 0 ||
        feed_range(classifier, stream, fd, from, end, oom_classifier_skim, buffer) ||
        feed_range(classifier, stream, fd, end, st.st_size, oom_classifier_feed, buffer)) {
        oom_errorf(err, "cannot read %s: %s", name, strerror(errno));
        stream = -1;
    }
    free(buffer);
    return stream;
}

int logs_feed_end(struct oom_classifier *classifier, const char *path, int64_t end,
                  struct oom_error *err)
{
    int fd = open_log(path, 0, err);

    if (fd < 0)
        return -1;
    int stream = logs_feed_end_of(classifier, fd, path, 0, end, err);
    close(fd);
    return stream;
}
