/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/evidence/cgroup.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_FILE_BYTES = 4096 };

/* The root may be named for tests of other layouts. */
static const char *root(void)
{
    const char *set = secure_getenv("OOMRETRY_CGROUP_ROOT");

    return set && *set ? set : "/sys/fs/cgroup";
}

static bool slurp(const char *path, char *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return false;
    ssize_t n = read(fd, out, MAX_FILE_BYTES - 1);
    close(fd);
    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static bool slurp_in(const char *directory, const char *file, char *out)
{
    char path[4096];
    int n = snprintf(path, sizeof(path), "%s/%s", directory, file);

    return n > 0 && (size_t)n < sizeof(path) && slurp(path, out);
}

/* A word of "name value" lines; -1 when it is not there. */
static int64_t field(const char *text, const char *name)
{
    size_t length = strlen(name);

    for (const char *p = text; p; p = strchr(p, '\n')) {
        p += *p == '\n';
        if (strncmp(p, name, length) == 0 && p[length] == ' ')
            return strtoll(p + length, NULL, 10);
    }
    return -1;
}

static int64_t number_in(const char *directory, const char *file)
{
    char text[MAX_FILE_BYTES];

    if (!slurp_in(directory, file, text) || text[0] < '0' || text[0] > '9')
        return -1;
    long long value = strtoll(text, NULL, 10);
    return value >= INT64_C(0x7ffffffffffff000) ? -1 : value; /* v1 says "no limit" like that */
}

/* The path behind the controller (v1) or behind "0::" (v2) in /proc/self/cgroup. */
static bool own_path(bool v2, char *out, size_t size)
{
    char text[MAX_FILE_BYTES];

    if (!slurp("/proc/self/cgroup", text))
        return false;
    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char *controllers = strchr(line, ':'), *path;
        if (!controllers || !(path = strchr(++controllers, ':')))
            continue;
        *path++ = '\0';
        bool wanted = v2 ? strncmp(line, "0:", 2) == 0 && *controllers == '\0'
                         : strcmp(controllers, "memory") == 0;
        if (!wanted)
            continue;
        int n = snprintf(out, size, "%s%s%s", root(), v2 ? "" : "/memory", path);
        return n > 0 && (size_t)n < size;
    }
    return false;
}

void cgroup_read_own(struct cgroup_counters *out)
{
    char directory[4096], text[MAX_FILE_BYTES];

    *out = (struct cgroup_counters){-1, -1, -1};
    if (own_path(false, directory, sizeof(directory)) &&
        slurp_in(directory, "memory.oom_control", text)) {
        out->oom_kills = field(text, "oom_kill");
        out->peak_bytes = number_in(directory, "memory.max_usage_in_bytes");
        out->limit_bytes = number_in(directory, "memory.limit_in_bytes");
    } else if (own_path(true, directory, sizeof(directory)) &&
               slurp_in(directory, "memory.events", text)) {
        out->oom_kills = field(text, "oom_kill");
        out->peak_bytes = number_in(directory, "memory.peak");
        out->limit_bytes = number_in(directory, "memory.max");
    }
}
