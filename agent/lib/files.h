/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading and writing whole small files of the user. */
#ifndef AGENT_LIB_FILES_H
#define AGENT_LIB_FILES_H

#include <stddef.h>
#include <sys/types.h>

#include "oomretry/error.h"

/* Reads a regular file, at most `limit` bytes, NUL-terminated. 0: all of it, 1: it goes on, -1. */
int file_read(const char *path, size_t limit, char **bytes, size_t *length, struct oom_error *err);

/* The directory of a file, absolute and malloc'd. NULL: it cannot be had, or the file is a symbolic
 * link, which has two. */
char *file_directory(const char *path);

/* `path` ends in XXXXXX and gets its final name. */
int file_write_temporary(char *path, const char *bytes, size_t length, mode_t mode,
                         struct oom_error *err);

/* A new file NAME-XXXXXX in $TMPDIR, else, where that is not there or full, in /tmp. Its path goes
 * to `path`; "" on failure. */
int file_write_in_tmp(const char *name, const char *bytes, size_t length, mode_t mode, char *path,
                      size_t size, struct oom_error *err);

/* New content in the same inode (the directory may not be writable). */
int file_overwrite(const char *path, const char *bytes, size_t length, struct oom_error *err);

/* By a temporary file and rename. */
int file_replace(const char *path, const char *bytes, size_t length, mode_t mode,
                 struct oom_error *err);

/* Copies the last `limit` bytes of a regular file to a new file (mode 0600, replaced). */
int file_copy_tail(const char *from, const char *to, off_t limit);

#endif
