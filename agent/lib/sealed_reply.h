/* SPDX-License-Identifier: Apache-2.0
 *
 * The head's answers over TCP. Its port is one that any user of its machine may listen at while the
 * head is away, and what the head says is acted upon as root and as the owners of jobs: so a
 * request carries a nonce, and an answer is a line for each piece, a MUNGE credential made by the
 * head, which the asker alone can open, and which holds "NONCE INDEX COUNT STATUS", a line feed,
 * and a part of the JSON. */
#ifndef AGENT_LIB_SEALED_REPLY_H
#define AGENT_LIB_SEALED_REPLY_H

#include <sys/types.h>

#include "oomretry/error.h"

enum { SEALED_NONCE_BYTES = 33 };

/* 32 letters and a NUL. -1 and err. */
int sealed_nonce(char *nonce, struct oom_error *err);

/* For that reader. malloc'd; NULL and err. */
char *sealed_reply_make(const char *nonce, int status, const char *json, uid_t reader,
                        struct oom_error *err);

/* The JSON's text and the status of an answer that root or `head` gave to this very request; NULL
 * and err for everything else. malloc'd. `text` is changed. */
char *sealed_reply_open(char *text, const char *nonce, uid_t head, int *status,
                        struct oom_error *err);

#endif
