/* SPDX-License-Identifier: Apache-2.0
 *
 * What comes of a rewrite outside of the core: names of changed copies of side files, and the diff
 * of a script and its copies. */
#ifndef AGENT_LIB_REWRITTEN_H
#define AGENT_LIB_REWRITTEN_H

#include <stddef.h>

#include "oomretry/rewrite.h"

/* "conf/ds.json" and the mark "oomrun" give "/home/u/conf/.ds.oomrun.json": the ending stays, since
 * programs look at it. `directory` NULL: the file's own. *ending is the length of what stands
 * behind the mark. -1 when the directory cannot be found or the name is too long. */
int rewritten_copy_name(const char *path, const char *directory, const char *mark, char *out,
                        size_t size, size_t *ending);

/* The unified diff of the script, then that of each copy. New string; NULL when out of memory. */
char *rewritten_diff(const char *name, const char *old, size_t old_length,
                     const struct oom_rewrite *rewrite);

#endif
