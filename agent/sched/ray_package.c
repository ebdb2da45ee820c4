/* SPDX-License-Identifier: Apache-2.0
 *
 * Ray keeps a job's working directory as a zip and unpacks it on every node that runs a part of
 * the job. The dashboard takes packages, but gives none back: what is packed here is the unpacked
 * one of the driver's node. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/sched/ray.h"

enum { MAX_ENTRIES = 20000, PORTION = 64 * 1024 };

struct packing {
    struct archive *archive;
    FILE *out;
    const char *replaced, *bytes;
    size_t length;
    int64_t left;
    int entries;
};

static ssize_t write_out(struct archive *archive, void *arg, const void *bytes, size_t length)
{
    struct packing *p = arg;

    (void)archive;
    return fwrite(bytes, 1, length, p->out) == length ? (ssize_t)length : -1;
}

static int copy_file(struct packing *p, int fd, int64_t size)
{
    char portion[PORTION];

    while (size > 0) {
        ssize_t n = read(fd, portion, size < PORTION ? (size_t)size : PORTION);
        if (n <= 0 || archive_write_data(p->archive, portion, (size_t)n) != n)
            return -1;
        size -= n;
    }
    return 0;
}

static int add_file(struct packing *p, const char *path, const char *name, struct oom_error *err)
{
    bool other = p->replaced && strcmp(name, p->replaced) == 0;
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), rc = -1;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        rc = oom_errorf(err, "cannot read %s: %s", path, strerror(errno));
        goto out;
    }
    int64_t size = other ? (int64_t)p->length : (int64_t)st.st_size;
    p->left -= size;
    if (p->left < 0 || ++p->entries > MAX_ENTRIES) {
        rc = oom_errorf(err, "the working directory has become too large to be packed again");
        goto out;
    }
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, st.st_mode & 0777);
    archive_entry_set_size(entry, size);
    archive_entry_set_mtime(entry, 315532800, 0); /* the same content, the same package */
    rc = archive_write_header(p->archive, entry) == ARCHIVE_OK ? 0 : -1;
    archive_entry_free(entry);
    if (rc == 0 && other)
        rc = archive_write_data(p->archive, p->bytes, p->length) == (la_ssize_t)p->length ? 0 : -1;
    else if (rc == 0)
        rc = copy_file(p, fd, size);
    if (rc < 0)
        oom_errorf(err, "cannot pack %s: %s", name, archive_error_string(p->archive));
out:
    if (fd >= 0)
        close(fd);
    return rc;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int add_all(struct packing *p, const char *directory, struct oom_error *err)
{
    char *const roots[] = {(char *)directory, NULL};
    FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, by_name);
    size_t skip = strlen(directory) + 1;
    int rc = fts ? 0 : oom_errorf(err, "cannot read %s: %s", directory, strerror(errno));

    for (FTSENT *e; rc == 0 && (e = fts_read(fts));) {
        if (e->fts_info == FTS_D && strcmp(e->fts_name, "__pycache__") == 0)
            fts_set(fts, e, FTS_SKIP);
        else if (e->fts_info == FTS_F && e->fts_pathlen >= skip)
            rc = add_file(p, e->fts_path, e->fts_path + skip, err);
        else if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR)
            rc = oom_errorf(err, "cannot read %s: %s", e->fts_path, strerror(e->fts_errno));
    }
    if (fts)
        fts_close(fts);
    return rc;
}

/* 128 bits of FNV-1a: names contents, guards nothing. */
static void name_of(const char *bytes, size_t length, char name[64])
{
    uint64_t a = 0xcbf29ce484222325, b = 0x84222325cbf29ce4;

    for (size_t i = 0; i < length; i++) {
        a = (a ^ (unsigned char)bytes[i]) * 0x100000001b3;
        b = (b ^ (unsigned char)bytes[length - 1 - i]) * 0x100000001b3;
    }
    snprintf(name, 64, "_ray_pkg_%016llx%016llx.zip", (unsigned long long)a, (unsigned long long)b);
}

bool ray_package_name(const char *uri, char *out, size_t size)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const char *name = uri + 6;
    size_t length = strncmp(uri, "gcs://", 6) == 0 ? strspn(name, letters) : 0;

    if (length == 0 || length >= size || strcmp(name + length, ".zip") != 0)
        return false;
    snprintf(out, size, "%.*s", (int)length, name);
    return true;
}

int ray_package_make(const char *directory, const char *replaced, const char *bytes, size_t length,
                     int64_t limit, char **zip, size_t *zip_length, char name[64],
                     struct oom_error *err)
{
    struct packing p = {.archive = archive_write_new(),
                        .replaced = replaced,
                        .bytes = bytes,
                        .length = length,
                        .left = limit};
    int rc = -1;

    *zip = NULL;
    *zip_length = 0;
    p.out = open_memstream(zip, zip_length);
    if (!p.archive || !p.out) {
        oom_errorf(err, "out of memory");
    } else if (archive_write_set_format_zip(p.archive) != ARCHIVE_OK ||
               archive_write_open(p.archive, &p, NULL, write_out, NULL) != ARCHIVE_OK) {
        oom_errorf(err, "cannot make a zip: %s", archive_error_string(p.archive));
    } else {
        rc = add_all(&p, directory, err);
        if (archive_write_close(p.archive) != ARCHIVE_OK && rc == 0)
            rc = oom_errorf(err, "cannot make a zip: %s", archive_error_string(p.archive));
    }
    archive_write_free(p.archive);
    if (p.out && fclose(p.out) != 0 && rc == 0)
        rc = oom_errorf(err, "out of memory");
    if (rc == 0) {
        name_of(*zip, *zip_length, name);
        return 0;
    }
    free(*zip);
    *zip = NULL;
    return -1;
}
