/* SPDX-License-Identifier: Apache-2.0
 *
 * The head role: the service behind its sockets. */
#include <signal.h>
#include <string.h>

#include "agent/head/http.h"
#include "agent/lib/log.h"
#include "agent/node/node.h"

static void on_term(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    event_base_loopbreak(arg);
}

int head_run(const struct config *config, int unix_fd)
{
    struct oom_error err = {""};
    struct service service = {0};
    struct event_base *base = event_base_new();
    struct event *term = base ? evsignal_new(base, SIGTERM, on_term, base) : NULL;
    struct event *interrupt = base ? evsignal_new(base, SIGINT, on_term, base) : NULL;
    struct http *http = NULL;
    int status = 1;

    if (!term || !interrupt || event_add(term, NULL) < 0 || event_add(interrupt, NULL) < 0) {
        log_line(LOG_ERROR, "cannot make an event loop");
        goto out;
    }
    if (service_open(&service, config->database, &err) < 0) {
        log_line(LOG_ERROR, "%s", err.text);
        goto out;
    }
    service.cluster = config->cluster;
    service.limits = &config->limits;
    http = http_open(base, &service, config, unix_fd, config->head_listen, &err);
    if (!http) {
        log_line(LOG_ERROR, "%s", err.text);
        goto out;
    }
    log_line(LOG_NOTICE, "head: serving on %s%s%s, database %s", config->head_socket,
             config->head_listen ? " and " : "", config->head_listen ? config->head_listen : "",
             config->database);
    event_base_dispatch(base);
    status = 0;
out:
    http_close(http);
    service_close(&service);
    if (term)
        event_free(term);
    if (interrupt)
        event_free(interrupt);
    if (base)
        event_base_free(base);
    return status;
}
