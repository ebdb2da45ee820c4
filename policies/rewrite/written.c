/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that the script writes: what it reads or starts later is taken from them. */
#include <string.h>

#include "policies/rewrite/rw.h"

/* A leading "./" says nothing about which file is meant. */
static const char *plain_path(const char *path)
{
    while (path[0] == '.' && path[1] == '/')
        path += 2;
    return path;
}

static size_t bucket_of(const char *plain)
{
    return rw_hash_string(plain, strlen(plain)) % RW_WRITTEN_BUCKETS;
}

static struct rw_written *find_written(const struct rw *rw, const char *plain)
{
    for (struct rw_written *file = rw->written[bucket_of(plain)]; file; file = file->next)
        if (strcmp(file->path, plain) == 0)
            return file;
    return NULL;
}

const struct rw_written *rw_written_file(const struct rw *rw, const char *path)
{
    return find_written(rw, plain_path(path));
}

void rw_write_file(struct rw *rw, const char *path, const struct rw_text *text, bool append)
{
    const char *plain = plain_path(path);
    struct rw_written *file = find_written(rw, plain);

    if (!file) {
        file = rw_alloc(&rw->arena, sizeof(*file));
        file->path = plain;
        file->next = rw->written[bucket_of(plain)];
        rw->written[bucket_of(plain)] = file;
    } else if (append && file->text && text) {
        struct rw_text *both = rw_alloc(&rw->arena, sizeof(*both));
        rw_text_append(rw, both, file->text);
        rw_text_append(rw, both, text);
        text = both;
    } else if (append) {
        text = NULL;
    }
    file->text = text;
}
