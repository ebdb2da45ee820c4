/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lib/paths.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *paths_prefix(struct oom_error *err)
{
    static char prefix[PATH_MAX];
    const char *set = secure_getenv("OOMRETRY_PREFIX");

    if (set && set[0] == '/' && strlen(set) < sizeof(prefix)) {
        strcpy(prefix, set);
        return prefix;
    }
    ssize_t n = readlink("/proc/self/exe", prefix, sizeof(prefix) - 1);
    if (n <= 0) {
        oom_errorf(err, "cannot find the running program: %s", strerror(errno));
        return NULL;
    }
    prefix[n] = '\0';
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(prefix, '/');
        if (!slash) {
            oom_errorf(err, "the program's path \"%s\" has no parent directory", prefix);
            return NULL;
        }
        *slash = '\0';
    }
    return prefix;
}

int paths_under_prefix(const char *below, char *out, size_t size, struct oom_error *err)
{
    const char *prefix = paths_prefix(err);

    if (!prefix)
        return -1;
    int n = snprintf(out, size, "%s/%s", prefix, below);
    if (n < 0 || (size_t)n >= size)
        return oom_errorf(err, "path %s/%s is too long", prefix, below);
    return 0;
}

static int make_dirs(char *path)
{
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        int rc = mkdir(path, 0700);
        *p = '/';
        if (rc < 0 && errno != EEXIST)
            return -1;
    }
    return mkdir(path, 0700) < 0 && errno != EEXIST ? -1 : 0;
}

/* HOME may be a place for everybody, where somebody else has made the directory; what is kept there
 * says what the next job runs with. */
static bool is_ours(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           !(st.st_mode & S_IWOTH) && access(path, W_OK | X_OK) == 0;
}

/* A directory of that name may be somebody else's trap: it must be ours and closed. */
int paths_spare_dir(bool make, char *out, size_t size, struct oom_error *err)
{
    struct stat st;

    snprintf(out, size, "/var/tmp/oomretry-%u", (unsigned)geteuid());
    if ((make && mkdir(out, 0700) < 0 && errno != EEXIST) || lstat(out, &st) < 0)
        return oom_errorf(err, "cannot make the state directory %s: %s", out, strerror(errno));
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
        return oom_errorf(err, "%s is not a closed directory of this user's", out);
    return 0;
}

/* Accounts of services have no home. */
static int state_dir(const char *above, const char *below, char *out, size_t size,
                     struct oom_error *err)
{
    int n = above ? snprintf(out, size, "%s/%s", above, below) : 0;

    if (n < 0 || (size_t)n >= size)
        return oom_errorf(err, "the path of the state directory is too long");
    return n == 0 || make_dirs(out) < 0 || !is_ours(out) ? paths_spare_dir(true, out, size, err)
                                                         : 0;
}

static const char *absolute(const char *path)
{
    return path && path[0] == '/' ? path : NULL;
}

int paths_owner_dir(char *out, size_t size, struct oom_error *err)
{
    static char home[PATH_MAX];
    const struct passwd *pw = *home ? NULL : getpwuid(geteuid()); /* may ask another machine */

    if (pw && strlen(pw->pw_dir) < sizeof(home))
        strcpy(home, pw->pw_dir);
    return state_dir(absolute(home), ".local/state/oomretry", out, size, err);
}

int paths_state_dir(char *out, size_t size, struct oom_error *err)
{
    const char *state = absolute(secure_getenv("XDG_STATE_HOME"));
    const char *home = absolute(secure_getenv("HOME"));

    if (state)
        return state_dir(state, "oomretry", out, size, err);
    return home ? state_dir(home, ".local/state/oomretry", out, size, err)
                : paths_owner_dir(out, size, err);
}
