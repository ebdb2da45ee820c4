/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/head_help.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/jsonget.h"

int head_setup(void **state)
{
    struct head_fixture *f = calloc(1, sizeof(*f));
    struct oom_error err = {""};

    strcpy(f->path, "/tmp/oomretry-test-XXXXXX");
    close(mkstemp(f->path));
    if (service_open(&f->service, f->path, &err) < 0) {
        print_error("%s\n", err.text);
        return -1;
    }
    *state = f;
    return 0;
}

int head_teardown(void **state)
{
    struct head_fixture *f = *state;
    char side[80];

    service_close(&f->service);
    unlink(f->path);
    snprintf(side, sizeof(side), "%s-wal", f->path);
    unlink(side);
    snprintf(side, sizeof(side), "%s-shm", f->path);
    unlink(side);
    free(f);
    return 0;
}

json_t *head_call_as(struct head_fixture *f, uid_t uid, const char *method, const char *path,
                     json_t *body, int want)
{
    json_t *reply = NULL;
    struct service_request request = {
        .method = method, .path = path, .body = body, .uid = uid, .admin = uid == 0};
    int status = service_handle(&f->service, &request, &reply);

    if (status != want)
        print_error("%s %s: %d %s\n", method, path, status, json_get_string(reply, "error", ""));
    assert_int_equal(status, want);
    json_decref(body);
    return reply;
}

json_t *head_call(struct head_fixture *f, const char *method, const char *path, json_t *body,
                  int want)
{
    return head_call_as(f, ALICE, method, path, body, want);
}

json_t *head_begin_body(const char *job, const char *token, int restart)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:{s:s}}", "scheduler", "slurm", "cluster",
                     "c", "job", job, "name", "n", "token", token, "restart", restart, "options",
                     "policy", "auto");
}

json_t *head_begin(struct head_fixture *f, const char *job, const char *token, int restart)
{
    return head_call(f, "POST", "/v1/attempts/begin", head_begin_body(job, token, restart), 200);
}

json_t *head_oom_end(json_int_t lineage, json_int_t attempt, const char *tokens)
{
    return json_pack(
        "{s:I, s:I, s:s, s:{s:i}, s:{s:b, s:s, s:s, s:s, s:f, s:{s:I, s:I, s:I}}, s:{s:{s:s, s:s}, "
        "s:{s:s, s:s}, s:{s:s,s:s}, s:{s:s,s:s}, s:{s:s,s:s}}}",
        "lineage", lineage, "attempt", attempt, "framework", "relax", "exit", "exit_code", 1,
        "incident", "oom", 1, "domain", "gpu", "phase", "forward", "framework", "relax",
        "confidence", 0.95, "numbers", "tried", (json_int_t)2147483648, "free",
        (json_int_t)1095216660, "total", (json_int_t)84989247488, "values", "--max-tokens-per-gpu",
        "value", tokens, "source", "script", "--use-dynamic-batch-size", "value", "true", "source",
        "script", "--recompute-granularity", "value", "full", "source", "script",
        "--recompute-method", "value", "uniform", "source", "script", "--recompute-num-layers",
        "value", "1", "source", "script");
}
