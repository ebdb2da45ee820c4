/* SPDX-License-Identifier: Apache-2.0
 *
 * The log of an attempt whose supervisor is gone: what that attempt wrote, and nothing that an
 * earlier one left in the same file. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/lib/jsonget.h"
#include "agent/run/after.h"

enum { MAX_LOG_TAIL_BYTES = 64 * 1024 * 1024 };

/* Where the supervisor said that its attempt began; 0 when it did not. */
static off_t recorded_offset(const json_t *logs, const char *path)
{
    const json_t *log;
    size_t i;

    json_array_foreach(logs, i, log)
    {
        if (strcmp(json_get_string(log, "path", ""), path) == 0)
            return (off_t)json_get_int(log, "offset", 0);
    }
    return 0;
}

/* The attempt's part of the log: from where it began, and behind the last line in which a
 * supervisor announced another start. */
static off_t attempt_offset(int fd, off_t size, off_t recorded, int64_t *first_line)
{
    static const char marker[] = "oomrun: attempt ", tail[] = " of at most ";
    off_t start = size > MAX_LOG_TAIL_BYTES ? size - MAX_LOG_TAIL_BYTES : 0, found = start;
    int64_t line_number = 1;
    int copy = dup(fd);
    FILE *file = copy >= 0 ? fdopen(copy, "r") : NULL;
    char *line = NULL;
    size_t room = 0;

    *first_line = 1;
    if (!file || fseeko(file, start, SEEK_SET) < 0)
        goto out;
    for (ssize_t n; (n = getline(&line, &room, file)) > 0; line_number++) {
        off_t next = ftello(file);
        bool announced =
            strncmp(line, marker, sizeof(marker) - 1) == 0 && strstr(line, tail) != NULL;
        /* A file that was emptied since is shorter. */
        if (announced || (recorded <= size && next <= recorded)) {
            found = next;
            *first_line = line_number + 1;
        }
    }
out:
    free(line);
    if (file)
        fclose(file);
    else if (copy >= 0)
        close(copy);
    return found;
}

void after_feed_log(struct run *run, const char *path, const json_t *logs)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    char buffer[64 * 1024];
    int64_t first_line;

    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        off_t at = attempt_offset(fd, st.st_size, recorded_offset(logs, path), &first_line);
        int stream = oom_classifier_open(run->classifier, path, first_line);
        for (ssize_t n; (n = pread(fd, buffer, sizeof(buffer), at)) > 0; at += n)
            oom_classifier_feed(run->classifier, stream, buffer, (size_t)n);
    }
    close(fd);
}

void after_speak_into(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        dup2(fd, 2);
    if (fd >= 0)
        close(fd);
}
