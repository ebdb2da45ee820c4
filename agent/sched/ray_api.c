/* SPDX-License-Identifier: Apache-2.0 */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lib/jsonget.h"
#include "agent/sched/ray.h"

enum { MAX_JSON_BYTES = 256 * 1024 * 1024 };

struct buffer {
    char *bytes;
    size_t length, room;
};

static int collect(void *arg, const char *bytes, size_t length)
{
    struct buffer *buffer = arg;

    if (buffer->length + length > MAX_JSON_BYTES)
        return -1;
    if (buffer->length + length > buffer->room) {
        size_t room = (buffer->length + length) * 2;
        char *grown = realloc(buffer->bytes, room);
        if (!grown)
            return -1;
        buffer->bytes = grown;
        buffer->room = room;
    }
    memcpy(buffer->bytes + buffer->length, bytes, length);
    buffer->length += length;
    return 0;
}

/* The status; *answer is NULL unless it was good JSON. */
static long call(struct ray_client *client, const char *method, const char *path,
                 const json_t *body, json_t **answer, struct oom_error *err)
{
    struct buffer buffer = {NULL, 0, 0};
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    struct ray_request request = {.method = method,
                                  .url = path,
                                  .body = text,
                                  .body_length = text ? strlen(text) : 0,
                                  .sink = collect,
                                  .arg = &buffer};
    json_error_t where;

    *answer = NULL;
    long status = ray_http(client, &request, err);
    if (status >= 200 && status < 300) {
        *answer = buffer.length ? json_loadb(buffer.bytes, buffer.length, 0, &where) : NULL;
        if (!*answer) {
            oom_errorf(err, "%s%s answered something that is not JSON (or over %d bytes)",
                       ray_client_options(client)->url, path, MAX_JSON_BYTES);
            status = -1;
        }
    }
    free(buffer.bytes);
    free(text);
    return status;
}

/* PREFIX + id, escaped, + suffix. Ids are the user's words. */
static int path_of(char *out, size_t size, const char *prefix, const char *id, const char *suffix,
                   struct oom_error *err)
{
    char *escaped = curl_easy_escape(NULL, id, 0);

    if (!escaped)
        return oom_errorf(err, "out of memory");
    int n = snprintf(out, size, "%s%s%s", prefix, escaped, suffix);
    curl_free(escaped);
    return n < 0 || (size_t)n >= size ? oom_errorf(err, "the id %.60s… is too long", id) : 0;
}

int ray_nodes(struct ray_client *client, bool dead, json_t **nodes, struct oom_error *err)
{
    /* When a node died is a detail. */
    const char *path =
        dead ? "/api/v0/nodes?detail=true&limit=10000" : "/api/v0/nodes?detail=false&limit=10000";
    json_t *answer;
    long status = call(client, "GET", path, NULL, &answer, err);

    *nodes = NULL;
    if (status != 200)
        return -1;
    const json_t *list =
        json_object_get(json_object_get(json_object_get(answer, "data"), "result"), "result");
    *nodes = json_array();
    size_t i;
    json_t *node;
    json_array_foreach(list, i, node)
    {
        if (dead || strcmp(json_get_string(node, "state", "ALIVE"), "ALIVE") == 0)
            json_array_append(*nodes, node);
    }
    json_decref(answer);
    return 0;
}

/* The session's name has the time and the process of its start in it. Releases that do not tell it
 * have the id of the head's node, which is as new with every start. */
int ray_identify(struct ray_client *client, char *session, size_t size, struct oom_error *err)
{
    json_t *answer = NULL, *node;
    size_t i;
    int rc = -1;

    if (call(client, "GET", "/api/version", NULL, &answer, err) != 200) {
        json_decref(answer);
        return -1;
    }
    const char *name = json_get_string(answer, "session_name", "");
    snprintf(session, size, "%s", name);
    json_decref(answer);
    if (session[0])
        return 0;
    if (ray_nodes(client, false, &answer, err) < 0)
        return -1;
    json_array_foreach(answer, i, node)
    {
        if (rc < 0 || json_get_bool(node, "is_head_node", false)) {
            snprintf(session, size, "node_%s", json_get_string(node, "node_id", ""));
            rc = 0;
        }
    }
    json_decref(answer);
    return rc < 0 ? oom_errorf(err, "%s does not tell which cluster it is",
                               ray_client_options(client)->url)
                  : 0;
}

int ray_session_name(struct ray_client *client, const char *identity, char *name, size_t size,
                     struct oom_error *err)
{
    json_t *answer, *node;
    size_t i;

    snprintf(name, size, "%s", identity);
    if (strncmp(identity, "session_", 8) == 0)
        return 0;
    name[0] = '\0';
    if (call(client, "GET", "/nodes?view=summary", NULL, &answer, err) != 200) {
        json_decref(answer);
        return -1;
    }
    json_array_foreach(json_object_get(json_object_get(answer, "data"), "summary"), i, node)
    {
        /* "/tmp/ray/session_…/sockets/plasma_store" */
        const char *at =
            strstr(json_get_string(json_object_get(node, "raylet"), "objectStoreSocketName", ""),
                   "/session_");
        if (at && !name[0])
            snprintf(name, size, "%.*s", (int)strcspn(at + 1, "/"), at + 1);
    }
    json_decref(answer);
    return name[0] ? 0
                   : oom_errorf(err, "%s does not tell its session's name",
                                ray_client_options(client)->url);
}

int ray_list(struct ray_client *client, json_t **jobs, struct oom_error *err)
{
    json_t *answer;
    long status = call(client, "GET", "/api/jobs/", NULL, &answer, err);

    *jobs = NULL;
    if (status != 200)
        return -1;
    *jobs = ray_jobs_normalise(answer);
    json_decref(answer);
    return *jobs ? 0 : oom_errorf(err, "%s gave no list of jobs", ray_client_options(client)->url);
}

int ray_job(struct ray_client *client, const char *id, json_t **job, struct oom_error *err)
{
    char path[1024];
    json_t *answer;

    *job = NULL;
    if (path_of(path, sizeof(path), "/api/jobs/", id, "", err) < 0)
        return -1;
    long status = call(client, "GET", path, NULL, &answer, err);
    if (status == 404)
        return 1;
    if (status != 200)
        return -1;
    json_t *list = json_pack("[o]", answer), *normal = ray_jobs_normalise(list);
    *job = json_incref(json_array_get(normal, 0));
    json_decref(list);
    json_decref(normal);
    return *job ? 0
                : oom_errorf(err, "%s gave no record of %s", ray_client_options(client)->url, id);
}

int ray_entrypoint_resources(struct ray_client *client, const char *id, json_t **resources,
                             json_t **labels, struct oom_error *err)
{
    char path[1024];
    json_t *answer;

    *resources = *labels = NULL;
    if (path_of(path, sizeof(path),
                "/api/v0/actors?detail=true&limit=10&filter_keys=name&filter_predicates=%3D"
                "&filter_values=_ray_internal_job_actor_",
                id, "", err) < 0)
        return -1;
    long status = call(client, "GET", path, NULL, &answer, err);
    if (status != 200)
        return status < 0 ? -1 : 1;
    const json_t *actor = json_array_get(
        json_object_get(json_object_get(json_object_get(answer, "data"), "result"), "result"), 0);
    *resources = json_incref(json_object_get(actor, "required_resources"));
    *labels = json_incref(json_object_get(actor, "label_selector"));
    json_decref(answer);
    return *resources ? 0 : 1;
}

int ray_submit(struct ray_client *client, const json_t *request, struct oom_error *err)
{
    const char *id = json_get_string(request, "submission_id", "");
    const json_t *metadata = json_object_get(request, "metadata");
    struct oom_error why = {""};
    json_t *answer = NULL, *there = NULL;
    long status = call(client, "POST", "/api/jobs/", request, &answer, &why);

    json_decref(answer);
    if (status == 200)
        return 0;
    /* An answer that was lost, or our own earlier call: what counts is what is there now. */
    int found = ray_job(client, id, &there, err);
    bool ours =
        found == 0 && ray_is_attempt(there, atoll(json_get_string(metadata, "oom_lineage", "0")),
                                     atoll(json_get_string(metadata, "oom_attempt", "0")));
    json_decref(there);
    if (ours)
        return 0;
    return found == 0 ? oom_errorf(err, "somebody else has submitted a job %s", id)
                      : oom_errorf(err, "%s", why.text);
}

int ray_stop(struct ray_client *client, const char *id, struct oom_error *err)
{
    char path[1024];
    json_t *answer = NULL;

    if (path_of(path, sizeof(path), "/api/jobs/", id, "/stop", err) < 0)
        return -1;
    long status = call(client, "POST", path, NULL, &answer, err);
    json_decref(answer);
    return status == 200 ? 0 : -1;
}

int ray_package_keep(struct ray_client *client, const char *name, struct oom_error *err)
{
    char path[1024];
    struct ray_request request = {.method = "GET", .url = path};

    if (path_of(path, sizeof(path), "/api/packages/gcs/", name, "", err) < 0)
        return -1;
    long status = ray_http(client, &request, err);
    return status == 200 ? 0 : status == 404 ? 1 : -1;
}

int ray_package_put(struct ray_client *client, const char *name, const void *bytes, size_t length,
                    struct oom_error *err)
{
    char path[1024];
    struct ray_request request = {.method = "PUT",
                                  .url = path,
                                  .body = bytes,
                                  .body_length = length,
                                  .content_type = "application/octet-stream"};

    if (ray_package_keep(client, name, err) == 0)
        return 0;
    if (path_of(path, sizeof(path), "/api/packages/gcs/", name, "", err) < 0)
        return -1;
    return ray_http(client, &request, err) == 200 ? 0 : -1;
}
