/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/lib/door.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/log.h"
#include "agent/lib/sealed.h"
#include "agent/node/evidence.h"

enum {
    MAX_HEADERS_BYTES = 32 * 1024,
    MAX_BODY_BYTES = 16 * 1024,
    MAX_ANSWERS = 4,
    TIMEOUT_S = 60,
    MAX_NAME_BYTES = 300,
    MAX_NONCE_BYTES = 64,
    MAX_ANSWER_BYTES = 128 * 1024 * 1024, /* of one answer, before it is sealed */
};

struct port {
    const struct config *config;
    int root_fd;
    int answers;
};

/* One that is being given. */
struct answer {
    struct port *port;
    struct evhttp_request *request;
    struct bufferevent *pipe;
    uid_t reader;
    char nonce[MAX_NONCE_BYTES + 1];
    int count;
    int64_t bytes;
    char name[MAX_NAME_BYTES]; /* of the piece that is on its way; "" between two */
    size_t length;
};

static void refuse(struct evhttp_request *request, int status, const char *why)
{
    struct evbuffer *body = evbuffer_new();

    if (body)
        evbuffer_add_printf(body, "%s\n", why);
    evhttp_send_reply(request, status, NULL, body);
    if (body)
        evbuffer_free(body);
}

/* --- the answer ---------------------------------------------------------------------------------
 */

static void end_answer(struct answer *a)
{
    if (a->request) {
        evhttp_connection_set_closecb(evhttp_request_get_connection(a->request), NULL, NULL);
        evhttp_send_reply_end(a->request);
    }
    a->port->answers--;
    bufferevent_free(a->pipe);
    free(a);
}

/* The asker has hung up; the request goes with its connection, and the reader ends at the pipe. */
static void on_gone(struct evhttp_connection *connection, void *arg)
{
    struct answer *a = arg;

    (void)connection;
    a->request = NULL;
    end_answer(a);
}

static int send_piece(struct answer *a, const char *name, const char *bytes, size_t length)
{
    json_t *head = json_pack("{s:s, s:i, s:s}", "nonce", a->nonce, "n", a->count++, "name", name);
    char *text = head ? json_dumps(head, JSON_COMPACT) : NULL;
    size_t head_length = text ? strlen(text) : 0;
    char *piece = text ? malloc(head_length + 1 + length) : NULL, *credential = NULL;
    struct evbuffer *chunk = evbuffer_new();
    struct oom_error err = {""};

    if (piece && chunk) {
        memcpy(piece, text, head_length);
        piece[head_length] = '\n';
        memcpy(piece + head_length + 1, bytes, length);
        credential = sealed_make(piece, head_length + 1 + length, a->reader, &err);
        if (!credential)
            log_line(LOG_WARNING, "%s", err.text);
    }
    if (credential) {
        evbuffer_add_printf(chunk, "%s\n", credential);
        evhttp_send_reply_chunk(a->request, chunk);
    }
    if (chunk)
        evbuffer_free(chunk);
    free(piece);
    free(text);
    json_decref(head);
    int rc = credential ? 0 : -1;
    free(credential);
    return rc;
}

/* "NAME LENGTH"; the reader has become a user, who may have got hold of it. */
static int take_heading(struct answer *a, struct evbuffer *input)
{
    char *line = evbuffer_readln(input, NULL, EVBUFFER_EOL_LF);
    char *space = line ? strchr(line, ' ') : NULL, *end = NULL;

    if (!line)
        return evbuffer_get_length(input) > MAX_NAME_BYTES ? -1 : 1;
    unsigned long length = space ? strtoul(space + 1, &end, 10) : 0;
    bool good = space && space > line && (size_t)(space - line) < sizeof(a->name) &&
                end != space + 1 && *end == '\0' && length <= SEALED_MAX_BYTES - 1024;
    if (good) {
        snprintf(a->name, sizeof(a->name), "%.*s", (int)(space - line), line);
        a->length = length;
        a->bytes += (int64_t)length;
    }
    free(line);
    return good && a->bytes <= MAX_ANSWER_BYTES ? 0 : -1;
}

/* 0: go on, 1: more must come first, -1: that is no answer, or the last piece was given. */
static int take(struct answer *a, struct evbuffer *input)
{
    if (!a->name[0]) {
        int rc = take_heading(a, input);
        if (rc != 0)
            return rc;
        if (strcmp(a->name, "-") == 0) {
            send_piece(a, "", "", 0);
            return -1;
        }
    }
    if (evbuffer_get_length(input) < a->length)
        return 1;
    const char *bytes =
        a->length ? (const char *)evbuffer_pullup(input, (ev_ssize_t)a->length) : "";
    int rc = bytes ? send_piece(a, a->name, bytes, a->length) : -1;
    evbuffer_drain(input, a->length);
    a->name[0] = '\0';
    return rc;
}

static void on_pieces(struct bufferevent *bev, void *arg)
{
    struct answer *a = arg;
    int rc;

    do
        rc = take(a, bufferevent_get_input(bev));
    while (rc == 0);
    if (rc < 0)
        end_answer(a);
}

static void on_end(struct bufferevent *bev, short what, void *arg)
{
    (void)bev;
    (void)what;
    end_answer(arg);
}

/* --- the question -------------------------------------------------------------------------------
 */

static int hand_over(int root_fd, const struct evidence_question *question, int out)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec iov = {(void *)question, sizeof(*question)};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &out, sizeof(out));
    return sendmsg(root_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(*question)
               ? 0
               : -1;
}

static void give_answer(struct port *port, struct evhttp_request *request,
                        const struct evidence_question *question, uid_t reader, const char *nonce)
{
    struct timeval limit = {TIMEOUT_S, 0};
    struct answer *a = calloc(1, sizeof(*a));
    int ends[2] = {-1, -1};

    if (!a || pipe2(ends, O_CLOEXEC) < 0 || hand_over(port->root_fd, question, ends[1]) < 0) {
        refuse(request, 503, "the agent cannot read it now");
        goto fail;
    }
    close(ends[1]);
    ends[1] = -1;
    evutil_make_socket_nonblocking(ends[0]);
    a->pipe =
        bufferevent_socket_new(evhttp_connection_get_base(evhttp_request_get_connection(request)),
                               ends[0], BEV_OPT_CLOSE_ON_FREE);
    if (!a->pipe) {
        refuse(request, 503, "out of memory");
        goto fail;
    }
    a->port = port;
    a->request = request;
    a->reader = reader;
    snprintf(a->nonce, sizeof(a->nonce), "%s", nonce);
    port->answers++;
    bufferevent_setcb(a->pipe, on_pieces, NULL, on_end, a);
    bufferevent_set_timeouts(a->pipe, &limit, NULL);
    evhttp_connection_set_closecb(evhttp_request_get_connection(request), on_gone, a);
    evhttp_send_reply_start(request, 200, NULL);
    bufferevent_enable(a->pipe, EV_READ);
    return;
fail:
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    free(a);
}

/* "POST /v1/ray/logs", a line feed, the JSON. */
static bool parse(char *text, struct evidence_question *question, char *nonce, size_t nonce_size)
{
    static const char *const routes[] = {
        [EVIDENCE_LOGS] = "POST /v1/ray/logs",
        [EVIDENCE_DRIVER] = "POST /v1/ray/driver",
        [EVIDENCE_PACKAGE] = "POST /v1/ray/package",
    };
    static const char *const names[] = {
        [EVIDENCE_LOGS] = "job", [EVIDENCE_DRIVER] = "submission", [EVIDENCE_PACKAGE] = "package"};
    char *feed = strchr(text, '\n');
    json_t *body = feed ? json_loads(feed + 1, JSON_REJECT_DUPLICATES, NULL) : NULL;
    bool known = false;

    memset(question, 0, sizeof(*question));
    if (feed)
        *feed = '\0';
    for (int i = 0; body && i < (int)(sizeof(routes) / sizeof(routes[0])); i++) {
        if (strcmp(text, routes[i]) != 0)
            continue;
        question->what = i;
        snprintf(question->session, sizeof(question->session), "%s",
                 json_get_string(body, "session", ""));
        snprintf(question->name, sizeof(question->name), "%s", json_get_string(body, names[i], ""));
        snprintf(nonce, nonce_size, "%s", json_get_string(body, "nonce", ""));
        known = evidence_question_is_sound(question);
    }
    json_decref(body);
    return known;
}

static void on_request(struct evhttp_request *request, void *arg)
{
    struct port *port = arg;
    struct evbuffer *input = evhttp_request_get_input_buffer(request);
    struct evidence_question question;
    char nonce[MAX_NONCE_BYTES + 1];
    size_t length;
    uid_t uid = (uid_t)-1;

    evbuffer_add(input, "", 1);
    const char *credential = (const char *)evbuffer_pullup(input, -1);
    char *text = credential ? sealed_open(credential, &length, &uid, NULL) : NULL;
    if (!text)
        refuse(request, 401, "who calls is not known: the body is not a valid MUNGE credential");
    else if (uid != 0 && uid != geteuid())
        refuse(request, 403, "only root and the head's user are answered");
    else if (!parse(text, &question, nonce, sizeof(nonce)))
        refuse(request, 400, "there is nothing of that name");
    else if (port->answers >= MAX_ANSWERS)
        refuse(request, 503, "too many questions at once");
    else
        give_answer(port, request, &question, uid, nonce);
    free(text);
}

/* --- the process --------------------------------------------------------------------------------
 */

static void on_term(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    event_base_loopbreak(arg);
}

int evidence_port_run(const struct config *config, int root_fd)
{
    struct port port = {.config = config, .root_fd = root_fd};
    struct event_base *base = event_base_new();
    struct event *term = base ? evsignal_new(base, SIGTERM, on_term, base) : NULL;
    struct evhttp *server = term ? evhttp_new(base) : NULL;
    struct door *door = NULL;
    struct oom_error err = {""};
    int status = 1;

    if (!server || event_add(term, NULL) < 0) {
        log_line(LOG_ERROR, "cannot make an event loop");
    } else if (!(door = door_at(base, server, config->node_listen, &err))) {
        log_line(LOG_ERROR, "node_listen: %s", err.text);
    } else {
        evhttp_set_allowed_methods(server, EVHTTP_REQ_POST);
        evhttp_set_max_headers_size(server, MAX_HEADERS_BYTES);
        evhttp_set_max_body_size(server, MAX_BODY_BYTES);
        evhttp_set_timeout(server, TIMEOUT_S);
        evhttp_set_gencb(server, on_request, &port);
        log_line(LOG_NOTICE, "node: serving evidence on %s", config->node_listen);
        event_base_dispatch(base);
        status = 0;
    }
    door_close(door);
    if (server)
        evhttp_free(server);
    if (term)
        event_free(term);
    if (base)
        event_base_free(base);
    return status;
}
