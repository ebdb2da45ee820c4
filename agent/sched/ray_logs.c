/* SPDX-License-Identifier: Apache-2.0 */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lib/jsonget.h"
#include "agent/sched/ray.h"

enum { MAX_NAMES_BYTES = 4 * 1024 * 1024 };

/* --- the driver's log ---------------------------------------------------------------------------
 */

struct window {
    int64_t left, given;
    ray_sink_f *sink;
    void *arg;
};

static int through_window(void *arg, const char *bytes, size_t length)
{
    struct window *window = arg;
    size_t n = (int64_t)length > window->left ? (size_t)window->left : length;

    if (n && window->sink(window->arg, bytes, n) != 0)
        return -1;
    window->left -= (int64_t)n;
    window->given += (int64_t)n;
    return n < length || window->left == 0;
}

/* 1: this node's agent does not answer, or not with ranges. */
static int from_agent(struct ray_client *client, const json_t *job, int64_t *offset, int64_t limit,
                      ray_sink_f *sink, void *arg, struct oom_error *err)
{
    const char *agent = json_get_string(job, "driver_agent_http_address", "");
    const char *id = json_get_string(job, "submission_id", "");
    struct window window = {limit, 0, sink, arg};
    char url[1024];

    if (strncmp(agent, "http://", 7) != 0 && strncmp(agent, "https://", 8) != 0)
        return 1;
    char *escaped = curl_easy_escape(NULL, id, 0);
    int n = snprintf(url, sizeof(url), "%s/logs/job-driver-%s.log", agent, escaped ? escaped : "");
    curl_free(escaped);
    if (n < 0 || (size_t)n >= sizeof(url))
        return 1;
    struct ray_request request = {
        .method = "GET", .url = url, .from = *offset, .sink = through_window, .arg = &window};
    long status = ray_http(client, &request, err);
    if (status == 416) /* nothing new */
        return 0;
    *offset += window.given;
    if (status == 206 || (status == 200 && request.from == 0))
        return 0;
    return window.given ? -1 : 1;
}

static int from_dashboard(struct ray_client *client, const json_t *job, int64_t *offset,
                          int64_t limit, ray_sink_f *sink, void *arg, struct oom_error *err)
{
    char path[1024];
    char *escaped = curl_easy_escape(NULL, json_get_string(job, "submission_id", ""), 0);
    struct ray_unquote unquote = {.skip = *offset, .left = limit, .sink = sink, .arg = arg};
    struct ray_request request = {
        .method = "GET", .url = path, .sink = ray_unquote_feed, .arg = &unquote};

    snprintf(path, sizeof(path), "/api/jobs/%.900s/logs", escaped ? escaped : "");
    curl_free(escaped);
    long status = ray_http(client, &request, err);
    *offset += unquote.given;
    return status == 200 ? 0 : -1;
}

int ray_driver_log(struct ray_client *client, const json_t *job, int64_t *offset, int64_t limit,
                   ray_sink_f *sink, void *arg, struct oom_error *err)
{
    int rc = from_agent(client, job, offset, limit, sink, arg, err);

    return rc == 1 ? from_dashboard(client, job, offset, limit, sink, arg, err) : rc;
}

/* --- {"logs":"…"} as it arrives -----------------------------------------------------------------
 */

enum { BEFORE, TEXT, ESCAPE, HEX, AFTER };

static int put(struct ray_unquote *u, const char *bytes, size_t length)
{
    while (length && u->skip) {
        bytes++;
        length--;
        u->skip--;
    }
    if ((int64_t)length > u->left)
        length = (size_t)u->left;
    if (length && u->sink(u->arg, bytes, length) != 0)
        return -1;
    u->left -= (int64_t)length;
    u->given += (int64_t)length;
    return 0;
}

static int put_code(struct ray_unquote *u)
{
    char out[4];
    unsigned c = u->code;

    if (c >= 0xd800 && c < 0xdc00) {
        u->high = c;
        return 0;
    }
    if (c >= 0xdc00 && c < 0xe000)
        c = u->high ? 0x10000 + ((u->high - 0xd800) << 10) + (c - 0xdc00) : 0xfffd;
    u->high = 0;
    if (c < 0x80) {
        out[0] = (char)c;
        return put(u, out, 1);
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return put(u, out, 2);
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return put(u, out, 3);
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return put(u, out, 4);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int escaped(struct ray_unquote *u, char c)
{
    static const char from[] = "ntr\"\\/bf", to[] = "\n\t\r\"\\/\b\f";
    const char *found = c ? strchr(from, c) : NULL;

    u->state = TEXT;
    if (c == 'u') {
        u->state = HEX;
        u->digits = 0;
        u->code = 0;
        return 0;
    }
    return found ? put(u, &to[found - from], 1) : -1;
}

int ray_unquote_feed(void *unquote, const char *bytes, size_t length)
{
    struct ray_unquote *u = unquote;
    const char *end = bytes + length;

    while (bytes < end && u->state != AFTER) {
        if (u->left == 0)
            return 1;
        if (u->state == TEXT) {
            const char *p = bytes;
            while (p < end && *p != '"' && *p != '\\')
                p++;
            if (put(u, bytes, (size_t)(p - bytes)) != 0)
                return -1;
            bytes = p;
            if (p < end) {
                u->state = *p == '"' ? AFTER : ESCAPE;
                bytes++;
            }
            continue;
        }
        char c = *bytes++;
        if (u->state == BEFORE) {
            /* The first string is the key, "logs"; its value is behind the third quote. */
            if (c == '"' && ++u->digits == 3)
                u->state = TEXT;
        } else if (u->state == ESCAPE) {
            if (escaped(u, c) != 0)
                return -1;
        } else if (u->state == HEX) {
            int digit = hex_digit(c);
            if (digit < 0)
                return -1;
            u->code = u->code << 4 | (unsigned)digit;
            if (++u->digits == 4) {
                u->state = TEXT;
                if (put_code(u) != 0)
                    return -1;
            }
        }
    }
    return 0;
}

/* --- other logs of a node -----------------------------------------------------------------------
 */

struct text {
    char *bytes;
    size_t length;
};

static int collect(void *arg, const char *bytes, size_t length)
{
    struct text *text = arg;

    if (text->length + length > MAX_NAMES_BYTES)
        return -1;
    char *grown = realloc(text->bytes, text->length + length);
    if (!grown)
        return -1;
    memcpy(grown + text->length, bytes, length);
    text->bytes = grown;
    text->length += length;
    return 0;
}

int ray_log_names(struct ray_client *client, const char *node, const char *glob, json_t **names,
                  struct oom_error *err)
{
    char path[1024];
    struct text text = {NULL, 0};
    struct ray_request request = {.method = "GET", .url = path, .sink = collect, .arg = &text};
    char *node_part = curl_easy_escape(NULL, node, 0), *glob_part = curl_easy_escape(NULL, glob, 0);

    *names = NULL;
    snprintf(path, sizeof(path), "/api/v0/logs?node_id=%.400s&glob=%.400s",
             node_part ? node_part : "", glob_part ? glob_part : "");
    curl_free(node_part);
    curl_free(glob_part);
    long status = ray_http(client, &request, err);
    json_t *answer = status == 200 ? json_loadb(text.bytes, text.length, 0, NULL) : NULL;
    free(text.bytes);
    if (!answer)
        return -1;
    /* By kind: {"worker_err":["worker-….err"],"raylet":["raylet.out"],…} */
    json_t *kinds = json_object_get(json_object_get(answer, "data"), "result"), *list, *name;
    const char *kind;
    size_t i;
    *names = json_array();
    json_object_foreach(kinds, kind, list)
    {
        json_array_foreach(list, i, name)
        {
            if (json_is_string(name))
                json_array_append(*names, name);
        }
    }
    json_decref(answer);
    return 0;
}

int ray_log_tail(struct ray_client *client, const char *node, const char *name, int lines,
                 ray_sink_f *sink, void *arg, struct oom_error *err)
{
    char path[1024];
    struct ray_request request = {.method = "GET", .url = path, .sink = sink, .arg = arg};
    char *node_part = curl_easy_escape(NULL, node, 0), *name_part = curl_easy_escape(NULL, name, 0);

    snprintf(path, sizeof(path), "/api/v0/logs/file?node_id=%.400s&filename=%.400s&lines=%d",
             node_part ? node_part : "", name_part ? name_part : "", lines);
    curl_free(node_part);
    curl_free(name_part);
    return ray_http(client, &request, err) == 200 ? 0 : -1;
}
