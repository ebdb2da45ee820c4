/* SPDX-License-Identifier: Apache-2.0 */
#include "restore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCRIPT_MAX_BYTES (64 << 20)
#define LAUNCHER_LINE    "/oomretry/oomstart\n"

/* The whole file, malloc'd. */
static char *read_script(int fd, size_t *length)
{
    struct stat st;
    char *bytes;
    size_t used = 0;

    if (fstat(fd, &st) != 0)
        return NULL;
    if (!S_ISREG(st.st_mode) || st.st_size > SCRIPT_MAX_BYTES) {
        errno = EFBIG;
        return NULL;
    }
    bytes = malloc((size_t)st.st_size + 1);
    while (bytes && used < (size_t)st.st_size) {
        ssize_t got = pread(fd, bytes + used, (size_t)st.st_size - used, (off_t)used);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got == 0 ? EIO : errno;
            free(bytes);
            return NULL;
        }
        used += (size_t)got;
    }
    *length = used;
    return bytes;
}

size_t restore_launcher_length(const char *bytes, size_t length)
{
    const char *end =
        length > 2 && memcmp(bytes, "#!", 2) == 0 ? memchr(bytes, '\n', length) : NULL;
    size_t line = end ? (size_t)(end - bytes) + 1 : 0, tail = strlen(LAUNCHER_LINE);

    return line > tail && memcmp(bytes + line - tail, LAUNCHER_LINE, tail) == 0 ? line : 0;
}

static int write_at(int fd, const char *bytes, size_t length)
{
    size_t done = 0;

    while (done < length) {
        ssize_t written = pwrite(fd, bytes + done, length - done, (off_t)done);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return -1;
        done += (size_t)written;
    }
    return 0;
}

static void close_keeping_errno(int fd)
{
    int saved = errno;

    close(fd);
    errno = saved;
}

int restore_script(const char *path)
{
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    size_t length = 0, skip;
    char *bytes;
    int rc = -1;

    if (fd < 0)
        return -1;
    bytes = read_script(fd, &length);
    if (bytes) {
        skip = restore_launcher_length(bytes, length);
        if (skip == 0)
            rc = 0;
        else if (write_at(fd, bytes + skip, length - skip) == 0)
            rc = ftruncate(fd, (off_t)(length - skip));
    }
    free(bytes);
    close_keeping_errno(fd);
    return rc;
}

int restore_copy(const char *path, char *copy, size_t size)
{
    const char *directory = getenv("TMPDIR");
    int from = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), to = -1, rc = -1;
    size_t length = 0, skip;
    char *bytes;

    if (from < 0)
        return -1;
    bytes = read_script(from, &length);
    close_keeping_errno(from);
    if (!bytes)
        return -1;
    if ((size_t)snprintf(copy, size, "%s/oomretry-script-XXXXXX",
                         directory && directory[0] == '/' ? directory : "/tmp") < size)
        to = mkostemp(copy, O_CLOEXEC);
    else
        errno = ENAMETOOLONG;
    if (to >= 0) {
        skip = restore_launcher_length(bytes, length);
        rc = write_at(to, bytes + skip, length - skip) == 0 ? fchmod(to, 0700) : -1;
        close_keeping_errno(to);
        if (rc != 0)
            (void)unlink(copy);
    }
    free(bytes);
    return rc;
}
