/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ctl/offline.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/files.h"
#include "agent/lib/rewritten.h"

enum { MAX_SIDE_BYTES = 4 * 1024 * 1024 };

static const char *find(const struct offline *offline, const char *path, char *room, size_t size)
{
    const char *slash = strrchr(offline->script, '/');

    if (path[0] == '/' || !slash)
        return path;
    int n = snprintf(room, size, "%.*s/%s", (int)(slash - offline->script), offline->script, path);
    return n > 0 && (size_t)n < size && access(room, R_OK) == 0 ? room : path;
}

int offline_read_side(void *arg, const char *path, char **bytes, size_t *length)
{
    char room[PATH_MAX];

    return file_read(find(arg, path, room, sizeof(room)), MAX_SIDE_BYTES, bytes, length, NULL) == 0
               ? 0
               : -1;
}

char *offline_place_copy(void *arg, const char *path, bool beside)
{
    struct offline *offline = arg;
    char room[PATH_MAX], name[PATH_MAX], mark[32];

    if (beside && offline->copies)
        return NULL;
    offline->count++;
    snprintf(mark, sizeof(mark), offline->count > 1 ? "oomrun-%d" : "oomrun", offline->count);
    return rewritten_copy_name(find(offline, path, room, sizeof(room)), offline->copies, mark, name,
                               sizeof(name), NULL) == 0
               ? strdup(name)
               : NULL;
}
