/* SPDX-License-Identifier: Apache-2.0 */
#include "restore.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
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

/* Where the job's files may not grow, that is an error and no signal. */
static int write_at(int fd, const char *bytes, size_t length)
{
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    size_t done = 0;

    while (done < length) {
        ssize_t written = pwrite(fd, bytes + done, length - done, (off_t)done);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            break;
        done += (size_t)written;
    }
    (void)signal(SIGXFSZ, before);
    return done == length ? 0 : -1;
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
    if (bytes && rc != 0) {
        int saved = errno;

        /* What could be written over can be written back. */
        (void)write_at(fd, bytes, length);
        errno = saved;
    }
    free(bytes);
    close_keeping_errno(fd);
    return rc;
}

static int write_copy(const char *directory, const char *bytes, size_t length, char *copy,
                      size_t size)
{
    int fd = -1, rc;

    if ((size_t)snprintf(copy, size, "%s/oomretry-script-XXXXXX", directory) < size)
        fd = mkostemp(copy, O_CLOEXEC);
    if (fd < 0)
        return -1;
    rc = write_at(fd, bytes, length) == 0 ? fchmod(fd, 0700) : -1;
    if (close(fd) != 0 || rc != 0) {
        (void)unlink(copy);
        return -1;
    }
    return 0;
}

int restore_copy(const char *path, char *copy, size_t size)
{
    const char *directory = getenv("TMPDIR");
    int from = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), rc = -1;
    size_t length = 0, skip;
    char *bytes;

    if (from < 0)
        return -1;
    bytes = read_script(from, &length);
    close_keeping_errno(from);
    if (!bytes)
        return -1;
    skip = restore_launcher_length(bytes, length);
    if (directory && directory[0] == '/')
        rc = write_copy(directory, bytes + skip, length - skip, copy, size);
    if (rc != 0)
        rc = write_copy("/tmp", bytes + skip, length - skip, copy, size);
    free(bytes);
    return rc;
}

/* As the kernel reads the first line: the interpreter, and the rest of the line is one argument. */
static void exec_by(char *line, char **argv)
{
    static const char blanks[] = " \t";
    size_t count = 0, words = 0;
    char *interpreter, *argument, *end, **with;

    line[strcspn(line, "\n")] = '\0';
    for (end = line + strlen(line); end > line && strchr(" \t\r", end[-1]); end--)
        end[-1] = '\0';
    interpreter = line + strspn(line, blanks);
    argument = interpreter + strcspn(interpreter, blanks);
    if (*argument)
        *argument++ = '\0';
    argument += strspn(argument, blanks);
    while (argv[count])
        count++;
    with = calloc(count + 3, sizeof(*with));
    if (!with)
        return;
    with[words++] = interpreter;
    if (*argument)
        with[words++] = argument;
    memcpy(with + words, argv, sizeof(*with) * count);
    execv(interpreter, with);
    free(with);
}

/* Of a script that cannot be restored: to its interpreter the launcher's line is a comment. */
static void exec_interpreter(char **argv)
{
    int fd = open(argv[0], O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    size_t length = 0, skip;
    char *bytes;

    if (fd < 0)
        return;
    bytes = read_script(fd, &length);
    close_keeping_errno(fd);
    if (!bytes)
        return;
    bytes[length] = '\0';
    skip = restore_launcher_length(bytes, length);
    errno = ENOEXEC;
    if (strncmp(bytes + skip, "#!", 2) == 0)
        exec_by(bytes + skip + 2, argv);
    free(bytes);
}

void restore_and_exec(char **argv)
{
    char copy[PATH_MAX], *script = argv[0];

    if (restore_script(script) == 0) {
        execv(script, argv);
        return;
    }
    if (restore_copy(script, copy, sizeof(copy)) == 0) {
        argv[0] = copy;
        execv(copy, argv);
        (void)unlink(copy); /* programs may not be executed there */
        argv[0] = script;
    }
    exec_interpreter(argv);
}
