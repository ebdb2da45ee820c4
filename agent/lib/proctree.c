/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lib/proctree.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CMDLINE_BYTES = 256 * 1024 };

enum standing { UNKNOWN, BELOW, ELSEWHERE };

struct link {
    pid_t pid, parent;
    enum standing standing;
};

/* The fields of stat behind the second one, which is a name in parentheses and may hold anything.
 */
static const char *fields_of(pid_t pid, char *text, size_t size)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    ssize_t n = read(fd, text, size - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *close_paren = strrchr(text, ')');
    return close_paren ? close_paren + 1 : NULL;
}

static pid_t parent_of(pid_t pid)
{
    char text[1024];
    const char *fields = fields_of(pid, text, sizeof(text));
    int parent = -1;

    if (fields)
        sscanf(fields, " %*c %d", &parent);
    return parent;
}

int64_t proctree_began_ms(pid_t pid)
{
    char text[1024];
    const char *fields = fields_of(pid, text, sizeof(text));
    long long ticks = 0;
    long per_second = sysconf(_SC_CLK_TCK);

    /* The 22nd; the first of these is the third. */
    for (int i = 3; fields && i < 22; i++)
        fields = strchr(fields + 1, ' ');
    if (fields)
        ticks = atoll(fields);
    return per_second > 0 ? (int64_t)ticks * 1000 / per_second : 0;
}

int64_t proctree_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static size_t all_links(struct link **out)
{
    DIR *proc = opendir("/proc");
    size_t count = 0, room = 0;

    *out = NULL;
    if (!proc)
        return 0;
    for (struct dirent *entry; (entry = readdir(proc));) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        if (count == room) {
            struct link *grown = realloc(*out, (room = room ? 2 * room : 256) * sizeof(**out));
            if (!grown)
                break;
            *out = grown;
        }
        pid_t pid = (pid_t)atoi(entry->d_name);
        (*out)[count++] = (struct link){pid, parent_of(pid), UNKNOWN};
    }
    closedir(proc);
    return count;
}

static int by_pid(const void *left, const void *right)
{
    const struct link *a = left, *b = right;

    return (a->pid > b->pid) - (a->pid < b->pid);
}

/* Follows the parents up to one of which it is known, and notes it for all on the way. A node may
 * run a hundred thousand processes: each is visited a few times at most. */
static void settle(struct link *links, size_t count, pid_t root, struct link *link)
{
    struct link *at = link;
    enum standing standing = UNKNOWN;

    while (standing == UNKNOWN) {
        struct link key = {.pid = at->parent};
        /* Not twice the same way: what was read at different times may run in a circle. */
        at->standing = ELSEWHERE;
        if (at->parent == root) {
            standing = BELOW;
        } else if (!(at = bsearch(&key, links, count, sizeof(*links), by_pid))) {
            standing = ELSEWHERE;
        } else {
            standing = at->standing;
        }
    }
    for (at = link; standing == BELOW && at && at->standing != BELOW;) {
        struct link key = {.pid = at->parent};
        at->standing = BELOW;
        at = at->parent == root ? NULL : bsearch(&key, links, count, sizeof(*links), by_pid);
    }
}

size_t proctree_below(pid_t root, pid_t **out)
{
    struct link *links;
    size_t count = all_links(&links), found = 0;

    *out = NULL;
    if (count)
        qsort(links, count, sizeof(*links), by_pid);
    for (size_t i = 0; i < count; i++) {
        if (links[i].standing == UNKNOWN)
            settle(links, count, root, &links[i]);
        found += links[i].standing == BELOW;
    }
    if (found)
        *out = calloc(found, sizeof(**out));
    found = 0;
    for (size_t i = 0; *out && i < count; i++)
        if (links[i].standing == BELOW)
            (*out)[found++] = links[i].pid;
    free(links);
    return found;
}

char **proctree_argv(pid_t pid)
{
    char path[64];
    size_t used = 0, words = 0;

    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = fd >= 0 ? malloc(MAX_CMDLINE_BYTES) : NULL;
    while (text && used < MAX_CMDLINE_BYTES - 1) {
        ssize_t n = read(fd, text + used, MAX_CMDLINE_BYTES - 1 - used);
        if (n <= 0)
            break;
        used += (size_t)n;
    }
    if (fd >= 0)
        close(fd);
    for (size_t i = 0; i < used; i++)
        words += text[i] == '\0';
    if (!used) {
        free(text);
        return NULL;
    }
    if (text[used - 1] != '\0') {
        text[used++] = '\0';
        words++;
    }
    /* Pointers first, then the text, in one block. */
    char **argv = malloc((words + 1) * sizeof(char *) + used);
    if (argv) {
        char *copy = (char *)(argv + words + 1);
        memcpy(copy, text, used);
        for (size_t i = 0; i < words; i++, copy += strlen(copy) + 1)
            argv[i] = copy;
        argv[words] = NULL;
    }
    free(text);
    return argv;
}

static bool has_open(const char *fd_directory, const char *path)
{
    DIR *fds = opendir(fd_directory);
    bool found = false;

    if (!fds)
        return false;
    for (struct dirent *entry; !found && (entry = readdir(fds));) {
        char target[PATH_MAX];
        ssize_t n = readlinkat(dirfd(fds), entry->d_name, target, sizeof(target) - 1);
        if (n > 0) {
            target[n] = '\0';
            found = strcmp(target, path) == 0;
        }
    }
    closedir(fds);
    return found;
}

static bool has_mapped(const char *maps, const char *path)
{
    FILE *file = fopen(maps, "re");
    char *line = NULL;
    size_t size = 0;
    bool found = false;

    if (!file)
        return false;
    while (!found && getline(&line, &size, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        const char *name = strchr(line, '/');
        found = name && strcmp(name, path) == 0;
    }
    free(line);
    fclose(file);
    return found;
}

bool proctree_uses_file(const char *path)
{
    DIR *proc = opendir("/proc");
    bool used = false;

    if (!proc)
        return true; /* nothing is known: leave it alone */
    for (struct dirent *entry; !used && (entry = readdir(proc));) {
        char name[300];
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        snprintf(name, sizeof(name), "/proc/%s/fd", entry->d_name);
        used = has_open(name, path);
        snprintf(name, sizeof(name), "/proc/%s/maps", entry->d_name);
        used = used || has_mapped(name, path);
    }
    closedir(proc);
    return used;
}
