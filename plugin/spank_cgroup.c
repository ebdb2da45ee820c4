/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory counters of a task. Where its cgroup is, is asked of the kernel and never guessed: Slurm's
 * layout differs between versions, builds and sites. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spank_plugin.h"

/* Reads a small file of /proc or a cgroup; "" when it cannot be read. */
static void read_small(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t got;

    text[0] = '\0';
    if (fd < 0)
        return;
    while (used < size - 1 && (got = read(fd, text + used, size - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = '\0';
    close(fd);
}

static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = list; *at; at += *at == ',') {
        size_t part = strcspn(at, ",");

        if (part == length && strncmp(at, word, length) == 0)
            return true;
        at += part;
    }
    return false;
}

/* The line of /proc/PID/cgroup for memory: v1 when a hierarchy names the controller, else v2. */
static bool find_group(char *text, char *group, size_t size, bool *unified)
{
    bool found = false;

    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;

        if (!path)
            continue;
        controllers++;
        *path++ = '\0';
        if (*controllers && !has_word(controllers, "memory"))
            continue;
        if (strlen(path) >= size || (found && !*controllers))
            continue;
        strcpy(group, path);
        *unified = *controllers == '\0';
        found = true;
        if (!*unified)
            break;
    }
    return found;
}

/* Where that hierarchy is mounted. mountinfo: id parent dev root target options ... - type source
 * superoptions. A mount of a part of the hierarchy has a root other than "/". */
static bool find_mount(bool unified, char *target, size_t target_size, char *root, size_t root_size)
{
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    char line[4096];
    bool found = false;

    if (!mounts)
        return false;
    while (!found && fgets(line, sizeof(line), mounts)) {
        char *tail = strstr(line, " - ");
        char type[32], options[256], mount_root[512], mount_target[512];

        if (!tail || sscanf(tail, " - %31s %*s %255s", type, options) != 2 ||
            sscanf(line, "%*s %*s %*s %511s %511s", mount_root, mount_target) != 2)
            continue;
        if (unified ? strcmp(type, "cgroup2") != 0
                    : strcmp(type, "cgroup") != 0 || !has_word(options, "memory"))
            continue;
        if (strlen(mount_root) < root_size && strlen(mount_target) < target_size) {
            strcpy(root, mount_root);
            strcpy(target, mount_target);
            found = true;
        }
    }
    fclose(mounts);
    return found;
}

void cgroup_of_process(pid_t pid, struct cgroup *cgroup)
{
    char path[64], text[4096], group[512], target[512], root[512];
    const char *below = group;

    cgroup->path[0] = '\0';
    snprintf(path, sizeof(path), "/proc/%ld/cgroup", (long)pid);
    read_small(path, text, sizeof(text));
    if (!find_group(text, group, sizeof(group), &cgroup->unified) ||
        !find_mount(cgroup->unified, target, sizeof(target), root, sizeof(root)))
        return;
    if (strcmp(root, "/") != 0 && strncmp(group, root, strlen(root)) == 0)
        below = group + strlen(root);
    if ((size_t)snprintf(text, sizeof(text), "%s%s", target, below) < sizeof(cgroup->path))
        strcpy(cgroup->path, text);
}

static int64_t parse_number(const char *text)
{
    char *end;
    long long number = strtoll(text, &end, 10);

    return end == text || number < 0 ? -1 : (int64_t)number;
}

static void read_file(const struct cgroup *cgroup, const char *name, char *text, size_t size)
{
    char path[sizeof(cgroup->path) + 64];

    snprintf(path, sizeof(path), "%s/%s", cgroup->path, name);
    read_small(path, text, size);
}

/* The number after `word` at the start of a line. */
static int64_t read_word(const struct cgroup *cgroup, const char *name, const char *word)
{
    char text[8192];
    size_t length = strlen(word);

    read_file(cgroup, name, text, sizeof(text));
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, word, length) == 0 && line[length] == ' ')
            return parse_number(line + length + 1);
    }
    return -1;
}

static int64_t read_number(const struct cgroup *cgroup, const char *name)
{
    char text[64];

    read_file(cgroup, name, text, sizeof(text));
    return parse_number(text);
}

/* v2 has no file for the effective limit: the smallest on the way up is. */
static int64_t unified_limit(const struct cgroup *cgroup)
{
    struct cgroup at = *cgroup;
    int64_t limit = -1;
    char *slash;

    while ((slash = strrchr(at.path, '/')) && slash != at.path) {
        int64_t here = read_number(&at, "memory.max");

        if (here >= 0 && (limit < 0 || here < limit))
            limit = here;
        *slash = '\0';
    }
    return limit;
}

void cgroup_read(const struct cgroup *cgroup, struct cgroup_counters *counters)
{
    counters->oom_kill = counters->peak_bytes = counters->limit_bytes = -1;
    if (!cgroup->path[0])
        return;
    if (cgroup->unified) {
        counters->oom_kill = read_word(cgroup, "memory.events", "oom_kill");
        counters->peak_bytes = read_number(cgroup, "memory.peak");
        counters->limit_bytes = unified_limit(cgroup);
        return;
    }
    counters->oom_kill = read_word(cgroup, "memory.oom_control", "oom_kill");
    counters->peak_bytes = read_number(cgroup, "memory.max_usage_in_bytes");
    counters->limit_bytes = read_word(cgroup, "memory.stat", "hierarchical_memory_limit");
    /* "No limit" is the largest multiple of the page size. */
    if (counters->limit_bytes > INT64_MAX - (1 << 20))
        counters->limit_bytes = -1;
}
