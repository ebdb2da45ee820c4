/* SPDX-License-Identifier: Apache-2.0
 *
 * MUNGE credentials: bytes that nobody on the network reads or changes, that say which user made
 * them, and that can be opened once. */
#ifndef AGENT_LIB_SEALED_H
#define AGENT_LIB_SEALED_H

#include <stddef.h>
#include <sys/types.h>

#include "oomretry/error.h"

/* A credential holds at most 1 MiB, as text; so much of bytes is safe. */
enum { SEALED_MAX_BYTES = 512 * 1024 };

/* The daemon is asked at this socket from now on, "" at its usual one; $OOMRETRY_MUNGE_SOCKET
 * counts more. */
void sealed_use_socket(const char *path);

/* `reader`: the one user who may open it; (uid_t)-1: whoever has the key. malloc'd; NULL and err.
 */
char *sealed_make(const void *bytes, size_t length, uid_t reader, struct oom_error *err);

/* What is inside, NUL-terminated; `by` is who made it. malloc'd; NULL and err. */
char *sealed_open(const char *credential, size_t *length, uid_t *by, struct oom_error *err);

#endif
