/* SPDX-License-Identifier: Apache-2.0
 *
 * What every HTTP request of ours has in common: its own address and no proxy of the environment,
 * no signals, bounded time, a bounded answer. */
#ifndef AGENT_LIB_WEBCALL_H
#define AGENT_LIB_WEBCALL_H

#include <curl/curl.h>
#include <stddef.h>

struct webcall {
    const char *url;
    const char *socket;         /* of a unix socket, in the place of the URL's host; NULL: none */
    struct curl_slist *headers; /* stay the caller's until the call is over */
    const char *body;           /* POST; NULL: GET. Stays the caller's too */
    size_t body_length;
    long connect_ms, total_ms; /* 0: curl's own for connecting */
    curl_write_callback receive;
    void *arg;
};

/* The body as text. */
void webcall_post(struct webcall *call, const char *text);

/* Forgets what the handle was set to before; its connection stays. Other options may follow. */
void webcall_prepare(CURL *curl, const struct webcall *call);

/* An answer that is kept as a whole, at most max_bytes of it: more breaks the call off. `bytes` is
 * terminated, NULL without any, and the owner's to free. */
struct webcall_answer {
    size_t max_bytes;
    char *bytes;
    size_t length;
};

/* The `receive` for it; `arg` is the answer. */
size_t webcall_collect(char *bytes, size_t size, size_t count, void *arg);

#endif
