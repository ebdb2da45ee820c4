/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/run/copies.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/lib/files.h"
#include "agent/lib/paths.h"
#include "agent/lib/rewritten.h"

#define MARK "oomrun-XXXXXX"

enum { MAX_COPIES = 64 };

static char *make_in(const char *path, const char *directory)
{
    char name[PATH_MAX];
    size_t ending;

    if (rewritten_copy_name(path, directory, MARK, name, sizeof(name), &ending) < 0)
        return NULL;
    int fd = mkostemps(name, (int)ending, O_CLOEXEC);
    if (fd < 0)
        return NULL;
    close(fd);
    char *made = strdup(name);
    if (!made)
        unlink(name);
    return made;
}

char *copies_place(void *arg, const char *path, bool beside)
{
    struct copies *copies = arg;
    char state[PATH_MAX];

    if (copies->count == MAX_COPIES)
        return NULL;
    char **paths = realloc(copies->paths, (copies->count + 1) * sizeof(*paths));
    if (!paths)
        return NULL;
    copies->paths = paths;
    char *made = make_in(path, NULL);
    if (!made && !beside)
        made = make_in(path, ".");
    /* Nodes share homes more often than /tmp. */
    if (!made && !beside && paths_state_dir(state, sizeof(state), NULL) == 0)
        made = make_in(path, state);
    char *handed = made ? strdup(made) : NULL;
    if (made && !handed)
        unlink(made);
    if (!handed)
        free(made);
    else
        copies->paths[copies->count++] = made;
    return handed;
}

int copies_write(const struct oom_rewrite *rewrite, struct oom_error *err)
{
    for (size_t i = 0; i < rewrite->copy_count; i++) {
        const struct oom_side_copy *copy = &rewrite->copies[i];
        struct stat st;
        /* A script that is called as a program has to stay one. */
        mode_t mode = stat(copy->path, &st) == 0 ? (st.st_mode & 0700) | 0600 : 0600;
        if (file_replace(copy->new_path, copy->bytes, copy->length, mode, err) < 0)
            return -1;
    }
    return 0;
}

void copies_remove(struct copies *copies)
{
    for (size_t i = 0; i < copies->count; i++) {
        unlink(copies->paths[i]);
        free(copies->paths[i]);
    }
    free(copies->paths);
    *copies = (struct copies){NULL, 0};
}
