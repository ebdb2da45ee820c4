/* SPDX-License-Identifier: Apache-2.0
 *
 * Undoes what the plugin did to a spooled batch script: takes the launcher's line away again, so
 * that executing the file is what it would be without the plugin ($0, arguments, interpreter).
 * libc only: the launcher and oomrun both use it. Runs as the job's owner, who owns the file. */
#ifndef PLUGIN_RESTORE_H
#define PLUGIN_RESTORE_H

#include <stddef.h>

/* How many bytes of launcher line a script starts with; 0 none. */
size_t restore_launcher_length(const char *bytes, size_t length);

/* Restores `path` in place. Returns 0 also when its first line is not the launcher's. -1 with errno
 * set leaves the file as it was. */
int restore_script(const char *path);

/* Writes the restored script as a private file (mode 0700) into $TMPDIR, else /tmp, for when `path`
 * itself cannot be written; its name goes to `copy`. 0, or -1 with errno set. */
int restore_copy(const char *path, char *copy, size_t size);

/* Executes the script argv[0] as it would be without the plugin: restored, else a copy, else by the
 * interpreter that its own first line names. Never by the launcher, which would come back here for
 * ever. Returns only when it cannot be executed, with errno set. */
void restore_and_exec(char **argv);

#endif
