/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/evidence/sigset.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lib/files.h"
#include "agent/lib/paths.h"

#define FILE_MAX_BYTES (4u * 1024 * 1024)

int sigset_add_file(struct oom_signatures *set, const char *path, struct oom_error *err)
{
    char *bytes = NULL;
    size_t length = 0;
    json_error_t why;

    int more = file_read(path, FILE_MAX_BYTES, &bytes, &length, err);
    if (more < 0)
        return -1;
    if (more) {
        free(bytes);
        return oom_errorf(err, "%s: larger than 4 MiB: not a signature file", path);
    }
    json_t *document = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &why);
    free(bytes);
    if (!document)
        return oom_errorf(err, "%s:%d: %s", path, why.line, why.text);
    int rc = oom_signatures_add(set, document, path, err);
    json_decref(document);
    return rc;
}

static int is_json(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name);

    return n > 5 && entry->d_name[0] != '.' && strcmp(entry->d_name + n - 5, ".json") == 0;
}

/* A directory that does not exist holds no signatures. */
static int add_directory(struct oom_signatures *set, const char *directory, struct oom_error *err)
{
    struct dirent **entries;
    int count = scandir(directory, &entries, is_json, alphasort);
    int rc = 0;

    if (count < 0)
        return errno == ENOENT ? 0
                               : oom_errorf(err, "cannot read %s: %s", directory, strerror(errno));
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s/%s", directory, entries[i]->d_name);
        if (rc == 0)
            rc = n > 0 && (size_t)n < sizeof(path)
                     ? sigset_add_file(set, path, err)
                     : oom_errorf(err, "%s: path too long", directory);
        free(entries[i]);
    }
    free(entries);
    return rc;
}

struct oom_signatures *sigset_read(struct oom_error *err)
{
    char shipped[PATH_MAX];
    const char *site = secure_getenv("OOMRETRY_SIGNATURES");
    struct oom_signatures *set = oom_signatures_new();

    if (!set) {
        oom_errorf(err, "signatures: out of memory");
        return NULL;
    }
    if (paths_under_prefix("share/oomretry/signatures", shipped, sizeof(shipped), err) ||
        add_directory(set, shipped, err) ||
        add_directory(set, site && *site ? site : SIGSET_SITE_DIR, err)) {
        oom_signatures_free(set);
        return NULL;
    }
    return set;
}

struct oom_signatures *sigset_load(struct oom_error *err)
{
    struct oom_signatures *set = sigset_read(err);

    if (set && oom_signatures_compile(set, err)) {
        oom_signatures_free(set);
        return NULL;
    }
    return set;
}
