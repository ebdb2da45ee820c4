/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lib/files.h"
#include "agent/lib/webcall.h"
#include "agent/sched/ray.h"

enum {
    CONNECT_MS = 5000,
    TOTAL_MS = 60000,
    SLOW_BYTES_S = 100, /* slower than this for SLOW_S: the other side hangs */
    SLOW_S = 15,
    MAX_TOKEN_BYTES = 16 * 1024,
    MAX_WORDS_BYTES = 4096, /* of an error's answer */
};

struct ray_client {
    CURL *curl; /* kept: so is its connection */
    struct ray_options options;
};

struct transfer {
    CURL *curl;
    const struct ray_request *request;
    char words[MAX_WORDS_BYTES + 1];
    size_t words_length;
    bool ended; /* by the sink */
};

struct ray_client *ray_open(const struct ray_options *options, struct oom_error *err)
{
    struct ray_client *client = calloc(1, sizeof(*client));

    if (!client || !(client->curl = curl_easy_init())) {
        free(client);
        oom_errorf(err, "out of memory");
        return NULL;
    }
    client->options = *options;
    return client;
}

void ray_close(struct ray_client *client)
{
    if (!client)
        return;
    curl_easy_cleanup(client->curl);
    free(client);
}

const struct ray_options *ray_client_options(const struct ray_client *client)
{
    return &client->options;
}

static size_t receive(char *bytes, size_t size, size_t count, void *arg)
{
    struct transfer *t = arg;
    size_t length = size * count;
    long status = 0;

    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200 && status < 300) {
        if (!t->request->sink || t->request->sink(t->request->arg, bytes, length) == 0)
            return length;
        t->ended = true;
        return 0;
    }
    size_t room = MAX_WORDS_BYTES - t->words_length;
    size_t n = length < room ? length : room;
    memcpy(t->words + t->words_length, bytes, n);
    t->words_length += n;
    t->words[t->words_length] = '\0';
    return length;
}

/* Read for every request: a token that is renewed is used at once. */
static int add_token(const struct ray_client *client, struct curl_slist **headers,
                     struct oom_error *err)
{
    char *token = NULL, *line = NULL;
    size_t length;

    if (!client->options.token_file[0])
        return 0;
    if (file_read(client->options.token_file, MAX_TOKEN_BYTES, &token, &length, err) < 0)
        return -1;
    token[strcspn(token, "\r\n")] = '\0';
    int rc = asprintf(&line, "Authorization: Bearer %s", token) < 0
                 ? oom_errorf(err, "out of memory")
                 : 0;
    if (rc == 0) {
        struct curl_slist *longer = curl_slist_append(*headers, line);
        rc = longer ? 0 : oom_errorf(err, "out of memory");
        if (longer)
            *headers = longer;
        explicit_bzero(line, strlen(line));
        free(line);
    }
    explicit_bzero(token, length);
    free(token);
    return rc;
}

static void set_tls(CURL *curl, const struct ray_options *options)
{
    if (options->ca_file[0])
        curl_easy_setopt(curl, CURLOPT_CAINFO, options->ca_file);
    if (options->cert_file[0]) {
        curl_easy_setopt(curl, CURLOPT_SSLCERT, options->cert_file);
        curl_easy_setopt(curl, CURLOPT_SSLKEY, options->key_file);
    }
    if (options->insecure) {
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    }
}

/* Ray answers with a traceback of Python: its last line says what is wrong. */
static const char *last_line(char *words)
{
    size_t length = strlen(words);

    while (length && strchr("\r\n .", words[length - 1]))
        words[--length] = '\0';
    char *newline = strrchr(words, '\n');
    return newline ? newline + 1 : words;
}

long ray_http(struct ray_client *client, const struct ray_request *request, struct oom_error *err)
{
    CURL *curl = client->curl;
    struct transfer t = {.curl = curl, .request = request};
    char url[2048], range[48], type[128];
    struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
    long status = -1;

    snprintf(url, sizeof(url), "%s%s", request->url[0] == '/' ? client->options.url : "",
             request->url);
    if (!headers || add_token(client, &headers, err) < 0) {
        curl_slist_free_all(headers);
        return -1;
    }
    if (request->body) {
        snprintf(type, sizeof(type), "Content-Type: %s",
                 request->content_type ? request->content_type : "application/json");
        curl_slist_append(headers, type);
    }
    struct webcall call = {
        .url = url,
        .headers = headers,
        .body = request->body,
        .body_length = request->body_length,
        .connect_ms = CONNECT_MS,
        .total_ms = TOTAL_MS,
        .receive = receive,
        .arg = &t,
    };
    webcall_prepare(curl, &call);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES_S);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)SLOW_S);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
    if (request->from > 0) {
        snprintf(range, sizeof(range), "%lld-", (long long)request->from);
        curl_easy_setopt(curl, CURLOPT_RANGE, range);
    }
    set_tls(curl, &client->options);
    CURLcode rc = curl_easy_perform(curl);
    if (rc == CURLE_OK || t.ended)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    else
        oom_errorf(err, "no answer from %s: %s", client->options.url, curl_easy_strerror(rc));
    curl_slist_free_all(headers);
    if (status == 401 || status == 403)
        oom_errorf(err,
                   "%s refused us (%ld): its entry in ray_clusters needs token=FILE with a "
                   "valid token: %s",
                   client->options.url, status, last_line(t.words));
    else if (status >= 400)
        oom_errorf(err, "%s answered %ld: %s", client->options.url, status, last_line(t.words));
    return status;
}
