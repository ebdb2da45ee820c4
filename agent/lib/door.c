/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lib/door.h"

#include <errno.h>
#include <event2/listener.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "agent/lib/elapsed.h"
#include "agent/lib/log.h"

enum { SHUT_MS = 100, SAY_EVERY_MS = 60000 };

/* A listener hands its callbacks what belongs to the server: a door is found by its listener. */
static struct door {
    struct door *next;
    struct evconnlistener *listener; /* the server's */
    struct event *reopen;
    int64_t said_ms;
} * doors;

static void on_reopen(evutil_socket_t fd, short what, void *arg)
{
    struct door *door = arg;

    (void)fd;
    (void)what;
    evconnlistener_enable(door->listener);
}

/* Without a descriptor the connection stays in the queue, and libevent would try again at once and
 * write a line each time, for as long as somebody holds his connections open. */
static void on_failure(struct evconnlistener *listener, void *arg)
{
    struct door *door = doors;
    struct timeval wait = {0, SHUT_MS * 1000};
    int error = errno;
    int64_t now_ms = elapsed_ms();

    (void)arg;
    while (door && door->listener != listener)
        door = door->next;
    if (!door)
        return;
    evconnlistener_disable(listener);
    evtimer_add(door->reopen, &wait);
    if (door->said_ms && now_ms - door->said_ms < SAY_EVERY_MS)
        return;
    door->said_ms = now_ms;
    log_line(LOG_WARNING, "connections wait until others are closed: %s", strerror(error));
}

/* Each connection takes a descriptor. */
static void raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static struct door *door_new(struct event_base *base, struct evhttp_bound_socket *bound)
{
    struct door *door = bound ? calloc(1, sizeof(*door)) : NULL;

    if (!door)
        return NULL;
    door->reopen = evtimer_new(base, on_reopen, door);
    if (!door->reopen) {
        free(door);
        return NULL;
    }
    door->listener = evhttp_bound_socket_get_listener(bound);
    evconnlistener_set_error_cb(door->listener, on_failure);
    door->next = doors;
    doors = door;
    raise_limit();
    return door;
}

struct door *door_of_socket(struct event_base *base, struct evhttp *server, int fd,
                            struct oom_error *err)
{
    struct door *door = door_new(base, evhttp_accept_socket_with_handle(server, fd));

    if (!door)
        oom_errorf(err, "cannot serve on the socket: %s", strerror(errno));
    return door;
}

/* The address without the brackets of IPv6. */
static bool parse(const char *where, char *address, size_t size, long *port)
{
    const char *colon = strrchr(where, ':');
    size_t length = colon ? (size_t)(colon - where) : 0;
    char *end;

    if (!length || length >= size || colon[1] < '0' || colon[1] > '9')
        return false;
    *port = strtol(colon + 1, &end, 10);
    if (*where == '[' && where[length - 1] == ']') {
        where++;
        length -= 2;
    }
    snprintf(address, size, "%.*s", (int)length, where);
    return !*end && *port > 0 && *port <= UINT16_MAX;
}

struct door *door_at(struct event_base *base, struct evhttp *server, const char *where,
                     struct oom_error *err)
{
    char address[256];
    long port;

    if (!parse(where, address, sizeof(address), &port)) {
        oom_errorf(err, "\"%s\" is not ADDRESS:PORT", where);
        return NULL;
    }
    struct door *door =
        door_new(base, evhttp_bind_socket_with_handle(server, address, (ev_uint16_t)port));
    if (!door)
        oom_errorf(err, "cannot listen on %s: %s", where, strerror(errno));
    return door;
}

void door_close(struct door *door)
{
    if (!door)
        return;
    for (struct door **link = &doors; *link; link = &(*link)->next)
        if (*link == door) {
            *link = door->next;
            break;
        }
    event_free(door->reopen);
    free(door);
}
