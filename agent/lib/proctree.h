/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking at processes through /proc. */
#ifndef AGENT_LIB_PROCTREE_H
#define AGENT_LIB_PROCTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All processes below `root`, without it. *out is malloc'd (NULL when there are none). */
size_t proctree_below(pid_t root, pid_t **out);

/* The arguments of a process, NULL-terminated, one allocation; NULL when it is gone. At most
 * 256 KiB are read. */
char **proctree_argv(pid_t pid);

/* When a process began (0: it is gone), to a tick of the kernel's clock, and what time it is now.
 */
int64_t proctree_began_ms(pid_t pid);
int64_t proctree_now_ms(void);

/* True when a process that we may look at has the file open or mapped. */
bool proctree_uses_file(const char *path);

#endif
