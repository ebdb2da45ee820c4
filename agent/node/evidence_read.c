/* SPDX-License-Identifier: Apache-2.0
 *
 * As the owner of the session. He may put anything below its directory: only plain files are read,
 * no link is followed, and not much of each. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/lib/sealed.h"
#include "agent/node/evidence.h"
#include "agent/sched/ray.h"

enum {
    MAX_LOGS = 64,
    LOG_BYTES = 256 * 1024,         /* the end of a worker's log */
    RAYLET_BYTES = 4 * 1024 * 1024, /* the end of a raylet's, of which the job's records are kept */
    PIECE_BYTES = SEALED_MAX_BYTES - 1024,
    MAX_PACKAGE_BYTES = 96 * 1024 * 1024,
};

static int write_piece(FILE *out, const char *name, const char *bytes, size_t length)
{
    fprintf(out, "%s %zu\n", name, length);
    return fwrite(bytes, 1, length, out) == length && fflush(out) == 0 ? 0 : -1;
}

/* The end of a file, from the first whole line on. NULL: none, or not a plain file. */
static char *read_tail(int directory, const char *name, size_t limit, size_t *length)
{
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    char *bytes = NULL;
    struct stat st;

    *length = 0;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        off_t at = st.st_size > (off_t)limit ? st.st_size - (off_t)limit : 0;
        size_t skip = 0;
        ssize_t n = 1;
        bytes = malloc(limit + 1);
        while (bytes && *length < limit &&
               (n = pread(fd, bytes + *length, limit - *length, at + (off_t)*length)) > 0)
            *length += (size_t)n;
        if (bytes && at > 0) {
            const char *feed = memchr(bytes, '\n', *length);
            skip = feed ? (size_t)(feed - bytes) + 1 : 0;
            *length -= skip;
            memmove(bytes, bytes + skip, *length);
        }
    }
    if (fd >= 0)
        close(fd);
    return bytes;
}

/* --- logs ---------------------------------------------------------------------------------------
 */

struct found {
    char name[256];
    int64_t changed_ns;
};

static int by_change(const void *a, const void *b)
{
    int64_t x = ((const struct found *)a)->changed_ns, y = ((const struct found *)b)->changed_ns;

    return x < y ? 1 : x > y ? -1 : 0;
}

/* The job's workers' logs, those that were written last in front. */
static size_t find_workers(int logs, const char *job_id, struct found **out)
{
    struct found *found = NULL;
    size_t count = 0, room = 0;
    char pattern[160];
    int copy = dup(logs);
    DIR *directory = copy >= 0 ? fdopendir(copy) : NULL;

    snprintf(pattern, sizeof(pattern), "worker-*-%s-*.[eo][ru][rt]", job_id);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        struct stat st;
        if (fnmatch(pattern, entry->d_name, 0) != 0 || strpbrk(entry->d_name, " \n") ||
            fstatat(logs, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
            st.st_size == 0)
            continue;
        if (count == room) {
            struct found *grown = realloc(found, (room * 2 + 64) * sizeof(*found));
            if (!grown)
                break;
            room = room * 2 + 64;
            found = grown;
        }
        snprintf(found[count].name, sizeof(found[count].name), "%s", entry->d_name);
        found[count++].changed_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    }
    if (directory)
        closedir(directory);
    if (count)
        qsort(found, count, sizeof(*found), by_change);
    *out = found;
    return count < MAX_LOGS ? count : MAX_LOGS;
}

static int write_kills(FILE *out, int logs, const char *job_id)
{
    size_t length;
    char *bytes = read_tail(logs, "raylet.out", RAYLET_BYTES, &length);
    char *kills = bytes ? ray_raylet_kills(bytes, length, job_id) : NULL;
    size_t n = kills ? strlen(kills) : 0;
    int rc = n ? write_piece(out, "raylet.out", kills, n < LOG_BYTES ? n : LOG_BYTES) : 0;

    free(kills);
    free(bytes);
    return rc;
}

static int write_driver(FILE *out, const char *submission)
{
    int logs = open("logs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char name[320];
    size_t length = 0;

    snprintf(name, sizeof(name), "job-driver-%s.log", submission);
    char *bytes = logs >= 0 ? read_tail(logs, name, LOG_BYTES, &length) : NULL;
    int rc = bytes ? write_piece(out, name, bytes, length) : -1;
    free(bytes);
    if (logs >= 0)
        close(logs);
    return rc;
}

static int write_logs(FILE *out, const char *job_id)
{
    int logs = open("logs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct found *found;
    int rc = 0;

    if (logs < 0)
        return -1;
    size_t count = find_workers(logs, job_id, &found);
    for (size_t i = 0; i < count && rc == 0; i++) {
        size_t length;
        char *bytes = read_tail(logs, found[i].name, LOG_BYTES, &length);
        if (bytes)
            rc = write_piece(out, found[i].name, bytes, length);
        free(bytes);
    }
    if (rc == 0)
        rc = write_kills(out, logs, job_id);
    free(found);
    close(logs);
    return rc;
}

/* --- a package ----------------------------------------------------------------------------------
 */

static int enter(const char *name)
{
    int fd = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int rc = fd < 0 ? -1 : fchdir(fd);

    if (fd >= 0)
        close(fd);
    return rc;
}

static int write_package(FILE *out, const char *package)
{
    char *zip, name[64];
    size_t length;
    int rc = 0;

    if (enter("runtime_resources") < 0 || enter("working_dir_files") < 0 || enter(package) < 0 ||
        ray_package_make(".", NULL, NULL, 0, MAX_PACKAGE_BYTES, &zip, &length, name, NULL) < 0)
        return -1;
    for (size_t at = 0; at < length && rc == 0; at += PIECE_BYTES)
        rc = write_piece(out, "package", zip + at,
                         length - at < PIECE_BYTES ? length - at : PIECE_BYTES);
    free(zip);
    return rc;
}

int evidence_read(const struct evidence_question *question, int out_fd)
{
    FILE *out = fdopen(out_fd, "w");

    if (!out)
        return -1;
    int rc = question->what == EVIDENCE_PACKAGE  ? write_package(out, question->name)
             : question->what == EVIDENCE_DRIVER ? write_driver(out, question->name)
                                                 : write_logs(out, question->name);
    if (rc == 0)
        rc = fputs("- 0\n", out) < 0 ? -1 : 0;
    return fclose(out) == 0 ? rc : -1;
}
