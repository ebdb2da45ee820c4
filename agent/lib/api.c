/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lib/api.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/head/service.h"
#include "agent/lib/config.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/paths.h"
#include "agent/lib/sealed.h"
#include "agent/lib/sealed_reply.h"
#include "agent/lib/urlquery.h"
#include "agent/lib/webcall.h"

enum { MAX_REPLY_BYTES = 64 * 1024 * 1024 };

struct api {
    bool embedded;
    struct service service;
    char socket[108]; /* of a unix socket; "" for a URL */
    char base[512];
    uid_t head; /* who may answer at the URL, beside root */
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

/* By name, or by number where the machine does not know him. */
static uid_t uid_of(const char *user)
{
    const struct passwd *pw = *user ? getpwnam(user) : NULL;
    bool number = *user && user[strspn(user, "0123456789")] == '\0';

    return pw ? pw->pw_uid : number ? (uid_t)strtoul(user, NULL, 10) : 0;
}

struct api *api_open_head(const char *where, const char *head_user, int timeout_ms,
                          struct oom_error *err)
{
    struct api *api = calloc(1, sizeof(*api));

    if (!api) {
        oom_errorf(err, "out of memory");
        return NULL;
    }
    api->timeout_ms = timeout_ms;
    api->head = uid_of(head_user);
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

/* At $OOMRETRY_HEAD, or where the configuration says. NULL and no error: neither is there, and the
 * local socket is not either; `needed`: it is taken all the same. */
static struct api *open_configured(bool needed, int timeout_ms, struct oom_error *err)
{
    const char *head = secure_getenv("OOMRETRY_HEAD");
    struct config config;
    struct api *api = NULL;

    if (config_load(NULL, &config, err) < 0)
        return head && *head == '/' ? api_open_head(head, "", timeout_ms, err) : NULL;
    if (!head || !*head)
        head = config.head_url && !config.head_is_local ? config.head_url : NULL;
    if (!head && (needed || access(config.head_socket, R_OK | W_OK) == 0))
        head = config.head_socket;
    if (head)
        api = api_open_head(head, config.head_user, timeout_ms, err);
    config_free(&config);
    return api;
}

struct api *api_open_cluster(int timeout_ms, struct oom_error *err)
{
    return open_configured(true, timeout_ms, err);
}

struct api *api_open_default(const char *db_path, int timeout_ms, struct oom_error *err)
{
    struct oom_error why = {""};
    struct api *api = db_path ? NULL : open_configured(false, timeout_ms, &why);

    if (api || why.text[0]) {
        if (!api)
            oom_errorf(err, "%s", why.text);
        return api;
    }
    return api_open_embedded(db_path, err);
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
static char *seal(const char *method, const char *path, const char *nonce, const char *text,
                  struct oom_error *err)
{
    char *payload = NULL, *credential = NULL;
    int n = asprintf(&payload, "%s %s %s\n%s", method, path, nonce, text ? text : "");

    if (n < 0) {
        oom_errorf(err, "out of memory");
        return NULL;
    }
    credential = sealed_make(payload, (size_t)n, (uid_t)-1, err);
    free(payload);
    return credential;
}

/* The status of the answer, whose JSON is in *reply then; -1: it is none. `nonce` "": it came over
 * a socket that only the head has. */
static int read_answer(const struct api *api, int status, char *text, const char *nonce,
                       json_t **reply, struct oom_error *err)
{
    struct oom_error why = {""};
    char *opened = NULL;

    if (*nonce) {
        opened = text ? sealed_reply_open(text, nonce, api->head, &status, &why) : NULL;
        if (!opened)
            return oom_errorf(err, "no answer from %s: %s", api->where,
                              why.text[0] ? why.text : "it is empty");
        text = opened;
    }
    *reply = text ? json_loads(text, 0, NULL) : NULL;
    free(opened);
    if (json_is_object(*reply))
        return status;
    json_decref(*reply);
    *reply = NULL;
    return oom_errorf(err, "%s answered something that is not JSON", api->where);
}

/* A handle for each call: one that is kept holds a connection to the head, and curl (7.88) lets
 * programs that are executed in between inherit it. They would be answered as who opened it. */
static int call_head(struct api *api, const char *method, const char *path, const json_t *body,
                     json_t **reply, struct oom_error *err)
{
    struct webcall_answer answer = {.max_bytes = MAX_REPLY_BYTES};
    char url[2048], nonce[SEALED_NONCE_BYTES] = "";
    CURL *curl = curl_easy_init();
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
    long code = -1;
    int status = -1;

    if (!curl) {
        oom_errorf(err, "out of memory");
        goto out;
    }
    if (!api->socket[0]) {
        char *sealed = sealed_nonce(nonce, err) < 0 ? NULL : seal(method, path, nonce, text, err);
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
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    if (rc != CURLE_OK)
        oom_errorf(err, "no answer from %s: %s", api->where, curl_easy_strerror(rc));
    else
        status = read_answer(api, (int)code, answer.bytes, nonce, reply, err);
out:
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    free(answer.bytes);
    free(text);
    return status;
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
