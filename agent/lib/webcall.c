/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lib/webcall.h"

#include <stdlib.h>
#include <string.h>

void webcall_post(struct webcall *call, const char *text)
{
    call->body = text;
    call->body_length = text ? strlen(text) : 0;
}

void webcall_prepare(CURL *curl, const struct webcall *call)
{
    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_URL, call->url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, call->connect_ms);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, call->total_ms);
    /* Not "Mozilla...": to browsers Ray shows environment variables blackened. */
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "oomretry/" OOMRETRY_VERSION);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, call->headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, call->receive);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, call->arg);
    if (call->socket)
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, call->socket);
    if (call->body) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call->body);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_length);
    }
}

size_t webcall_collect(char *bytes, size_t size, size_t count, void *arg)
{
    struct webcall_answer *answer = arg;
    size_t length = size * count;

    if (length > answer->max_bytes - answer->length)
        return 0;
    char *grown = realloc(answer->bytes, answer->length + length + 1);
    if (!grown)
        return 0;
    memcpy(grown + answer->length, bytes, length);
    answer->bytes = grown;
    answer->length += length;
    grown[answer->length] = '\0';
    return length;
}
