/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sched/slurm_rest.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/child.h"
#include "agent/lib/files.h"
#include "agent/lib/webcall.h"

enum {
    CALL_MS = 10000,
    CONNECT_MS = 3000,
    SUBMIT_MS = 20000,
    MAX_REPLY_BYTES = 16 * 1024 * 1024,
    MAX_FILE_BYTES = 4 * 1024 * 1024,
};

struct exchange {
    CURL *curl;
    const char *url;
    struct curl_slist *headers; /* with the token: wiped at the end */
    struct webcall_answer answer;
};

static int add_header(struct exchange *exchange, const char *name, const char *value)
{
    char line[8192];
    int n = snprintf(line, sizeof(line), "%s: %s", name, value);
    struct curl_slist *longer =
        n < (int)sizeof(line) ? curl_slist_append(exchange->headers, line) : NULL;

    explicit_bzero(line, sizeof(line));
    if (longer)
        exchange->headers = longer;
    return longer ? 0 : -1;
}

/* scontrol gives its caller a token of his own. It stands in a header and nowhere else: arguments
 * and environments can be read by others, logs are kept. */
static int add_identity(struct exchange *exchange, struct oom_error *err)
{
    static const char *const ask[] = {"scontrol", "token", "lifespan=60", NULL};
    static const char prefix[] = "SLURM_JWT=";
    const struct passwd *user = getpwuid(geteuid());
    char *text = NULL;

    if (!user)
        return oom_errorf(err, "user %d has no name", (int)geteuid());
    if (child_expect(ask, CALL_MS, &text, err) < 0)
        return -1;
    size_t length = strlen(text);
    text[strcspn(text, "\r\n")] = '\0';
    int rc = 0;
    if (strncmp(text, prefix, sizeof(prefix) - 1) != 0)
        rc = oom_errorf(err, "scontrol token gave no token");
    else if (add_header(exchange, "X-SLURM-USER-NAME", user->pw_name) < 0 ||
             add_header(exchange, "X-SLURM-USER-TOKEN", text + sizeof(prefix) - 1) < 0)
        rc = oom_errorf(err, "out of memory");
    explicit_bzero(text, length);
    free(text);
    return rc;
}

static int exchange_open(struct exchange *exchange, const char *url, struct oom_error *err)
{
    *exchange = (struct exchange){
        .url = url, .curl = curl_easy_init(), .answer.max_bytes = MAX_REPLY_BYTES};
    if (!exchange->curl || add_header(exchange, "Expect", "") < 0 ||
        add_header(exchange, "Content-Type", "application/json") < 0)
        return oom_errorf(err, "out of memory");
    return add_identity(exchange, err);
}

static void exchange_close(struct exchange *exchange)
{
    for (struct curl_slist *item = exchange->headers; item; item = item->next)
        explicit_bzero(item->data, strlen(item->data));
    curl_slist_free_all(exchange->headers);
    curl_easy_cleanup(exchange->curl);
    free(exchange->answer.bytes);
}

/* GET, or POST with a body. NULL: no answer in JSON. The HTTP status says less than the answer's
 * errors[] and job_id. */
static json_t *call(struct exchange *exchange, const char *path, const char *body,
                    struct oom_error *err)
{
    static const char unix_prefix[] = "unix:";
    CURL *curl = exchange->curl;
    char url[2048];
    long status = 0;
    const char *socket = strncmp(exchange->url, unix_prefix, sizeof(unix_prefix) - 1) == 0
                             ? exchange->url + sizeof(unix_prefix) - 1
                             : NULL;
    size_t length = strlen(exchange->url);

    while (length && exchange->url[length - 1] == '/')
        length--;
    snprintf(url, sizeof(url), "%.*s%s", socket ? 16 : (int)length,
             socket ? "http://localhost" : exchange->url, path);
    exchange->answer.length = 0;
    struct webcall webcall = {
        .url = url,
        .socket = socket,
        .headers = exchange->headers,
        .connect_ms = CONNECT_MS,
        .total_ms = SUBMIT_MS,
        .receive = webcall_collect,
        .arg = &exchange->answer,
    };
    webcall_post(&webcall, body);
    webcall_prepare(curl, &webcall);
    /* A kept connection that breaks would make libcurl send the job once more by itself. */
    curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, 1L);
    CURLcode rc = curl_easy_perform(curl);
    if (rc != CURLE_OK) {
        oom_errorf(err, "no answer: %s", curl_easy_strerror(rc));
        return NULL;
    }
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    const struct webcall_answer *answer = &exchange->answer;
    json_t *reply = answer->length ? json_loadb(answer->bytes, answer->length, 0, NULL) : NULL;
    if (!json_is_object(reply)) {
        oom_errorf(err, "it answered %ld: %.200s", status,
                   answer->length ? answer->bytes : "nothing");
        json_decref(reply);
        return NULL;
    }
    return reply;
}

static int post(struct exchange *exchange, const struct slurm_rest_job *job, char *new_job,
                size_t size, struct oom_error *err)
{
    json_t *openapi = call(exchange, "/openapi", NULL, err);
    int version = openapi ? slurm_rest_version(openapi, err) : -1;
    json_t *body = version > 0 ? slurm_rest_body(version, job, err) : NULL;
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL, path[64];
    bool ignored = false;
    int rc = -1;

    json_decref(openapi);
    json_decref(body);
    if (!text)
        return -1;
    snprintf(path, sizeof(path), "/slurm/v0.0.%d/job/submit", version);
    json_t *reply = call(exchange, path, text, err);
    free(text);
    long long id = reply ? slurm_rest_reply(reply, &ignored, err) : -1;
    if (id > 0) {
        snprintf(new_job, size, "%lld", id);
        rc = 0;
    }
    json_decref(reply);
    if (rc == 0 && ignored) {
        const char *const undo[] = {"scancel", new_job, NULL};
        child_expect(undo, CALL_MS, NULL, NULL);
        return oom_errorf(err, "it did not understand all of the job");
    }
    return rc;
}

static int read_whole(const char *path, char **bytes, size_t *length, struct oom_error *err)
{
    int rc = file_read(path, MAX_FILE_BYTES, bytes, length, err);

    return rc <= 0 ? rc : oom_errorf(err, "%s is larger than %d bytes", path, MAX_FILE_BYTES);
}

int slurm_rest_submit(const char *url, const struct sched_submission *submission, char *new_job,
                      size_t size, struct oom_error *err)
{
    struct slurm_rest_job job = {.submission = submission};
    char *script = NULL, *environment = NULL;
    struct exchange exchange;
    int rc = -1;

    if (!submission->environment_file)
        return oom_errorf(err, "the job's environment was not kept");
    if (read_whole(submission->script, &script, &job.script_length, err) == 0 &&
        read_whole(submission->environment_file, &environment, &job.environment_length, err) == 0) {
        job.script = script;
        job.environment = environment;
        if (exchange_open(&exchange, url, err) == 0)
            rc = post(&exchange, &job, new_job, size, err);
        exchange_close(&exchange);
    }
    free(script);
    free(environment);
    return rc;
}
