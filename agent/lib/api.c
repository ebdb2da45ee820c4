/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lib/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/head/service.h"
#include "agent/lib/config.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/paths.h"
#include "agent/lib/sealed.h"
#include "agent/lib/urlquery.h"
#include "agent/lib/webcall.h"

enum { MAX_REPLY_BYTES = 64 * 1024 * 1024 };

struct api {
    bool embedded;
    struct service service;
    char socket[108]; /* of a unix socket; "" for a URL */
    char base[512];
    int timeout_ms;
    char where[600];
};

/* The user's own database (NULL: the default one in the state directory). */
static struct api *api_open_embedded(const char *db_path, struct oom_error *err)
{
    struct api *api = calloc(1, sizeof(*api));
    char path[4096];

    if (!api) {
        oom_errorf(err, "out of memory");
        return NULL;
    }
    if (db_path) {
        snprintf(path, sizeof(path), "%s", db_path);
    } else {
        if (paths_state_dir(path, sizeof(path) - sizeof("/oomretry.db"), err) < 0)
            goto fail;
        strcat(path, "/oomretry.db");
    }
    if (service_open(&api->service, path, err) < 0)
        goto fail;
    api->embedded = true;
    snprintf(api->where, sizeof(api->where), "the local database %s", path);
    return api;
fail:
    free(api);
    return NULL;
}

struct api *api_open_head(const char *where, int timeout_ms, struct oom_error *err)
{
    struct api *api = calloc(1, sizeof(*api));

    if (!api) {
        oom_errorf(err, "out of memory");
        return NULL;
    }
    api->timeout_ms = timeout_ms;
    if (where[0] == '/') {
        if (strlen(where) >= sizeof(api->socket)) {
            oom_errorf(err, "the socket's path %s is too long", where);
            api_close(api);
            return NULL;
        }
        strcpy(api->socket, where);
        strcpy(api->base, "http://localhost");
    } else {
        snprintf(api->base, sizeof(api->base), "%s", where);
        size_t n = strlen(api->base);
        if (n && api->base[n - 1] == '/')
            api->base[n - 1] = '\0';
    }
    snprintf(api->where, sizeof(api->where), "the head at %s", where);
    return api;
}

struct api *api_open_cluster(int timeout_ms, struct oom_error *err)
{
    const char *head = secure_getenv("OOMRETRY_HEAD");
    struct config config;

    if (head && *head)
        return api_open_head(head, timeout_ms, err);
    if (config_load(NULL, &config, err) < 0)
        return NULL;
    struct api *api = api_open_head(config.head_url && !config.head_is_local ? config.head_url
                                                                             : config.head_socket,
                                    timeout_ms, err);
    config_free(&config);
    return api;
}

struct api *api_open_default(const char *db_path, int timeout_ms, struct oom_error *err)
{
    const char *head = secure_getenv("OOMRETRY_HEAD");
    struct config config;
    struct api *api;

    if (db_path)
        return api_open_embedded(db_path, err);
    if (head && *head)
        return api_open_head(head, timeout_ms, err);
    if (config_load(NULL, &config, err) < 0)
        return NULL;
    if (config.head_url && !config.head_is_local)
        api = api_open_head(config.head_url, timeout_ms, err);
    else if (access(config.head_socket, R_OK | W_OK) == 0)
        api = api_open_head(config.head_socket, timeout_ms, err);
    else
        api = api_open_embedded(NULL, err);
    config_free(&config);
    return api;
}

void api_set_timeout(struct api *api, int timeout_ms)
{
    api->timeout_ms = timeout_ms;
}

void api_close(struct api *api)
{
    if (!api)
        return;
    if (api->embedded)
        service_close(&api->service);
    free(api);
}

const char *api_where(const struct api *api)
{
    return api->where;
}

static int call_embedded(struct api *api, const char *method, const char *path, const json_t *body,
                         json_t **reply)
{
    char plain[512];
    json_t *query = urlquery_split(path, plain, sizeof(plain));
    struct service_request request = {
        .method = method,
        .path = plain,
        .query = query,
        .body = body,
        .uid = geteuid(),
        .admin = true, /* of his own database */
    };
    int status = service_handle(&api->service, &request, reply);

    json_decref(query);
    return status;
}

/* Over TCP the request travels inside a MUNGE credential (agent/head/http.c says why). */
static char *seal(const char *method, const char *path, const char *text, struct oom_error *err)
{
    size_t size = strlen(method) + strlen(path) + (text ? strlen(text) : 0) + 3;
    char *payload = malloc(size);

    if (!payload) {
        oom_errorf(err, "out of memory");
        return NULL;
    }
    int n = snprintf(payload, size, "%s %s\n%s", method, path, text ? text : "");
    char *credential = sealed_make(payload, (size_t)n, (uid_t)-1, err);
    free(payload);
    return credential;
}

/* A handle for each call: one that is kept holds a connection to the head, and curl (7.88) lets
 * programs that are executed in between inherit it. They would be answered as who opened it. */
static int call_head(struct api *api, const char *method, const char *path, const json_t *body,
                     json_t **reply, struct oom_error *err)
{
    struct webcall_answer answer = {.max_bytes = MAX_REPLY_BYTES};
    char url[2048];
    CURL *curl = curl_easy_init();
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
    long status = -1;

    if (!curl) {
        oom_errorf(err, "out of memory");
        goto out;
    }
    if (!api->socket[0]) {
        char *sealed = seal(method, path, text, err);
        free(text);
        text = sealed;
        method = "POST";
        if (!text)
            goto out;
    }
    snprintf(url, sizeof(url), "%s%s", api->base, path);
    struct webcall call = {
        .url = url,
        .socket = api->socket[0] ? api->socket : NULL,
        .headers = headers,
        .total_ms = api->timeout_ms,
        .receive = webcall_collect,
        .arg = &answer,
    };
    webcall_post(&call, text);
    webcall_prepare(curl, &call);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    CURLcode rc = curl_easy_perform(curl);
    if (rc != CURLE_OK) {
        oom_errorf(err, "no answer from %s: %s", api->where, curl_easy_strerror(rc));
    } else {
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        *reply = answer.bytes ? json_loads(answer.bytes, 0, NULL) : NULL;
        if (!json_is_object(*reply)) {
            json_decref(*reply);
            *reply = NULL;
            oom_errorf(err, "%s answered something that is not JSON", api->where);
            status = -1;
        }
    }
out:
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    free(answer.bytes);
    free(text);
    return (int)status;
}

int api_call(struct api *api, const char *method, const char *path, const json_t *body,
             json_t **reply, struct oom_error *err)
{
    *reply = NULL;
    int status = api->embedded ? call_embedded(api, method, path, body, reply)
                               : call_head(api, method, path, body, reply, err);
    if (status >= 400)
        oom_errorf(err, "%s", json_get_string(*reply, "error", "the request was refused"));
    return status;
}
