/* SPDX-License-Identifier: Apache-2.0
 *
 * The spooled batch script. Slurm keeps it in a directory of root's that the job's group may read,
 * one file that belongs to the job's owner. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spank_plugin.h"

/* Slurm's own default limit is 4 MiB; a site may raise it. */
#define SCRIPT_MAX_BYTES (64 << 20)
#define NEW_NAME         ".slurm_script.oomretry"

static bool may_execute(const struct stat *st, uid_t uid, gid_t gid, const gid_t *groups, int count)
{
    if (uid == 0)
        return (st->st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0;
    if (st->st_uid == uid)
        return (st->st_mode & S_IXUSR) != 0;
    if (st->st_gid == gid)
        return (st->st_mode & S_IXGRP) != 0;
    for (int i = 0; i < count; i++)
        if (st->st_gid == groups[i])
            return (st->st_mode & S_IXGRP) != 0;
    return (st->st_mode & S_IXOTH) != 0;
}

bool script_may_execute(const char *path, uid_t uid, gid_t gid, const gid_t *groups, int count)
{
    char part[PATH_MAX];
    struct stat st;

    if (strlen(path) >= sizeof(part))
        return false;
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        memcpy(part, path, (size_t)(slash - path));
        part[slash - path] = '\0';
        if (stat(part, &st) != 0 || !may_execute(&st, uid, gid, groups, count))
            return false;
    }
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && may_execute(&st, uid, gid, groups, count);
}

static int write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, bytes, length);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return -1;
        bytes += written;
        length -= (size_t)written;
    }
    return 0;
}

/* Copies at most the size that was checked: a file that grows meanwhile is an error. */
static int copy_all(int from, int to, off_t length)
{
    char buffer[65536];
    off_t done = 0;

    for (;;) {
        ssize_t got = read(from, buffer, sizeof(buffer));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += got;
        if (done > length || write_all(to, buffer, (size_t)got) != 0)
            return -1;
    }
    if (done != length) {
        errno = EIO;
        return -1;
    }
    return 0;
}

static int prepend_in(int dir, const char *name, uid_t uid, const char *line, off_t *bytes)
{
    int from = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int to = -1, saved;
    struct stat st;

    if (from < 0)
        return -1;
    if (fstat(from, &st) != 0)
        goto fail;
    if (!S_ISREG(st.st_mode) || st.st_uid != uid || st.st_nlink != 1 ||
        st.st_size > SCRIPT_MAX_BYTES) {
        errno = EPERM;
        goto fail;
    }
    (void)unlinkat(dir, NEW_NAME, 0);
    to = openat(dir, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        goto fail;
    /* The mode last: it opens the file to its owner once it is whole. */
    if (write_all(to, line, strlen(line)) != 0 || copy_all(from, to, st.st_size) != 0 ||
        fchown(to, st.st_uid, st.st_gid) != 0 || fchmod(to, st.st_mode & 07777) != 0)
        goto fail;
    saved = close(to);
    to = -1;
    if (saved != 0 || renameat(dir, NEW_NAME, dir, name) != 0)
        goto fail;
    close(from);
    *bytes = st.st_size;
    return 0;
fail:
    saved = errno;
    if (to >= 0)
        close(to);
    (void)unlinkat(dir, NEW_NAME, 0);
    close(from);
    errno = saved;
    return -1;
}

bool script_begins_with(const char *path, const char *line)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    size_t length = strlen(line);
    char start[256];
    struct stat st;
    bool same = false;

    if (fd < 0)
        return false;
    if (length <= sizeof(start) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        same = pread(fd, start, length, 0) == (ssize_t)length && memcmp(start, line, length) == 0;
    close(fd);
    return same;
}

int script_prepend(const char *path, uid_t uid, const char *line, off_t *original_bytes)
{
    const char *slash = strrchr(path, '/');
    char directory[PATH_MAX];
    struct stat st;
    int dir, rc = -1, saved;

    if (!slash || slash == path || (size_t)(slash - path) >= sizeof(directory)) {
        errno = EINVAL;
        return -1;
    }
    memcpy(directory, path, (size_t)(slash - path));
    directory[slash - path] = '\0';
    dir = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return -1;
    /* Only where nobody but root can swap the file under our hands. */
    if (fstat(dir, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH))) {
        rc = prepend_in(dir, slash + 1, uid, line, original_bytes);
    } else {
        errno = EPERM;
    }
    saved = errno;
    close(dir);
    errno = saved;
    return rc;
}
