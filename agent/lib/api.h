/* SPDX-License-Identifier: Apache-2.0
 *
 * The client side of the head's interface, over whichever transport is at hand: a local database
 * (embedded), the head's unix socket, or HTTP with a MUNGE credential. */
#ifndef AGENT_LIB_API_H
#define AGENT_LIB_API_H

#include <jansson.h>

#include "oomretry/error.h"

struct api;

/* A head: `where` is a socket's path ("/run/oomretry/head.sock") or a URL
 * ("http://head:6821"). At a URL only root and `head_user` ("" : nobody else) are taken for the
 * head. No traffic yet. `timeout_ms` bounds each call. */
struct api *api_open_head(const char *where, const char *head_user, int timeout_ms,
                          struct oom_error *err);

/* For jobs of a cluster: the configured head and nothing else, since two books about one job would
 * contradict each other. */
struct api *api_open_cluster(int timeout_ms, struct oom_error *err);

/* What fits: --db FILE, else $OOMRETRY_HEAD, else the configured head, else the local database. */
struct api *api_open_default(const char *db_path, int timeout_ms, struct oom_error *err);
void api_set_timeout(struct api *api, int timeout_ms);
void api_close(struct api *api);

/* "the local database /home/…" or "the head at …", for messages. */
const char *api_where(const struct api *api);

/* One call; `path` may carry a query ("/v1/history?user=alice"). Returns the HTTP status and a new
 * reference in *reply, or -1 when there was no answer. From 400 on err holds the error's text too.
 * `body` is borrowed and may be NULL. */
int api_call(struct api *api, const char *method, const char *path, const json_t *body,
             json_t **reply, struct oom_error *err);

#endif
