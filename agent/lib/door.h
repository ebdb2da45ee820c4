/* SPDX-License-Identifier: Apache-2.0
 *
 * Where an HTTP server takes its connections, of strangers too. */
#ifndef AGENT_LIB_DOOR_H
#define AGENT_LIB_DOOR_H

#include <event2/event.h>
#include <event2/http.h>

#include "oomretry/error.h"

struct door;

/* On a socket that listens already, which becomes the server's. NULL and err. */
struct door *door_of_socket(struct event_base *base, struct evhttp *server, int fd,
                            struct oom_error *err);

/* On "ADDRESS:PORT", as "127.0.0.1:6821" or "[::]:6821". NULL and err. */
struct door *door_at(struct event_base *base, struct evhttp *server, const char *where,
                     struct oom_error *err);

/* Before its server is freed. */
void door_close(struct door *door);

#endif
