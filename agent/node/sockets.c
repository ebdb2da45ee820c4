/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/node/node.h"

enum { BACKLOG = 256 };

static int make_directory(const char *path, struct oom_error *err)
{
    char directory[sizeof(((struct sockaddr_un *)0)->sun_path)];
    char *slash;

    snprintf(directory, sizeof(directory), "%s", path);
    slash = strrchr(directory, '/');
    if (!slash || slash == directory)
        return oom_errorf(err, "the socket's path %s must be absolute and in a directory", path);
    *slash = '\0';
    if (mkdir(directory, 0755) < 0 && errno != EEXIST)
        return oom_errorf(err, "cannot make %s: %s", directory, strerror(errno));
    return 0;
}

static int bind_at(const char *path, int type, mode_t mode, struct oom_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof(address.sun_path))
        return oom_errorf(err, "the socket's path %s is too long", path);
    if (make_directory(path, err) < 0)
        return -1;
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return oom_errorf(err, "cannot make a socket: %s", strerror(errno));
    struct stat st;
    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
        unlink(path);
    mode_t mask = umask((mode_t)~mode & 0777);
    int rc = bind(fd, (struct sockaddr *)&address, sizeof(address));
    umask(mask);
    if (rc == 0)
        return fd;
    oom_errorf(err, "cannot bind %s: %s", path, strerror(errno));
    close(fd);
    return -1;
}

int socket_listen_stream(const char *path, mode_t mode, struct oom_error *err)
{
    int fd = bind_at(path, SOCK_STREAM, mode, err);

    if (fd >= 0 && listen(fd, BACKLOG) < 0) {
        oom_errorf(err, "cannot listen on %s: %s", path, strerror(errno));
        close(fd);
        return -1;
    }
    return fd;
}

int socket_bind_datagram(const char *path, mode_t mode, struct oom_error *err)
{
    int fd = bind_at(path, SOCK_DGRAM, mode, err);
    int yes = 1;

    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) < 0) {
        oom_errorf(err, "cannot ask for credentials on %s: %s", path, strerror(errno));
        close(fd);
        return -1;
    }
    return fd;
}
