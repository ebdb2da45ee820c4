/* SPDX-License-Identifier: Apache-2.0
 *
 * A head that is away when a job begins may still be away when it ends. What would have been told
 * it is left as a file beside the node agent's socket, in a directory where everybody may leave
 * and nobody but root may look; the agent, when the head answers, hands it in as the job's owner.
 * From then on the attempt is one whose supervisor was lost. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/files.h"
#include "agent/run/body.h"
#include "agent/run/run.h"
#include "db/db.h"

enum { MAX_SLIP_BYTES = 64 * 1024 };

static int slip_path(const struct run *run, char *out, size_t size)
{
    const char *agent_socket = getenv("OOMRETRY_SOCKET");
    const char *slash = agent_socket ? strrchr(agent_socket, '/') : NULL;

    if (!slash)
        return -1;
    int n = snprintf(out, size, "%.*s/late/%s.%s", (int)(slash - agent_socket), agent_socket,
                     run->job, run->token);
    return n > 0 && (size_t)n < size ? 0 : -1;
}

bool late_leave(const struct run *run, const struct attempt *attempt)
{
    char path[4096];
    json_t *body = body_begin(run, attempt);
    /* Whatever the head has learnt by then: this token begins one attempt. */
    bool ready = body && slip_path(run, path, sizeof(path)) == 0 &&
                 json_object_set_new(body, "late", json_true()) == 0 &&
                 json_object_set_new(body, "started_ms", json_integer(db_now_ms())) == 0;
    char *text = ready ? json_dumps(body, JSON_COMPACT) : NULL;
    bool left = text && strlen(text) <= MAX_SLIP_BYTES &&
                file_replace(path, text, strlen(text), 0600, NULL) == 0;

    free(text);
    json_decref(body);
    return left;
}

void late_take_back(const struct run *run)
{
    char path[4096];

    if (slip_path(run, path, sizeof(path)) == 0)
        unlink(path);
}

int late_hand_in(struct run *run, const char *path)
{
    struct oom_error err = {""};
    json_t *body = NULL, *reply = NULL;
    char *text = NULL;
    size_t length = 0;
    int status = 400;

    if (file_read(path, MAX_SLIP_BYTES, &text, &length, &err) == 0)
        body = json_loadb(text, length, 0, NULL);
    if (body)
        status = api_call(run->api, "POST", "/v1/attempts/begin", body, &reply, &err);
    /* A head that is away again is asked later; what it does not take, it never will. */
    if (status > 0 && status < 500)
        unlink(path);
    if (status != 200)
        fprintf(stderr, "oomrun: %s: %s\n", path, err.text[0] ? err.text : "not a report");
    free(text);
    json_decref(body);
    json_decref(reply);
    return status != 200;
}
