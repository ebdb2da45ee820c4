/* SPDX-License-Identifier: Apache-2.0
 *
 * A job's working directory from the machine where its driver ran, for the time of one decision.
 * Only plain files come out of the package, into a directory of our own. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/lib/jsonget.h"
#include "agent/node/ray_watch.h"

enum {
    MAX_ZIP_BYTES = 128 * 1024 * 1024,
    MAX_FILES_BYTES = 256 * 1024 * 1024,
    MAX_ENTRIES = 20000
};

/* --- unpacking ----------------------------------------------------------------------------------
 */

static bool is_below(const char *name)
{
    if (!name || !*name || *name == '/')
        return false;
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || !part[2]))
            return false;
    }
    return true;
}

static int copy_data(struct archive *from, struct archive *to, int64_t *left)
{
    const void *block;
    size_t size;
    la_int64_t offset;
    int rc;

    while ((rc = archive_read_data_block(from, &block, &size, &offset)) == ARCHIVE_OK) {
        *left -= (int64_t)size;
        if (*left < 0 || archive_write_data_block(to, block, size, offset) < 0)
            return -1;
    }
    return rc == ARCHIVE_EOF ? 0 : -1;
}

static int unpack(const char *zip, size_t length, const char *directory, struct oom_error *err)
{
    struct archive *from = archive_read_new(), *to = archive_write_disk_new();
    struct archive_entry *entry;
    int64_t left = MAX_FILES_BYTES;
    int rc = -1, count = 0, got = ARCHIVE_FATAL;

    if (from && to && archive_read_support_format_zip(from) == ARCHIVE_OK &&
        archive_write_disk_set_options(to, ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_SECURE_SYMLINKS |
                                               ARCHIVE_EXTRACT_SECURE_NODOTDOT) == ARCHIVE_OK &&
        archive_read_open_memory(from, zip, length) == ARCHIVE_OK)
        rc = 0;
    while (rc == 0 && (got = archive_read_next_header(from, &entry)) == ARCHIVE_OK) {
        const char *name = archive_entry_pathname(entry);
        char path[4096];
        if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry))
            continue;
        int n = is_below(name) ? snprintf(path, sizeof(path), "%s/%s", directory, name) : -1;
        if (n < 0 || (size_t)n >= sizeof(path) || ++count > MAX_ENTRIES) {
            rc = -1;
            break;
        }
        archive_entry_set_pathname(entry, path);
        archive_entry_set_perm(entry, (archive_entry_perm(entry) & 0700) | 0600);
        rc = archive_write_header(to, entry) == ARCHIVE_OK && copy_data(from, to, &left) == 0 ? 0
                                                                                              : -1;
    }
    if (rc < 0 || got != ARCHIVE_EOF)
        rc = oom_errorf(err, "the working directory cannot be unpacked: %s",
                        from && archive_error_string(from) ? archive_error_string(from)
                                                           : "it is too large");
    archive_read_free(from);
    archive_write_free(to);
    return rc;
}

/* --- fetching -----------------------------------------------------------------------------------
 */

struct zip {
    char *bytes;
    size_t length, room;
};

static int collect(void *arg, const char *name, const char *bytes, size_t length)
{
    struct zip *zip = arg;

    (void)name;
    if (zip->length + length > MAX_ZIP_BYTES)
        return -1;
    if (zip->length + length > zip->room) {
        size_t room = (zip->length + length) * 2;
        char *grown = realloc(zip->bytes, room);
        if (!grown)
            return -1;
        zip->bytes = grown;
        zip->room = room;
    }
    memcpy(zip->bytes + zip->length, bytes, length);
    zip->length += length;
    return 0;
}

static int make_directory(char *out, size_t size, struct oom_error *err)
{
    const char *temporary = secure_getenv("TMPDIR");
    int n = snprintf(out, size, "%s/oomretry-ray-XXXXXX", temporary ? temporary : "/tmp");

    if (n < 0 || (size_t)n >= size)
        return oom_errorf(err, "TMPDIR is too long");
    return mkdtemp(out) ? 0 : oom_errorf(err, "cannot make %s: %s", out, strerror(errno));
}

int ray_fetch_working_dir(const struct ray_cluster *cluster, const json_t *job, const char *uri,
                          char *out, size_t size, struct oom_error *err)
{
    char address[256], package[128];
    struct zip zip = {NULL, 0, 0};

    if (!cluster->options.agents_port)
        return oom_errorf(err,
                          "it is not on this machine, and no agents=PORT says how to ask others");
    if (!ray_package_name(uri, package, sizeof(package)) ||
        !ray_driver_address(job, address, sizeof(address)))
        return oom_errorf(err, "where it is cannot be told");
    json_t *question =
        json_pack("{s:s, s:s}", "session", cluster->session_name, "package", package);
    int rc = question ? ray_ask(address, cluster->options.agents_port, "/v1/ray/package", question,
                                collect, &zip, err)
                      : oom_errorf(err, "out of memory");
    json_decref(question);
    if (rc == 0) {
        rc = make_directory(out, size, err);
        if (rc == 0 && (rc = unpack(zip.bytes, zip.length, out, err)) < 0)
            ray_fetch_remove(out);
    }
    free(zip.bytes);
    return rc;
}

void ray_fetch_remove(const char *directory)
{
    char *const roots[] = {(char *)directory, NULL};
    FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);

    for (FTSENT *e; fts && (e = fts_read(fts));)
        if (e->fts_info != FTS_D)
            remove(e->fts_path);
    if (fts)
        fts_close(fts);
}
