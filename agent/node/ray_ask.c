/* SPDX-License-Identifier: Apache-2.0
 *
 * The asking side of agent/node/evidence.h. Whoever can listen at that port of a machine whose
 * agent is away could answer: so each piece must be root's or our own, and be the next answer to
 * this very question. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "agent/lib/jsonget.h"
#include "agent/lib/sealed.h"
#include "agent/lib/webcall.h"
#include "agent/node/ray_watch.h"

enum { CONNECT_MS = 2000, TOTAL_MS = 60000, MAX_LINE_BYTES = 1024 * 1024 };

struct asking {
    char nonce[33];
    char *line; /* a credential that is on its way, or the words of a refusal */
    size_t length, room;
    int count;
    bool whole;
    ray_piece_f *piece;
    void *arg;
    struct oom_error *err;
};

static int take_piece(struct asking *a, const char *credential)
{
    size_t length;
    uid_t by;
    char *inside = sealed_open(credential, &length, &by, a->err);
    char *feed = inside ? memchr(inside, '\n', length) : NULL;
    json_t *head = feed ? json_loadb(inside, (size_t)(feed - inside), 0, NULL) : NULL;
    const char *name = json_get_string(head, "name", NULL);
    int rc = -1;

    if (!inside)
        return -1;
    if (by != 0 && by != geteuid())
        oom_errorf(a->err, "uid %u answered, and not the agent", (unsigned)by);
    else if (!name || a->whole || strcmp(json_get_string(head, "nonce", ""), a->nonce) != 0 ||
             json_get_int(head, "n", -1) != a->count++)
        oom_errorf(a->err, "the answer is to another question");
    else if (!*name)
        rc = 0, a->whole = true;
    else
        rc = a->piece(a->arg, name, feed + 1, length - (size_t)(feed + 1 - inside));
    json_decref(head);
    free(inside);
    return rc;
}

static size_t receive(char *bytes, size_t size, size_t count, void *arg)
{
    struct asking *a = arg;
    size_t length = size * count, at = 0;

    while (at < length) {
        const char *feed = memchr(bytes + at, '\n', length - at);
        size_t n = (feed ? (size_t)(feed - bytes) : length) - at;
        if (a->length + n + 1 > a->room) {
            size_t room = (a->length + n + 1) * 2;
            char *grown = room <= 2 * MAX_LINE_BYTES ? realloc(a->line, room) : NULL;
            if (!grown) {
                oom_errorf(a->err, "a line of the answer is too long");
                return 0;
            }
            a->line = grown;
            a->room = room;
        }
        memcpy(a->line + a->length, bytes + at, n);
        a->length += n;
        a->line[a->length] = '\0';
        at += n + (feed ? 1 : 0);
        if (!feed)
            break;
        if (strncmp(a->line, "MUNGE:", 6) == 0) {
            if (take_piece(a, a->line) < 0)
                return 0;
            a->length = 0;
        }
    }
    return length;
}

static char *seal_question(struct asking *a, const char *path, const json_t *question,
                           struct oom_error *err)
{
    unsigned char random[16];
    json_t *copy = json_copy((json_t *)question);
    char *text = NULL, *all = NULL, *credential = NULL;

    if (getrandom(random, sizeof(random), 0) == (ssize_t)sizeof(random)) {
        for (size_t i = 0; i < sizeof(random); i++)
            snprintf(a->nonce + 2 * i, 3, "%02x", random[i]);
        json_object_set_new(copy, "nonce", json_string(a->nonce));
        text = json_dumps(copy, JSON_COMPACT);
    }
    if (text && asprintf(&all, "POST %s\n%s", path, text) >= 0)
        credential = sealed_make(all, strlen(all), (uid_t)-1, err);
    else
        oom_errorf(err, "out of memory");
    free(all);
    free(text);
    json_decref(copy);
    return credential;
}

int ray_ask(const char *address, int port, const char *path, const json_t *question,
            ray_piece_f *piece, void *arg, struct oom_error *err)
{
    struct oom_error why = {""};
    struct asking a = {.piece = piece, .arg = arg, .err = &why};
    char *credential = seal_question(&a, path, question, err);
    CURL *curl = credential ? curl_easy_init() : NULL;
    struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
    bool six = strchr(address, ':') != NULL;
    char url[512];
    long status = 0;

    if (curl) {
        snprintf(url, sizeof(url), "http://%s%s%s:%d%s", six ? "[" : "", address, six ? "]" : "",
                 port, path);
        struct webcall call = {
            .url = url,
            .headers = headers,
            .connect_ms = CONNECT_MS,
            .total_ms = TOTAL_MS,
            .receive = receive,
            .arg = &a,
        };
        webcall_post(&call, credential);
        webcall_prepare(curl, &call);
        CURLcode rc = curl_easy_perform(curl);
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        if (why.text[0])
            oom_errorf(err, "%s: %s", url, why.text);
        else if (status >= 400)
            oom_errorf(err, "%s answered %ld: %s", url, status, a.line ? a.line : "");
        else if (rc != CURLE_OK)
            oom_errorf(err, "no answer from %s: %s", url, curl_easy_strerror(rc));
        else if (!a.whole)
            oom_errorf(err, "%s has nothing of it, or could not read it to its end", url);
        curl_easy_cleanup(curl);
    }
    curl_slist_free_all(headers);
    free(credential);
    free(a.line);
    return a.whole ? 0 : -1;
}

/* From "http://10.0.0.7:52365". */
bool ray_driver_address(const json_t *job, char *out, size_t size)
{
    const char *agent = json_get_string(job, "driver_agent_http_address", "");
    const char *start = strstr(agent, "://"), *end = strrchr(agent, ':');

    if (!start || end <= start + 3)
        return false;
    start += 3;
    if (*start == '[' && end[-1] == ']') {
        start++;
        end--;
    }
    snprintf(out, size, "%.*s", (int)(end - start), start);
    return true;
}
