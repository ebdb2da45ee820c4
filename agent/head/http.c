/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/head/http.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/lib/door.h"
#include "agent/lib/log.h"
#include "agent/lib/sealed.h"
#include "agent/lib/sealed_reply.h"
#include "agent/lib/urlquery.h"

enum {
    MAX_HEADERS_BYTES = 32 * 1024,
    MAX_BODY_BYTES = 1024 * 1024, /* as much as a MUNGE credential holds */
    TIMEOUT_S = 20,
    MAX_PATH_BYTES = 512,
};

struct http {
    struct evhttp *server; /* of the unix socket */
    struct evhttp *tcp;
    struct door *unix_door, *tcp_door;
    struct service *service;
    const struct config *config;
};

static bool is_admin(const struct http *http, uid_t uid)
{
    if (uid == 0 || uid == geteuid())
        return true;
    for (size_t i = 0; i < http->config->admin_count; i++) {
        const struct passwd *pw = getpwnam(http->config->admins[i]);
        if (pw && pw->pw_uid == uid)
            return true;
    }
    return false;
}

static bool peer_uid(struct evhttp_request *request, uid_t *uid)
{
    struct evhttp_connection *connection = evhttp_request_get_connection(request);
    struct bufferevent *bev = connection ? evhttp_connection_get_bufferevent(connection) : NULL;
    struct ucred peer;
    socklen_t length = sizeof(peer);

    if (!bev || getsockopt(bufferevent_getfd(bev), SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
        return false;
    *uid = peer.uid;
    return true;
}

/* Over TCP the body of the HTTP request is a MUNGE credential, and what it holds is the request:
 * "METHOD path nonce", a line feed, the JSON. So who asks cannot be separated from what is asked,
 * nobody on the network reads or changes it, and MUNGE refuses replays. The answer is sealed for
 * him (agent/lib/sealed_reply.h). */
static char *munge_request(struct evhttp_request *request, uid_t *uid, size_t *length)
{
    struct evbuffer *input = evhttp_request_get_input_buffer(request);
    size_t size = evbuffer_get_length(input);
    char *credential = size ? malloc(size + 1) : NULL;

    if (!credential)
        return NULL;
    evbuffer_copyout(input, credential, size);
    credential[size] = '\0';
    char *payload = sealed_open(credential, length, uid, NULL);
    free(credential);
    return payload;
}

/* `nonce` NULL: as it is. */
static void reply_json(struct evhttp_request *request, int status, const json_t *json,
                       const char *nonce, uid_t reader)
{
    struct evbuffer *body = evbuffer_new();
    char *text = json_dumps(json, JSON_COMPACT);
    struct oom_error err = {""};

    if (text && nonce) {
        char *sealed = sealed_reply_make(nonce, status, text, reader, &err);
        if (!sealed)
            log_line(LOG_WARNING, "%s", err.text);
        free(text);
        text = sealed;
    }
    if (body && text) {
        evbuffer_add(body, text, strlen(text));
        evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
                          nonce ? "text/plain" : "application/json");
        evhttp_send_reply(request, status, NULL, body);
    } else {
        evhttp_send_error(request, 500, NULL);
    }
    free(text);
    if (body)
        evbuffer_free(body);
}

static void refuse(struct evhttp_request *request, int status, const char *why)
{
    json_t *json = json_pack("{s:s}", "error", why);

    reply_json(request, status, json, NULL, 0);
    json_decref(json);
}

/* Runs one request; `bytes` is its JSON body. With a nonce the answer is sealed. */
static void serve(struct http *http, struct evhttp_request *request, uid_t uid, const char *method,
                  const char *uri, const char *nonce, const char *bytes, size_t length)
{
    char path[MAX_PATH_BYTES];
    json_t *body = length ? json_loadb(bytes, length, JSON_REJECT_DUPLICATES, NULL) : NULL;
    json_t *query = urlquery_split(uri, path, sizeof(path));

    if (length && !json_is_object(body)) {
        refuse(request, 400, "the body is not a JSON object");
    } else {
        struct service_request call = {.method = method,
                                       .path = path,
                                       .query = query,
                                       .body = body,
                                       .uid = uid,
                                       .admin = is_admin(http, uid)};
        json_t *reply = NULL;
        int status = service_handle(http->service, &call, &reply);
        reply_json(request, status, reply, nonce, uid);
        json_decref(reply);
    }
    json_decref(body);
    json_decref(query);
}

static void on_unix(struct evhttp_request *request, void *arg)
{
    struct evbuffer *input = evhttp_request_get_input_buffer(request);
    size_t length = evbuffer_get_length(input);
    bool get = evhttp_request_get_command(request) == EVHTTP_REQ_GET;
    const char *bytes = length ? (const char *)evbuffer_pullup(input, -1) : NULL;
    uid_t uid;

    if (!peer_uid(request, &uid) || (length && !bytes))
        refuse(request, 401, "the kernel does not say who calls");
    else
        serve(arg, request, uid, get ? "GET" : "POST", evhttp_request_get_uri(request), NULL, bytes,
              length);
}

static void on_tcp(struct evhttp_request *request, void *arg)
{
    size_t length = 0;
    uid_t uid;
    char *text = munge_request(request, &uid, &length);

    if (!text) {
        refuse(request, 401, "who calls is not known: the body is not a valid MUNGE credential");
        return;
    }
    char *feed = memchr(text, '\n', length), *save = NULL;
    if (feed)
        *feed = '\0';
    const char *method = feed ? strtok_r(text, " ", &save) : NULL;
    const char *path = method ? strtok_r(NULL, " ", &save) : NULL;
    const char *nonce = path ? strtok_r(NULL, " ", &save) : NULL;
    if (nonce)
        serve(arg, request, uid, method, path, nonce, feed + 1, length - (size_t)(feed + 1 - text));
    else
        refuse(request, 400, "that is no request of this version of oomretry");
    free(text);
}

static struct evhttp *server_new(struct event_base *base, struct http *http,
                                 void (*on_request)(struct evhttp_request *, void *))
{
    struct evhttp *server = evhttp_new(base);

    if (!server)
        return NULL;
    evhttp_set_allowed_methods(server, EVHTTP_REQ_GET | EVHTTP_REQ_POST);
    evhttp_set_max_headers_size(server, MAX_HEADERS_BYTES);
    evhttp_set_max_body_size(server, MAX_BODY_BYTES);
    evhttp_set_timeout(server, TIMEOUT_S);
    evhttp_set_gencb(server, on_request, http);
    return server;
}

struct http *http_open(struct event_base *base, struct service *service,
                       const struct config *config, int unix_fd, const char *tcp_listen,
                       struct oom_error *err)
{
    struct http *http = calloc(1, sizeof(*http));

    if (!http) {
        oom_errorf(err, "out of memory");
        return NULL;
    }
    http->service = service;
    http->config = config;
    http->server = server_new(base, http, on_unix);
    http->tcp = tcp_listen ? server_new(base, http, on_tcp) : NULL;
    if (!http->server || (tcp_listen && !http->tcp)) {
        oom_errorf(err, "out of memory");
    } else if (!(http->unix_door = door_of_socket(base, http->server, unix_fd, err))) {
        oom_error_prefix(err, "head_socket");
    } else if (tcp_listen && !(http->tcp_door = door_at(base, http->tcp, tcp_listen, err))) {
        oom_error_prefix(err, "head_listen");
    } else {
        return http;
    }
    http_close(http);
    return NULL;
}

void http_close(struct http *http)
{
    if (!http)
        return;
    door_close(http->unix_door);
    door_close(http->tcp_door);
    if (http->server)
        evhttp_free(http->server);
    if (http->tcp)
        evhttp_free(http->tcp);
    free(http);
}
