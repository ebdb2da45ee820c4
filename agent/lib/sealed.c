/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lib/sealed.h"

#include <munge.h>
#include <stdio.h>
#include <stdlib.h>

static char configured[108]; /* as long as the path of a socket can be */

void sealed_use_socket(const char *path)
{
    snprintf(configured, sizeof(configured), "%s", path);
}

static munge_ctx_t context_new(void)
{
    munge_ctx_t context = munge_ctx_create();
    const char *socket = secure_getenv("OOMRETRY_MUNGE_SOCKET");

    if (!socket || !*socket)
        socket = configured;
    if (context && *socket && munge_ctx_set(context, MUNGE_OPT_SOCKET, socket) != EMUNGE_SUCCESS) {
        munge_ctx_destroy(context);
        return NULL;
    }
    return context;
}

char *sealed_make(const void *bytes, size_t length, uid_t reader, struct oom_error *err)
{
    munge_ctx_t context = context_new();
    munge_err_t rc = context ? EMUNGE_SUCCESS : EMUNGE_NO_MEMORY;
    char *credential = NULL;

    if (context && reader != (uid_t)-1)
        rc = munge_ctx_set(context, MUNGE_OPT_UID_RESTRICTION, reader);
    if (rc == EMUNGE_SUCCESS)
        rc = munge_encode(&credential, context, bytes, (int)length);
    munge_ctx_destroy(context);
    if (rc == EMUNGE_SUCCESS)
        return credential;
    oom_errorf(err, "cannot make a MUNGE credential: %s", munge_strerror(rc));
    free(credential);
    return NULL;
}

char *sealed_open(const char *credential, size_t *length, uid_t *by, struct oom_error *err)
{
    munge_ctx_t context = context_new();
    void *inside = NULL;
    int inside_length = 0;
    gid_t gid;
    munge_err_t rc = context ? munge_decode(credential, context, &inside, &inside_length, by, &gid)
                             : EMUNGE_NO_MEMORY;

    munge_ctx_destroy(context);
    /* What a stale or replayed credential held is given too: it does not count. */
    if (rc != EMUNGE_SUCCESS || inside_length <= 0) {
        oom_errorf(err, "no valid MUNGE credential: %s",
                   rc != EMUNGE_SUCCESS ? munge_strerror(rc) : "it is empty");
        free(inside);
        return NULL;
    }
    *length = (size_t)inside_length;
    return inside; /* NUL-terminated by munge_decode */
}
