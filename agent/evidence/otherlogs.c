/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/evidence/otherlogs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/evidence/logs.h"
#include "agent/lib/elapsed.h"

#define SKIM_MAX_BYTES ((off_t)4 << 30)

enum {
    MAX_FILES = 64,
    MAX_DEPTH = 4,
    MAX_ENTRIES = 20000,
    MAX_FILE_BYTES = 64 * 1024 * 1024,
    MARK_MAX_MS = 250, /* it delays the start of the attempt */
};

/* One walk over the places of logs: to mark what is there, or to feed what is new. */
struct search {
    struct oom_classifier *classifier; /* NULL: to mark */
    struct logmarks *marks;
    int64_t since_ms, until_ms;
    off_t skim_left_bytes;
    int files;
    int entries;
    struct {
        dev_t device;
        ino_t inode;
    } seen[MAX_FILES + 4];
    int seen_count;
};

static bool was_seen(struct search *search, const struct stat *st)
{
    for (int i = 0; i < search->seen_count; i++)
        if (search->seen[i].device == st->st_dev && search->seen[i].inode == st->st_ino)
            return true;
    if (search->seen_count < (int)(sizeof(search->seen) / sizeof(search->seen[0]))) {
        search->seen[search->seen_count].device = st->st_dev;
        search->seen[search->seen_count++].inode = st->st_ino;
    }
    return false;
}

static bool fresh(const struct search *search, const struct stat *st)
{
    int64_t changed_ms = (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;

    /* Coarse clocks of file systems: a few milliseconds either way. */
    return st->st_size > 0 && st->st_uid == geteuid() && changed_ms >= search->since_ms - 20;
}

static void feed_fd(struct search *search, int fd, const char *name, off_t size, off_t start)
{
    off_t end = size - start > MAX_FILE_BYTES ? size - MAX_FILE_BYTES : start;
    /* True line numbers, as long as they do not cost more than reading the logs. */
    off_t from = end <= search->skim_left_bytes ? 0 : end;

    search->skim_left_bytes -= end - from;
    logs_feed_end_of(search->classifier, fd, name, from, end, NULL);
    search->files++;
}

static void look_at(struct search *search, int directory, const char *name, const char *shown)
{
    struct stat st;
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        /* no log */
    } else if (!search->classifier) {
        logmarks_add(search->marks, fd, &st);
    } else if (search->files < MAX_FILES && fresh(search, &st) && !was_seen(search, &st)) {
        off_t start = logmarks_start(search->marks, fd, &st);
        if (start >= 0)
            feed_fd(search, fd, shown, st.st_size, start);
    }
    close(fd);
}

static bool named_like_a_log(const char *name)
{
    static const char *const endings[] = {".log", ".out", ".err", ".stdout", ".stderr", ".txt"};
    size_t length = strlen(name);

    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        size_t n = strlen(endings[i]);
        if (length > n && strcmp(name + length - n, endings[i]) == 0)
            return true;
    }
    return false;
}

static void walk(struct search *search, int parent, const char *name, const char *shown, int depth)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;

    if (!directory) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[4096];
        if (++search->entries > MAX_ENTRIES || search->files >= MAX_FILES ||
            (search->until_ms && elapsed_ms() > search->until_ms))
            break;
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", shown, entry->d_name);
        /* NFS lists large directories by names alone; both look what it is. */
        bool unknown = entry->d_type == DT_UNKNOWN;
        if ((unknown || entry->d_type == DT_REG) && named_like_a_log(entry->d_name))
            look_at(search, dirfd(directory), entry->d_name, path);
        else if ((unknown || entry->d_type == DT_DIR) && depth > 0)
            walk(search, dirfd(directory), entry->d_name, path, depth - 1);
    }
    closedir(directory);
}

/* torchrun's own directory of per-rank logs is /tmp/torchelastic_XXXXXXXX. */
static void walk_matching(struct search *search, const char *parent, const char *prefix)
{
    DIR *directory = opendir(parent);

    if (!directory)
        return;
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[4096];
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name);
        walk(search, dirfd(directory), entry->d_name, path, MAX_DEPTH);
    }
    closedir(directory);
}

/* What is already read as the job's own output. */
static void skip_own_output(struct search *search)
{
    struct stat st;

    for (int fd = 1; fd <= 2; fd++)
        if (fstat(fd, &st) == 0)
            was_seen(search, &st);
}

static void look_everywhere(struct search *search, const struct oom_script *script)
{
    const char *tmp = getenv("TMPDIR");
    char **paths = script ? oom_script_log_paths(script) : NULL;

    for (int i = 0; paths && paths[i]; i++)
        look_at(search, AT_FDCWD, paths[i], paths[i]);
    oom_script_log_paths_free(paths);
    walk(search, AT_FDCWD, ".", ".", MAX_DEPTH);
    walk_matching(search, tmp && *tmp ? tmp : "/tmp", "torchelastic_");
    walk(search, AT_FDCWD, "/tmp/ray/session_latest/logs", "/tmp/ray/session_latest/logs", 1);
}

void otherlogs_mark(struct logmarks *marks, const struct oom_script *script)
{
    struct search search = {.marks = marks, .until_ms = elapsed_ms() + MARK_MAX_MS};

    logmarks_clear(marks);
    look_everywhere(&search, script);
}

int otherlogs_feed(struct oom_classifier *classifier, struct logmarks *marks,
                   const struct oom_script *script, int64_t since_ms)
{
    struct search search = {.classifier = classifier,
                            .marks = marks,
                            .since_ms = since_ms,
                            .skim_left_bytes = SKIM_MAX_BYTES};

    skip_own_output(&search);
    look_everywhere(&search, script);
    return search.files;
}
