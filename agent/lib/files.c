/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lib/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int file_read(const char *path, size_t limit, char **bytes, size_t *length, struct oom_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    *bytes = NULL;
    *length = 0;
    if (fd < 0 || fstat(fd, &st) < 0) {
        oom_errorf(err, "cannot read %s: %s", path, strerror(errno));
        goto fail;
    }
    if (!S_ISREG(st.st_mode)) {
        oom_errorf(err, "cannot read %s: not a regular file", path);
        goto fail;
    }
    *bytes = malloc(limit + 1);
    if (!*bytes) {
        oom_errorf(err, "out of memory");
        goto fail;
    }
    while (*length < limit) {
        ssize_t n = read(fd, *bytes + *length, limit - *length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            oom_errorf(err, "cannot read %s: %s", path, strerror(errno));
            goto fail;
        }
        if (n == 0)
            break;
        *length += (size_t)n;
    }
    (*bytes)[*length] = '\0';
    char *fitted = realloc(*bytes, *length + 1);
    if (fitted)
        *bytes = fitted;
    close(fd);
    return st.st_size > (off_t)limit;
fail:
    if (fd >= 0)
        close(fd);
    free(*bytes);
    *bytes = NULL;
    return -1;
}

static int write_all(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t n = write(fd, bytes, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        bytes += n;
        length -= (size_t)n;
    }
    return 0;
}

/* A file server may take the bytes, and say only now that there is no room for them. */
static int close_written(int fd, int rc)
{
    int error = errno;

    if (close(fd) < 0 && rc == 0)
        return -1;
    errno = error;
    return rc;
}

int file_write_temporary(char *path, const char *bytes, size_t length, mode_t mode,
                         struct oom_error *err)
{
    int fd = mkostemp(path, O_CLOEXEC);

    if (fd < 0)
        return oom_errorf(err, "cannot make %s: %s", path, strerror(errno));
    int rc = write_all(fd, bytes, length);
    if (rc == 0)
        rc = fchmod(fd, mode);
    rc = close_written(fd, rc);
    if (rc < 0) {
        oom_errorf(err, "cannot write %s: %s", path, strerror(errno));
        unlink(path);
    }
    return rc;
}

int file_write_in_tmp(const char *name, const char *bytes, size_t length, mode_t mode, char *path,
                      size_t size, struct oom_error *err)
{
    const char *const directories[] = {getenv("TMPDIR"), "/tmp"};

    for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
        if (!directories[i] || !*directories[i])
            continue;
        int n = snprintf(path, size, "%s/%s-XXXXXX", directories[i], name);
        if (n < 0 || (size_t)n >= size)
            oom_errorf(err, "the path %s/%s is too long", directories[i], name);
        else if (file_write_temporary(path, bytes, length, mode, err) == 0)
            return 0;
    }
    path[0] = '\0';
    return -1;
}

int file_overwrite(const char *path, const char *bytes, size_t length, struct oom_error *err)
{
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return oom_errorf(err, "cannot write %s: %s", path, strerror(errno));
    int rc = close_written(fd, write_all(fd, bytes, length));
    if (rc < 0)
        oom_errorf(err, "cannot write %s: %s", path, strerror(errno));
    return rc;
}

int file_replace(const char *path, const char *bytes, size_t length, mode_t mode,
                 struct oom_error *err)
{
    const char *slash = strrchr(path, '/');
    int directory = slash ? (int)(slash - path + 1) : 0;
    char temporary[4096];

    /* Hidden: who looks at the directory takes no half of a file for a whole one. */
    int n =
        snprintf(temporary, sizeof(temporary), "%.*s.%s.XXXXXX", directory, path, path + directory);
    if (n < 0 || (size_t)n >= sizeof(temporary))
        return oom_errorf(err, "the path %s is too long", path);
    if (file_write_temporary(temporary, bytes, length, mode, err) < 0)
        return -1;
    if (rename(temporary, path) == 0)
        return 0;
    oom_errorf(err, "cannot rename to %s: %s", path, strerror(errno));
    unlink(temporary);
    return -1;
}

int file_copy_tail(const char *from, const char *to, off_t limit)
{
    struct stat st;
    int in = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int out = -1, rc = -1;

    if (in >= 0 && fstat(in, &st) == 0 && S_ISREG(st.st_mode)) {
        unlink(to);
        out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    if (out >= 0) {
        off_t at = st.st_size > limit ? st.st_size - limit : 0;
        ssize_t n = 1;
        while (at < st.st_size && n > 0)
            n = copy_file_range(in, &at, out, NULL, (size_t)(st.st_size - at), 0);
        rc = n > 0 || at >= st.st_size ? 0 : -1;
        /* File systems without it: by hand. */
        char buffer[64 * 1024];
        while (rc < 0 && at < st.st_size && (n = pread(in, buffer, sizeof(buffer), at)) > 0 &&
               write_all(out, buffer, (size_t)n) == 0)
            at += n;
        rc = at >= st.st_size ? 0 : -1;
    }
    if (in >= 0)
        close(in);
    if (out >= 0)
        rc = close_written(out, rc);
    if (out >= 0 && rc < 0)
        unlink(to);
    return rc;
}

char *file_directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct stat st;

    if (lstat(path, &st) < 0 || S_ISLNK(st.st_mode))
        return NULL;
    char *name = slash ? strndup(path, (size_t)(slash - path + 1)) : strdup(".");
    char *real = name ? realpath(name, NULL) : NULL;
    free(name);
    return real;
}
