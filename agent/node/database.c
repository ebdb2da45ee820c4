/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the head keeps its database. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/node/node.h"

static bool is_empty(int directory)
{
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy >= 0 ? fdopendir(copy) : NULL;
    bool empty = list != NULL;

    for (struct dirent *entry; list && (entry = readdir(list));)
        empty = empty && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
    if (list)
        closedir(list);
    else if (copy >= 0)
        close(copy);
    return empty;
}

/* The database's directory belongs to the head's user, and only he may write there. One that holds
 * something is never given away: it may be /var/lib. */
int database_prepare(const struct config *config, struct oom_error *err)
{
    char directory[4096];
    int n = snprintf(directory, sizeof(directory), "%s", config->database);
    char *slash = strrchr(directory, '/');

    if (n < 0 || (size_t)n >= sizeof(directory))
        return oom_errorf(err, "database: the path is too long");
    if (!slash || slash == directory)
        return oom_errorf(err, "database \"%s\" must be an absolute path", config->database);
    *slash = '\0';
    const struct passwd *pw = *config->head_user ? getpwnam(config->head_user) : NULL;
    if (*config->head_user && !pw)
        return oom_errorf(err, "head_user \"%s\" is no user of this machine", config->head_user);
    if (mkdir(directory, 0700) < 0 && errno != EEXIST)
        return oom_errorf(err, "cannot make %s: %s", directory, strerror(errno));
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), rc = 0;
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || (st.st_mode & 022))
        rc = oom_errorf(err, "the database's directory %s must not be writable for others",
                        directory);
    else if (pw && geteuid() == 0 && st.st_uid != pw->pw_uid && !is_empty(fd))
        rc = oom_errorf(err,
                        "the database's directory %s belongs to uid %u and is not empty; give "
                        "%s a directory of its own (chown -R %s, if this is it)",
                        directory, (unsigned)st.st_uid, config->head_user, config->head_user);
    else if (pw && geteuid() == 0 && fchown(fd, pw->pw_uid, pw->pw_gid) < 0)
        rc = oom_errorf(err, "cannot give %s to %s: %s", directory, config->head_user,
                        strerror(errno));
    if (fd >= 0)
        close(fd);
    return rc;
}
