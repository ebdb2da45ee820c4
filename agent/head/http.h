/* SPDX-License-Identifier: Apache-2.0
 *
 * The service over HTTP: on a unix socket, where the kernel says who calls, and on TCP, where the
 * body is a MUNGE credential, which does. */
#ifndef AGENT_HEAD_HTTP_H
#define AGENT_HEAD_HTTP_H

#include <event2/event.h>
#include <sys/types.h>

#include "agent/head/service.h"
#include "agent/lib/config.h"

struct http;

/* `unix_fd` is a bound, listening socket (made while still privileged); `tcp_listen` is
 * "ADDRESS:PORT" or NULL. The service must outlive it. */
struct http *http_open(struct event_base *base, struct service *service,
                       const struct config *config, int unix_fd, const char *tcp_listen,
                       struct oom_error *err);
void http_close(struct http *http);

#endif
