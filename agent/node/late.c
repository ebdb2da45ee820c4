/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports of jobs that found no head (agent/run/late.c says what they are). Root looks at names,
 * owners and sizes only; what is in them is read by a process of their owner. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/lib/log.h"
#include "agent/node/node.h"

enum { MAX_AT_ONCE = 256, MAX_SLIP_BYTES = 64 * 1024, HAND_IN_MS = 15000, HALF_WRITTEN_S = 3600 };

static int directory_of(const struct config *config, char *out, size_t size)
{
    const char *slash = strrchr(config->node_socket, '/');
    int n = slash ? snprintf(out, size, "%.*s/late", (int)(slash - config->node_socket),
                             config->node_socket)
                  : -1;

    return n > 0 && (size_t)n < size ? 0 : -1;
}

/* Like /tmp, except that only root may list it. */
int late_directory(const struct config *config, struct oom_error *err)
{
    char path[4096];

    if (directory_of(config, path, sizeof(path)) < 0)
        return oom_errorf(err, "node_socket \"%s\" has no directory", config->node_socket);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return oom_errorf(err, "cannot make %s: %s", path, strerror(errno));
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int rc = fd < 0 ? -1 : fchmod(fd, S_ISVTX | 0733);
    if (rc < 0)
        oom_errorf(err, "cannot open %s for reports: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return rc;
}

static void hand_in(const struct config *config, const char *path, uid_t uid)
{
    const char *argv[] = {"oomrun", "--hand-in", path, NULL};
    const struct owner_wait wait = {.limit_ms = HAND_IN_MS};

    owner_run_oomrun(config, uid, argv, path, &wait);
}

void late_collect(const struct config *config)
{
    char path[4096], file[4400];
    DIR *directory = directory_of(config, path, sizeof(path)) == 0 ? opendir(path) : NULL;
    int count = 0;

    if (!directory)
        return;
    for (struct dirent *entry; count < MAX_AT_ONCE && (entry = readdir(directory));) {
        struct stat st;
        if (fstatat(dirfd(directory), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (entry->d_name[0] == '.') {
            /* Still being written, unless its writer has died. */
            if (!S_ISDIR(st.st_mode) && st.st_mtime < time(NULL) - HALF_WRITTEN_S)
                unlinkat(dirfd(directory), entry->d_name, 0);
            continue;
        }
        if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || st.st_size > MAX_SLIP_BYTES) {
            /* A directory that is not empty stays, and is in nobody's way. */
            if (unlinkat(dirfd(directory), entry->d_name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) ==
                0)
                log_line(LOG_WARNING, "%s/%s was no report and is removed", path, entry->d_name);
            continue;
        }
        count++;
        snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
        hand_in(config, file, st.st_uid);
    }
    closedir(directory);
}
