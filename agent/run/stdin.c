/* SPDX-License-Identifier: Apache-2.0
 *
 * Standard input belongs to every attempt: a file is read again from where it stood, and a shell
 * that is given its script there (`oomrun -- bash -s < train.sh`, a here-document) is given the
 * rewritten one. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/run/run.h"

enum { MAX_STDIN_BYTES = 1024 * 1024, WRITER_DONE_MS = 300 };

/* The arguments of a script that the shell reads from standard input; NULL: it does not. */
static char **script_args(char **argv)
{
    int i = 1;

    for (; argv[i] && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "-s") == 0 || strcmp(argv[i], "--") == 0)
            return strcmp(argv[i], "-s") == 0 || !argv[i + 1] ? argv + i + 1 : NULL;
        if (argv[i][1] == '-' ? strcmp(argv[i], "--login") != 0
                              : strpbrk(argv[i], "ciOo") || !argv[i][1])
            return NULL;
    }
    return argv[i] ? NULL : argv + i;
}

/* What is there may be taken when nothing is to follow: a file, or a pipe without a writer. */
static bool is_complete(const struct stat *st)
{
    struct pollfd wait = {.fd = 0, .events = 0};

    if (S_ISREG(st->st_mode))
        return st->st_size <= MAX_STDIN_BYTES;
    return S_ISFIFO(st->st_mode) && poll(&wait, 1, WRITER_DONE_MS) == 1 &&
           (wait.revents & POLLHUP) != 0;
}

static char *read_all(size_t *length)
{
    char *bytes = malloc(MAX_STDIN_BYTES + 1);
    ssize_t n = 1;

    *length = 0;
    while (bytes && n != 0 && *length < MAX_STDIN_BYTES) {
        n = read(0, bytes + *length, MAX_STDIN_BYTES - *length);
        if (n < 0 && errno != EINTR)
            break;
        *length += n > 0 ? (size_t)n : 0;
    }
    if (bytes)
        bytes[*length] = '\0';
    return bytes;
}

int launch_feed(struct launch *launch, const char *bytes, size_t length, struct oom_error *err)
{
    int fd = memfd_create("script", MFD_CLOEXEC);
    size_t done = 0;

    while (fd >= 0 && done < length) {
        ssize_t n = write(fd, bytes + done, length - done);
        if (n < 0 && errno != EINTR)
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    if (fd < 0 || done < length || lseek(fd, 0, SEEK_SET) != 0 || dup2(fd, 0) < 0) {
        if (fd >= 0)
            close(fd);
        return oom_errorf(err, "cannot hand the script to the shell: %s", strerror(errno));
    }
    close(fd);
    launch->stdin_start = 0;
    return 0;
}

int launch_take_stdin(struct launch *launch, struct oom_error *err)
{
    struct stat st;

    launch->stdin_start = -1;
    if (fstat(0, &st) < 0)
        return 0;
    char **args = launch->script_index < 0 && launch_is_shell(launch->argv[0])
                      ? script_args(launch->argv)
                      : NULL;
    if (S_ISREG(st.st_mode))
        launch->stdin_start = lseek(0, 0, SEEK_CUR);
    if (!args || !is_complete(&st))
        return 0;
    launch->script_bytes = read_all(&launch->script_length);
    if (!launch->script_bytes)
        return oom_errorf(err, "out of memory");
    launch->stdin_args = args;
    return launch_feed(launch, launch->script_bytes, launch->script_length, err);
}

void launch_rewind(const struct launch *launch)
{
    if (launch->stdin_start >= 0)
        lseek(0, launch->stdin_start, SEEK_SET);
}
