/* SPDX-License-Identifier: Apache-2.0
 *
 * The head's interface on a real database: the life of attempts, repeated reports, restarts,
 * rights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/head/service.h"
#include "agent/lib/acted.h"
#include "agent/lib/jsonget.h"
#include "db/lineages.h"
#include "db/policies.h"
#include "tests/unit/head_help.h"

static void one_retry_for_one_failure(void **state)
{
    struct head_fixture *f = *state;
    json_t *reply = head_begin(f, "100", "t1", 0);
    json_int_t lineage = json_get_int(reply, "lineage", 0);

    assert_true(lineage > 0);
    assert_int_equal(json_get_int(reply, "attempt", 0), 1);
    json_decref(reply);
    /* The same supervisor says it again. */
    reply = head_begin(f, "100", "t1", 0);
    assert_int_equal(json_get_int(reply, "attempt", 0), 1);
    assert_int_equal(json_get_int(reply, "lineage", 0), lineage);
    json_decref(reply);

    reply = head_call(f, "POST", "/v1/attempts/end", head_oom_end(lineage, 1, "12288"), 200);
    assert_string_equal(json_get_string(reply, "action", ""), "retry");
    assert_int_equal(json_get_int(reply, "attempt", 0), 2);
    assert_true(json_array_size(json_object_get(reply, "edits")) > 0);
    char *first = json_dumps(json_object_get(reply, "edits"), JSON_SORT_KEYS);
    json_decref(reply);
    /* The report was repeated after a crash: the same decision, no third attempt. */
    reply = head_call(f, "POST", "/v1/attempts/end", head_oom_end(lineage, 1, "12288"), 200);
    assert_int_equal(json_get_int(reply, "attempt", 0), 2);
    char *second = json_dumps(json_object_get(reply, "edits"), JSON_SORT_KEYS);
    assert_string_equal(first, second);
    free(first);
    free(second);
    json_decref(reply);

    reply = head_begin(f, "100", "t1", 0);
    assert_int_equal(json_get_int(reply, "attempt", 0), 2);
    assert_true(json_array_size(json_object_get(reply, "edits")) > 0);
    json_decref(reply);
    reply = head_call(f, "GET", "/v1/history/100", NULL, 200);
    assert_int_equal(json_array_size(json_object_get(reply, "attempts")), 2);
    json_decref(reply);
}

static void a_refused_rung_is_not_offered_again(void **state)
{
    struct head_fixture *f = *state;
    json_t *reply = head_begin(f, "101", "t1", 0);
    json_int_t lineage = json_get_int(reply, "lineage", 0);
    char rung[64];

    json_decref(reply);
    reply = head_call(f, "POST", "/v1/attempts/end", head_oom_end(lineage, 1, "12288"), 200);
    snprintf(rung, sizeof(rung), "%s", json_get_string(reply, "rung", ""));
    json_decref(reply);
    json_t *body = head_oom_end(lineage, 1, "12288");
    json_object_set_new(body, "refused",
                        json_pack("[{s:s, s:s}]", "rung", rung, "why", "cannot be written"));
    reply = head_call(f, "POST", "/v1/attempts/end", body, 200);
    assert_string_not_equal(json_get_string(reply, "rung", ""), rung);
    json_decref(reply);
    reply = head_call(f, "GET", "/v1/history/101", NULL, 200);
    assert_int_equal(json_array_size(json_object_get(reply, "attempts")), 2);
    json_decref(reply);
}

static void restarts_of_the_scheduler_keep_the_edits(void **state)
{
    struct head_fixture *f = *state;
    json_t *reply = head_begin(f, "102", "t1", 0);
    json_int_t lineage = json_get_int(reply, "lineage", 0);

    json_decref(reply);
    json_decref(head_call(f, "POST", "/v1/attempts/end", head_oom_end(lineage, 1, "12288"), 200));
    json_decref(head_begin(f, "102", "t1", 0));
    /* Preempted and queued again by Slurm: a new supervisor, the settings of attempt 2. */
    reply = head_begin(f, "102", "t2", 1);
    assert_int_equal(json_get_int(reply, "lineage", 0), lineage);
    assert_int_equal(json_get_int(reply, "attempt", 0), 3);
    assert_true(json_array_size(json_object_get(reply, "edits")) > 0);
    json_decref(reply);
    reply = head_call(f, "GET", "/v1/history/102", NULL, 200);
    const json_t *attempts = json_object_get(reply, "attempts");
    assert_string_equal(json_get_string(json_array_get(attempts, 1), "outcome", ""), "lost");
    json_decref(reply);
}

static void a_job_id_comes_back(void **state)
{
    struct head_fixture *f = *state;
    json_t *reply = head_begin(f, "103", "t1", 0);
    json_int_t lineage = json_get_int(reply, "lineage", 0);

    json_decref(reply);
    json_decref(head_call(f, "POST", "/v1/attempts/end",
                          json_pack("{s:I, s:i, s:b, s:{s:i}}", "lineage", lineage, "attempt", 1,
                                    "completed", 1, "exit", "exit_code", 0),
                          200));
    reply = head_begin(f, "103", "t9", 0);
    assert_true(json_get_int(reply, "lineage", 0) > lineage);
    assert_int_equal(json_get_int(reply, "attempt", 0), 1);
    json_decref(reply);
}

static void a_lost_job_is_not_taken_for_its_successor(void **state)
{
    struct head_fixture *f = *state;
    json_t *reply = head_begin(f, "108", "t1", 0);
    json_int_t lineage = json_get_int(reply, "lineage", 0);

    json_decref(reply);
    /* The controller lost its state and gave the number to another job: no restart is counted. */
    reply = head_begin(f, "108", "t2", 0);
    assert_int_not_equal(json_get_int(reply, "lineage", 0), lineage);
    assert_int_equal(json_get_int(reply, "attempt", 0), 1);
    json_decref(reply);
    char path[64];
    snprintf(path, sizeof(path), "/v1/history/L%lld", (long long)lineage);
    reply = head_call(f, "GET", path, NULL, 200);
    assert_string_equal(json_get_string(json_object_get(reply, "lineage"), "state", ""), "failed");
    json_decref(reply);
}

/* The id of a job that the controller forgot becomes that of a resubmission of an older lineage. */
static void a_forgotten_id_goes_to_a_resubmission(void **state)
{
    struct head_fixture *f = *state;
    json_t *ours = head_begin_body("130", "t1", 0), *theirs = head_begin_body("131", "t2", 0);

    json_object_set_new(ours, "shape", json_string("ours-g0"));
    json_object_set_new(theirs, "shape", json_string("theirs-g0"));
    json_t *again = json_deep_copy(ours);
    json_object_set_new(again, "job", json_string("131"));
    json_object_set_new(again, "token", json_string("t3"));
    json_t *reply = head_call(f, "POST", "/v1/attempts/begin", ours, 200);
    json_int_t lineage = json_get_int(reply, "lineage", 0);
    json_decref(reply);
    json_decref(head_call(f, "POST", "/v1/attempts/end", head_oom_end(lineage, 1, "12288"), 200));
    json_decref(head_call(f, "POST", "/v1/attempts/begin", theirs, 200));
    json_decref(head_call(
        f, "POST", "/v1/attempts/note",
        json_pack("{s:I, s:i, s:s}", "lineage", lineage, "attempt", 2, "job", "131"), 200));
    reply = head_call(f, "POST", "/v1/attempts/begin", again, 200);
    assert_int_equal(json_get_int(reply, "lineage", 0), lineage);
    assert_int_equal(json_get_int(reply, "attempt", 0), 2);
    assert_true(json_array_size(json_object_get(reply, "edits")) > 0);
    json_decref(reply);
    reply = head_call(f, "GET", "/v1/history/131", NULL, 200);
    assert_int_equal(json_get_int(json_object_get(reply, "lineage"), "id", 0), lineage);
    json_decref(reply);
}

/* A controller that was killed has forgotten that it queued the job again, and starts it as if for
 * the first time: the change that was decided is made all the same. */
static void a_forgotten_start_keeps_its_lineage(void **state)
{
    struct head_fixture *f = *state;
    json_t *body = head_begin_body("120", "t1", 0);

    json_object_set_new(body, "shape", json_string("s-g0"));
    json_t *again = json_deep_copy(body);
    json_object_set_new(again, "token", json_string("t2"));
    json_t *other = json_deep_copy(again);
    json_object_set_new(other, "shape", json_string("another-g0"));
    json_object_set_new(other, "token", json_string("t3"));
    json_t *reply = head_call(f, "POST", "/v1/attempts/begin", body, 200);
    json_int_t lineage = json_get_int(reply, "lineage", 0);
    json_decref(reply);
    json_decref(head_call(f, "POST", "/v1/attempts/end", head_oom_end(lineage, 1, "12288"), 200));
    reply = head_call(f, "POST", "/v1/attempts/begin", again, 200);
    assert_int_equal(json_get_int(reply, "lineage", 0), lineage);
    assert_int_equal(json_get_int(reply, "attempt", 0), 2);
    assert_true(json_array_size(json_object_get(reply, "edits")) > 0);
    json_decref(reply);
    /* Another script under the same id is another job. */
    reply = head_call(f, "POST", "/v1/attempts/begin", other, 200);
    assert_int_not_equal(json_get_int(reply, "lineage", 0), lineage);
    json_decref(reply);
}

/* What found no head is told later: when it was, and where its output began. */
static void a_start_that_is_told_late(void **state)
{
    struct head_fixture *f = *state;
    json_t *body = head_begin_body("121", "t1", 0);

    json_object_set_new(body, "late", json_true());
    json_object_set_new(body, "started_ms", json_integer(1700000000000));
    json_object_set_new(body, "log", json_pack("[{s:s, s:i}]", "path", "/a.out", "offset", 42));
    json_t *twice = json_deep_copy(body);
    json_decref(head_call(f, "POST", "/v1/attempts/begin", body, 200));
    json_decref(head_call(f, "POST", "/v1/attempts/begin", twice, 200));
    json_t *reply = head_call(f, "GET", "/v1/history/121", NULL, 200);
    const json_t *attempts = json_object_get(reply, "attempts");
    const json_t *first = json_array_get(attempts, 0);
    const json_t *log = json_object_get(json_object_get(first, "evidence"), "log");
    assert_int_equal(json_array_size(attempts), 1);
    assert_int_equal(json_get_int(first, "started_ms", 0), 1700000000000);
    assert_int_equal(json_get_int(json_array_get(log, 0), "offset", 0), 42);
    json_decref(reply);
    /* The id of a job that was forgotten belongs to another one by now. */
    body = head_begin_body("121", "t2", 0);
    json_object_set_new(body, "late", json_true());
    json_decref(head_call(f, "POST", "/v1/attempts/begin", body, 200));
    reply = head_call(f, "GET", "/v1/history/121", NULL, 200);
    assert_int_equal(json_array_size(json_object_get(reply, "attempts")), 1);
    first = json_array_get(json_object_get(reply, "attempts"), 0);
    assert_string_equal(json_get_string(first, "token", ""), "t2");
    json_decref(reply);
    /* Nobody starts in the future. */
    body = head_begin_body("122", "t1", 0);
    json_object_set_new(body, "started_ms", json_integer(INT64_C(9000000000000)));
    json_decref(head_call(f, "POST", "/v1/attempts/begin", body, 200));
    reply = head_call(f, "GET", "/v1/history/122", NULL, 200);
    first = json_array_get(json_object_get(reply, "attempts"), 0);
    assert_true(json_get_int(first, "started_ms", 0) < INT64_C(9000000000000));
    json_decref(reply);
}

/* How many open attempts an agent is given, and whether it is to look after all. */
static size_t open_for(struct head_fixture *f, uid_t uid, const char *cluster, const char *by,
                       const char *nodes, bool blind, bool all)
{
    json_t *reply = NULL,
           *query = json_pack("{s:s, s:s, s:s, s:s, s:s}", "scheduler", "slurm", "cluster", cluster,
                              "turn", by, "nodes", nodes, "blind", blind ? "yes" : "");
    struct service_request request = {.method = "GET",
                                      .path = "/v1/attempts/open",
                                      .query = query,
                                      .uid = uid,
                                      .admin = uid == 0};

    assert_int_equal(service_handle(&f->service, &request, &reply), 200);
    assert_int_equal(json_get_bool(reply, "all", !all), all);
    size_t count = json_array_size(json_object_get(reply, "attempts"));
    json_decref(reply);
    json_decref(query);
    return count;
}

static void begin_on(struct head_fixture *f, const char *cluster, const char *job, const char *node)
{
    json_t *body = head_begin_body(job, "t", 0);

    json_object_set_new(body, "cluster", json_string(cluster));
    json_object_set_new(body, "node", json_string(node));
    json_decref(head_call(f, "POST", "/v1/attempts/begin", body, 200));
}

static void one_agent_of_a_cluster_looks_after_all(void **state)
{
    struct head_fixture *f = *state;

    begin_on(f, "tux", "1", "n1");
    begin_on(f, "tux", "2", "n2");
    begin_on(f, "wolf", "1", "n1");
    assert_int_equal(open_for(f, 0, "TUX", "head", "", false, true), 2);
    assert_int_equal(open_for(f, 0, "wolf", "w1", "n1", false, true), 1);
    assert_int_equal(open_for(f, 0, "tux", "a1", "n1", false, false), 1);
    assert_int_equal(open_for(f, 0, "tux", "a7", "n7,n12", false, false), 0);
    assert_int_equal(open_for(f, 0, "tux", "head", "", false, true), 2);
    /* It cannot reach the controller, and another one may. */
    assert_int_equal(open_for(f, 0, "tux", "head", "", true, false), 0);
    assert_int_equal(open_for(f, 0, "tux", "a1", "n1", false, true), 2);
    assert_int_equal(open_for(f, 0, "tux", "head", "", false, false), 0);
    /* Where there is no other it goes on trying. */
    assert_int_equal(open_for(f, 0, "wolf", "w1", "n1", true, true), 1);
    /* Nobody else has a say in it. */
    assert_int_equal(open_for(f, ALICE, "cat", "me", "n1", false, false), 0);
    assert_int_equal(open_for(f, 0, "cat", "c1", "n1", false, true), 0);
}

static size_t reported(struct head_fixture *f, const char *job, const char *cluster)
{
    char path[64];
    json_t *reply = NULL, *query = json_pack("{s:s}", "cluster", cluster);
    struct service_request request = {.method = "GET", .path = path, .query = query, .admin = true};

    snprintf(path, sizeof(path), "/v1/reports/%s", job);
    assert_int_equal(service_handle(&f->service, &request, &reply), 200);
    size_t count = json_array_size(json_object_get(reply, "tasks"));
    json_decref(reply);
    json_decref(query);
    return count;
}

static void report(struct head_fixture *f, const char *job, const char *cluster, const char *opted)
{
    json_decref(head_call_as(f, 0, "POST", "/v1/reports",
                             json_pack("{s:s, s:s, s:s, s:s}", "event", "task_exit", "job", job,
                                       "cluster", cluster, "opted", opted),
                             200));
}

static void reports_of_other_jobs_are_not_kept(void **state)
{
    struct head_fixture *f = *state;

    begin_on(f, "tux", "1", "n1");
    report(f, "1", "tux", "1");
    report(f, "2", "tux", "0");
    report(f, "3", "tux", "1"); /* its begin is on the way */
    report(f, "1", "wolf", "1");
    assert_int_equal(reported(f, "1", "tux"), 1);
    assert_int_equal(reported(f, "1", ""), 2);
    assert_int_equal(reported(f, "2", "tux"), 0);
    assert_int_equal(reported(f, "3", "Tux"), 1);
    report(f, "1", "cat", "0"); /* a step with an environment of its own */
    assert_int_equal(reported(f, "1", "cat"), 1);
}

static bool first_open_is_done(struct head_fixture *f)
{
    json_t *reply = head_call(f, "GET", "/v1/attempts/open", NULL, 200);
    const json_t *attempt = json_array_get(json_object_get(reply, "attempts"), 0);
    bool done = json_get_bool(attempt, "done", false);
    /* Where it is, or where the one before it was. */
    assert_string_equal(json_get_string(attempt, "node", ""), "n1");
    json_decref(reply);
    return done;
}

static void what_is_done_about_an_intention(void **state)
{
    static const struct {
        const char *acted;
        bool done;
    } cases[] = {
        {"asking the scheduler to queue it again", false},
        {ACTED_QUEUED, true},
        {ACTED_QUEUED ACTED_ONCE_MORE, true},
        {ACTED_SUBMITTED "12", true},
        {"waiting for the scheduler", false},
    };
    struct head_fixture *f = *state;
    json_t *body = head_begin_body("123", "t1", 0);

    json_object_set_new(body, "node", json_string("n1"));
    json_t *reply = head_call(f, "POST", "/v1/attempts/begin", body, 200);
    json_int_t lineage = json_get_int(reply, "lineage", 0);
    json_decref(reply);
    json_decref(head_call(f, "POST", "/v1/attempts/end", head_oom_end(lineage, 1, "12288"), 200));
    assert_false(first_open_is_done(f));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_decref(head_call(
            f, "POST", "/v1/attempts/note",
            json_pack("{s:I, s:i, s:s}", "lineage", lineage, "attempt", 2, "acted", cases[i].acted),
            200));
        assert_int_equal(first_open_is_done(f), cases[i].done);
    }
    assert_true(acted_once_more(ACTED_QUEUED ACTED_ONCE_MORE));
    assert_false(acted_once_more(ACTED_QUEUED));
}

static json_t *begin_once(struct head_fixture *f, const char *job)
{
    json_t *body = head_begin_body(job, job, 0);

    json_object_set_new(body, "once", json_true());
    return head_call(f, "POST", "/v1/attempts/begin", body, 200);
}

/* A watcher that has forgotten everything begins each job again, in any order, at any time. */
static void ids_that_never_come_back(void **state)
{
    struct head_fixture *f = *state;
    json_t *reply = begin_once(f, "s");
    json_int_t lineage = json_get_int(reply, "lineage", 0);

    assert_string_equal(json_get_string(reply, "state", ""), "running");
    json_decref(reply);
    json_decref(head_call(f, "POST", "/v1/attempts/end", head_oom_end(lineage, 1, "12288"), 200));
    reply = begin_once(f, "s");
    assert_int_equal(json_get_int(reply, "attempt", 0), 1);
    assert_string_equal(json_get_string(reply, "state", ""), "ended");
    assert_string_equal(json_get_string(reply, "next_state", ""), "intended");
    json_decref(reply);
    /* The next submission's id is known before it begins. */
    json_decref(head_call(f, "POST", "/v1/attempts/note",
                          json_pack("{s:I, s:i, s:s, s:s}", "lineage", lineage, "attempt", 2,
                                    "acted", "submitting", "job", "s-oom2"),
                          200));
    reply = begin_once(f, "s-oom2");
    assert_int_equal(json_get_int(reply, "lineage", 0), lineage);
    assert_int_equal(json_get_int(reply, "attempt", 0), 2);
    assert_true(json_array_size(json_object_get(reply, "edits")) > 0);
    json_decref(reply);
    json_decref(head_call(f, "POST", "/v1/attempts/end",
                          json_pack("{s:I, s:i, s:b, s:{s:i}}", "lineage", lineage, "attempt", 2,
                                    "completed", 1, "exit", "exit_code", 0),
                          200));
    /* All is over: nothing begins anew. */
    for (int i = 0; i < 2; i++) {
        reply = begin_once(f, i ? "s-oom2" : "s");
        assert_int_equal(json_get_int(reply, "lineage", 0), lineage);
        assert_int_equal(json_get_int(reply, "attempt", 0), i + 1);
        assert_string_equal(json_get_string(reply, "state", ""), "ended");
        assert_string_not_equal(json_get_string(reply, "next_state", ""), "intended");
        json_decref(reply);
    }
    reply = head_call(f, "GET", "/v1/history/s-oom2", NULL, 200);
    assert_int_equal(json_array_size(json_object_get(reply, "attempts")), 2);
    json_decref(reply);
}

static void not_memory_is_not_retried(void **state)
{
    struct head_fixture *f = *state;
    json_t *reply = head_begin(f, "104", "t1", 0);
    json_int_t lineage = json_get_int(reply, "lineage", 0);

    json_decref(reply);
    reply =
        head_call(f, "POST", "/v1/attempts/end",
                  json_pack("{s:I, s:i, s:{s:i}, s:{s:b}, s:s}", "lineage", lineage, "attempt", 1,
                            "exit", "exit_code", 1, "incident", "oom", 0, "reason", "exit 1"),
                  200);
    assert_string_equal(json_get_string(reply, "action", ""), "stop");
    json_decref(reply);
    /* Ended from outside: even with the words in the log. */
    reply = head_begin(f, "105", "t1", 0);
    lineage = json_get_int(reply, "lineage", 0);
    json_decref(reply);
    json_t *body = head_oom_end(lineage, 1, "12288");
    json_object_set_new(body, "ended_by", json_string("signal"));
    reply = head_call(f, "POST", "/v1/attempts/end", body, 200);
    assert_string_equal(json_get_string(reply, "action", ""), "stop");
    json_decref(reply);
}

static json_t *host_oom(json_int_t lineage)
{
    return json_pack("{s:I, s:i, s:{s:i}, s:{s:b, s:s, s:f}, s:{s:{s:s, s:s}, s:{s:s, s:s}, "
                     "s:{s:s, s:s}, s:{s:s, s:s}}}",
                     "lineage", lineage, "attempt", 1, "exit", "exit_code", 137, "incident", "oom",
                     1, "domain", "host", "confidence", 0.95, "values", "slurm:mem", "value",
                     "1000", "source", "scheduler", "slurm.mem_mib", "value", "1000", "source",
                     "scheduler", "slurm.mem_max_mib", "value", "64000", "source", "scheduler",
                     "scheduler", "value", "slurm", "source", "scheduler");
}

static void memory_is_bounded_by_the_site(void **state)
{
    struct head_fixture *f = *state;
    struct service_limits limits = service_default_limits;
    json_t *reply = head_begin(f, "109", "t1", 0);
    json_int_t lineage = json_get_int(reply, "lineage", 0);

    json_decref(reply);
    limits.max_mem_mib = 1000;
    f->service.limits = &limits;
    reply = head_call(f, "POST", "/v1/attempts/end", host_oom(lineage), 200);
    assert_string_equal(json_get_string(reply, "action", ""), "stop");
    json_decref(reply);
    f->service.limits = &service_default_limits;
    reply = head_begin(f, "110", "t1", 0);
    lineage = json_get_int(reply, "lineage", 0);
    json_decref(reply);
    reply = head_call(f, "POST", "/v1/attempts/end", host_oom(lineage), 200);
    assert_string_equal(json_get_string(reply, "action", ""), "retry");
    assert_string_equal(json_get_string(reply, "mode", ""), "requeue");
    json_decref(reply);
}

static void bounds_on_a_user(void **state)
{
    struct head_fixture *f = *state;
    struct service_limits limits = service_default_limits;
    json_t *reply = head_begin(f, "111", "t1", 0);
    json_int_t lineage = json_get_int(reply, "lineage", 0);

    json_decref(reply);
    limits.attempts_per_user_day = 1;
    f->service.limits = &limits;
    reply = head_call(f, "POST", "/v1/attempts/end", head_oom_end(lineage, 1, "12288"), 200);
    assert_string_equal(json_get_string(reply, "action", ""), "retry");
    json_decref(reply);
    json_decref(head_begin(f, "111", "t1", 0));
    reply = head_call(f, "POST", "/v1/attempts/end", head_oom_end(lineage, 2, "8192"), 200);
    assert_string_equal(json_get_string(reply, "action", ""), "stop");
    assert_non_null(strstr(json_get_string(reply, "reason", ""), "attempts_per_user_day"));
    json_decref(reply);
}

static void a_checkpoint_is_gone_on_from(void **state)
{
    struct head_fixture *f = *state;
    json_t *reply = head_begin(f, "113", "t1", 0);
    json_int_t lineage = json_get_int(reply, "lineage", 0);
    json_t *body = head_oom_end(lineage, 1, "12288"), *edit;
    bool loads = false;
    size_t i;

    json_decref(reply);
    json_object_set_new(body, "resume",
                        json_pack("{s:s, s:[{s:s, s:s, s:s}], s:[s]}", "checkpoint", "/ckpt",
                                  "edits", "knob", "--load", "old", "/base", "new", "/ckpt",
                                  "frozen", "--max-tokens-per-gpu"));
    reply = head_call(f, "POST", "/v1/attempts/end", body, 200);
    assert_string_equal(json_get_string(reply, "action", ""), "retry");
    json_array_foreach(json_object_get(reply, "edits"), i, edit)
    {
        /* With a checkpoint that would not load, the rung that always comes first does not. */
        assert_string_not_equal(json_get_string(edit, "knob", ""), "--max-tokens-per-gpu");
        loads = loads || (strcmp(json_get_string(edit, "knob", ""), "--load") == 0 &&
                          strcmp(json_get_string(edit, "new", ""), "/ckpt") == 0);
    }
    assert_true(loads);
    json_decref(reply);
}

/* Begins a lineage of one shape that runs out; the decision for its second attempt. */
static json_t *run_out_alike(struct head_fixture *f, const char *job, const char *mode,
                             const char *time_left)
{
    json_t *body = head_begin_body(job, "t1", 0);

    json_object_set_new(body, "shape", json_string("alike-g0"));
    json_object_set_new(json_object_get(body, "options"), "mode", json_string(mode));
    json_t *reply = head_call(f, "POST", "/v1/attempts/begin", body, 200);
    body = head_oom_end(json_get_int(reply, "lineage", 0), 1, "12288");
    json_decref(reply);
    json_t *values = json_object_get(body, "values");
    json_object_set_new(values, "scheduler",
                        json_pack("{s:s, s:s}", "value", "slurm", "source", "scheduler"));
    json_object_set_new(values, "slurm.time_left_s",
                        json_pack("{s:s, s:s}", "value", time_left, "source", "scheduler"));
    return head_call(f, "POST", "/v1/attempts/end", body, 200);
}

static void what_worked_before_is_started_as_this_job_is(void **state)
{
    static const struct {
        const char *mode, *time_left, *is;
    } rows[] = {{"auto", "90000", "inplace"},
                {"auto", "10", "requeue"},
                {"resubmit", "90000", "resubmit"},
                {"requeue", "90000", "requeue"}};
    struct head_fixture *f = *state;
    json_t *reply = run_out_alike(f, "170", "auto", "90000");

    assert_string_not_equal(json_get_string(reply, "rung", ""), "as-before");
    json_decref(reply);
    reply = head_begin(f, "170", "t1", 0);
    json_decref(head_call(f, "POST", "/v1/attempts/end",
                          json_pack("{s:O, s:i, s:b, s:{s:i}}", "lineage",
                                    json_object_get(reply, "lineage"), "attempt", 2, "completed", 1,
                                    "exit", "exit_code", 0),
                          200));
    json_decref(reply);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char job[16];
        snprintf(job, sizeof(job), "%zu", 171 + i);
        reply = run_out_alike(f, job, rows[i].mode, rows[i].time_left);
        assert_string_equal(json_get_string(reply, "rung", ""), "as-before");
        assert_string_equal(json_get_string(reply, "mode", ""), rows[i].is);
        assert_true(*json_get_string(reply, "mode_why", "") != '\0');
        json_decref(reply);
    }
}

static json_t *begin_for(struct head_fixture *f, uid_t uid, const char *account, const char *job)
{
    json_t *body = head_begin_body(job, "t1", 0);

    json_object_set_new(body, "account", json_string(account));
    json_object_set_new(body, "gpus", json_integer(2));
    return head_call_as(f, uid, "POST", "/v1/attempts/begin", body, 200);
}

/* Ends attempt 1 of a new lineage by running out; the reply. */
static json_t *run_out(struct head_fixture *f, uid_t uid, const char *account, const char *job)
{
    json_t *reply = begin_for(f, uid, account, job);
    json_int_t lineage = json_get_int(reply, "lineage", 0);

    json_decref(reply);
    return head_call_as(f, uid, "POST", "/v1/attempts/end", head_oom_end(lineage, 1, "12288"), 200);
}

static void assert_stop(json_t *reply, const char *because)
{
    assert_string_equal(json_get_string(reply, "action", ""), *because ? "stop" : "retry");
    if (!strstr(json_get_string(reply, "reason", ""), because))
        print_error("%s\n", json_get_string(reply, "reason", ""));
    assert_non_null(strstr(json_get_string(reply, "reason", ""), because));
    json_decref(reply);
}

/* Two users of one account: together they reach its bound, a user of another account does not. */
static void bounds_on_an_account(void **state)
{
    struct head_fixture *f = *state;
    struct service_limits limits = service_default_limits;

    limits.attempts_per_account_day = 2;
    f->service.limits = &limits;
    assert_stop(run_out(f, ALICE, "llm", "120"), "");
    assert_stop(run_out(f, BO, "llm", "121"), "");
    assert_stop(run_out(f, BO, "llm", "122"), "attempts_per_account_day");
    assert_stop(run_out(f, BO, "other", "123"), "");
    assert_stop(run_out(f, BO, "", "124"), "");

    /* The allocation counts, as the scheduler tells it at the end: 8 GPUs, not 2. */
    limits.attempts_per_account_day = 0;
    limits.gpu_hours_per_account_day = 7.5;
    json_t *reply = begin_for(f, ALICE, "vision", "125"), *body;
    json_int_t lineage = json_get_int(reply, "lineage", 0);
    json_decref(reply);
    assert_int_equal(db_run(f->service.db, NULL,
                            "UPDATE attempt SET started_ms = started_ms - 3600000 "
                            "WHERE lineage = ?",
                            "i", (int64_t)lineage),
                     0);
    body = head_oom_end(lineage, 1, "12288");
    json_object_set_new(json_object_get(body, "values"), "slurm.gpus",
                        json_pack("{s:s, s:s}", "value", "8", "source", "scheduler"));
    assert_stop(head_call(f, "POST", "/v1/attempts/end", body, 200), "gpu_hours_per_account_day");
    limits.gpu_hours_per_account_day = 8.5;
    assert_stop(run_out(f, BO, "vision", "126"), "");

    reply = head_call_as(f, BO, "GET", "/v1/budget", NULL, 200);
    json_t *row, *accounts = json_object_get(reply, "accounts");
    size_t i;
    double vision = 0;
    assert_int_equal(json_array_size(json_object_get(reply, "users")), 1);
    assert_int_equal(json_array_size(accounts), 3);
    json_array_foreach(accounts, i,
                       row) if (strcmp(json_get_string(row, "account", ""), "vision") == 0) vision =
        json_number_value(json_object_get(row, "gpu_hours"));
    assert_true(vision > 7.99 && vision < 8.01);
    json_decref(reply);
    reply = head_call_as(f, 0, "GET", "/v1/budget", NULL, 200);
    assert_int_equal(json_array_size(json_object_get(reply, "users")), 2);
    json_decref(reply);
}

static void failed_attempts_take_a_bounded_time(void **state)
{
    struct head_fixture *f = *state;
    struct service_limits limits = service_default_limits;
    json_t *reply = begin_for(f, ALICE, "", "130");
    json_int_t lineage = json_get_int(reply, "lineage", 0);

    json_decref(reply);
    limits.max_lineage_hours = 1;
    f->service.limits = &limits;
    assert_int_equal(db_run(f->service.db, NULL,
                            "UPDATE attempt SET started_ms = started_ms - 3700000 "
                            "WHERE lineage = ?",
                            "i", (int64_t)lineage),
                     0);
    assert_stop(head_call(f, "POST", "/v1/attempts/end", head_oom_end(lineage, 1, "12288"), 200),
                "max_lineage_hours");
    assert_stop(run_out(f, ALICE, "", "131"), "");
}

/* A lineage that its ladder could not help: the only rung that is left is refused. */
static void use_up(struct head_fixture *f, uid_t uid, const char *job)
{
    json_t *reply = begin_for(f, uid, "", job);
    json_int_t lineage = json_get_int(reply, "lineage", 0);
    json_t *refused = json_array();

    json_decref(reply);
    for (int i = 0; i < 32; i++) {
        json_t *body = head_oom_end(lineage, 1, "12288");
        json_object_set(body, "refused", refused);
        reply = head_call_as(f, uid, "POST", "/v1/attempts/end", body, 200);
        bool stopped = strcmp(json_get_string(reply, "action", ""), "stop") == 0;
        json_array_append_new(refused,
                              json_pack("{s:s, s:s}", "rung", json_get_string(reply, "rung", ""),
                                        "why", "cannot be written"));
        json_decref(reply);
        if (stopped)
            break;
    }
    json_decref(refused);
}

static void a_policy_that_does_not_help_pauses(void **state)
{
    struct head_fixture *f = *state;
    struct service_limits limits = service_default_limits;

    limits.cooldown_failures = 2;
    f->service.limits = &limits;
    use_up(f, ALICE, "140");
    assert_stop(run_out(f, ALICE, "", "141"), "");
    use_up(f, ALICE, "142");
    assert_stop(run_out(f, ALICE, "", "143"), "cooldown_failures");
    /* One user's jobs do not hold up the others; being held up is no further failure. */
    assert_stop(run_out(f, BO, "", "144"), "");
    use_up(f, BO, "145");
    assert_stop(run_out(f, BO, "", "146"), "cooldown_failures");
    assert_stop(run_out(f, 2003, "", "147"), "cooldown_failures");
    assert_int_equal(db_run(f->service.db, NULL,
                            "UPDATE lineage SET updated_ms = updated_ms - "
                            "3700000 WHERE stopped_by = 'ladder'",
                            ""),
                     0);
    assert_stop(run_out(f, 2003, "", "148"), "");
}

static void an_owner_stops_and_holds(void **state)
{
    struct head_fixture *f = *state;
    json_t *reply = head_begin(f, "112", "t1", 0);
    json_int_t lineage = json_get_int(reply, "lineage", 0);
    char path[64];

    json_decref(reply);
    snprintf(path, sizeof(path), "/v1/lineages/%lld/hold", (long long)lineage);
    json_decref(head_call_as(f, BO, "POST", path, NULL, 403));
    json_decref(head_call(f, "POST", path, NULL, 200));
    reply = head_call(f, "POST", "/v1/attempts/end", head_oom_end(lineage, 1, "12288"), 200);
    assert_string_equal(json_get_string(reply, "action", ""), "stop");
    json_decref(reply);
    reply = head_call(f, "GET", "/v1/history/112", NULL, 200);
    assert_string_equal(json_get_string(json_object_get(reply, "lineage"), "state", ""), "held");
    json_decref(reply);
    /* Its last attempt is open again for the agent, which decides what comes next. */
    snprintf(path, sizeof(path), "/v1/lineages/%lld/resume", (long long)lineage);
    json_decref(head_call_as(f, BO, "POST", path, NULL, 403));
    reply = head_call(f, "POST", path, NULL, 200);
    assert_true(json_get_bool(reply, "reopened", false));
    json_decref(reply);
    reply = head_call(f, "GET", "/v1/attempts/open", NULL, 200);
    assert_int_equal(json_array_size(json_object_get(reply, "attempts")), 1);
    json_decref(reply);
    reply = head_call(f, "POST", "/v1/attempts/end", head_oom_end(lineage, 1, "12288"), 200);
    assert_string_equal(json_get_string(reply, "action", ""), "retry");
    json_decref(reply);
    /* What was said while the next attempt waits holds when it runs. */
    snprintf(path, sizeof(path), "/v1/lineages/%lld/stop", (long long)lineage);
    json_decref(head_call(f, "POST", path, NULL, 200));
    json_decref(head_begin(f, "112", "t2", 1));
    reply = head_call(f, "POST", "/v1/attempts/end", head_oom_end(lineage, 2, "8192"), 200);
    assert_string_equal(json_get_string(reply, "action", ""), "stop");
    json_decref(reply);
    reply = head_call(f, "GET", "/v1/history/112", NULL, 200);
    assert_string_equal(json_get_string(json_object_get(reply, "lineage"), "state", ""), "stopped");
    json_decref(reply);
}

static void what_is_over_is_not_steered(void **state)
{
    struct head_fixture *f = *state;
    json_t *reply = head_begin(f, "113", "t1", 0);
    json_int_t lineage = json_get_int(reply, "lineage", 0);
    char path[64];

    json_decref(reply);
    json_decref(head_call(f, "POST", "/v1/attempts/end",
                          json_pack("{s:I, s:i, s:b, s:{s:i}}", "lineage", lineage, "attempt", 1,
                                    "completed", 1, "exit", "exit_code", 0),
                          200));
    for (const char *const *verb = (const char *[]){"stop", "hold", "resume", NULL}; *verb;
         verb++) {
        snprintf(path, sizeof(path), "/v1/lineages/%lld/%s", (long long)lineage, *verb);
        json_decref(head_call(f, "POST", path, NULL, 409));
    }
}

static void a_change_that_did_not_arrive_ends_it(void **state)
{
    struct head_fixture *f = *state;
    json_t *reply = head_begin(f, "106", "t1", 0);
    json_int_t lineage = json_get_int(reply, "lineage", 0);

    json_decref(reply);
    json_decref(head_call(f, "POST", "/v1/attempts/end", head_oom_end(lineage, 1, "12288"), 200));
    json_decref(head_begin(f, "106", "t1", 0));
    json_decref(head_call(
        f, "POST", "/v1/attempts/note",
        json_pack("{s:I, s:i, s:s}", "lineage", lineage, "attempt", 2, "applied", "no"), 200));
    reply = head_call(f, "POST", "/v1/attempts/end", head_oom_end(lineage, 2, "12288"), 200);
    assert_string_equal(json_get_string(reply, "action", ""), "stop");
    assert_non_null(strstr(json_get_string(reply, "reason", ""), "did not arrive"));
    json_decref(reply);
}

static void rights(void **state)
{
    struct head_fixture *f = *state;
    json_t *reply = head_begin(f, "107", "t1", 0);
    json_int_t lineage = json_get_int(reply, "lineage", 0);

    json_decref(reply);
    json_decref(head_call_as(f, BO, "GET", "/v1/history/107", NULL, 403));
    json_decref(
        head_call_as(f, BO, "POST", "/v1/attempts/end", head_oom_end(lineage, 1, "1"), 403));
    json_decref(head_call_as(
        f, BO, "POST", "/v1/attempts/note",
        json_pack("{s:I, s:i, s:s}", "lineage", lineage, "attempt", 1, "diff", "x"), 403));
    /* The same number is another job when somebody else says it, and takes nothing away. */
    reply = head_call_as(f, BO, "POST", "/v1/attempts/begin", head_begin_body("107", "t2", 0), 200);
    assert_int_not_equal(json_get_int(reply, "lineage", 0), lineage);
    json_decref(reply);
    reply = head_begin(f, "107", "t1", 0);
    assert_int_equal(json_get_int(reply, "lineage", 0), lineage);
    json_decref(reply);
    json_decref(
        head_call_as(f, BO, "POST", "/v1/reports", json_pack("{s:s}", "event", "task_exit"), 403));
    json_decref(head_call_as(f, 0, "GET", "/v1/history/107", NULL, 200));
}

/* What is asked for each task that ends, and for each job, must not become slow with the years. */
static void questions_use_indexes(void **state)
{
    struct head_fixture *f = *state;
    static const char *const questions[] = {
        "EXPLAIN QUERY PLAN DELETE FROM task_exit WHERE at_ms < 1",
        "EXPLAIN QUERY PLAN SELECT task FROM task_exit WHERE job = '1' AND at_ms >= 1",
    };

    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
        sqlite3_stmt *stmt = db_query(f->service.db, NULL, questions[i], "");
        assert_int_equal(db_step(f->service.db, stmt, NULL), 1);
        assert_non_null(strstr(db_text(stmt, 3), "USING"));
        assert_null(strstr(db_text(stmt, 3), "SCAN"));
        sqlite3_finalize(stmt);
    }
}

static void old_evidence_is_forgotten(void **state)
{
    struct head_fixture *f = *state;
    int64_t left = 0, windows = 0;
    struct oom_error err = {""};

    /* Two lineages with evidence, one of them of last year. */
    for (int i = 0; i < 2; i++) {
        json_t *body = json_array(),
               *fields = json_pack("{s:i, s:{}, s:{}}", "uid", ALICE, "policies", "options");
        int64_t id = lineage_create(f->service.db, fields, &err);
        assert_int_equal(attempt_insert(f->service.db, id, 1, "first", NULL, NULL, NULL, &err), 0);
        assert_int_equal(evidence_put(f->service.db, id, 1, "windows", body, &err), 0);
        int64_t ended = i ? db_now_ms() : db_now_ms() - INT64_C(365) * 24 * 3600 * 1000;
        assert_int_equal(
            db_run(f->service.db, &err,
                   "UPDATE attempt SET state = 'ended', ended_ms = ? WHERE lineage = ?", "ii",
                   ended, id),
            0);
        json_decref(body);
        json_decref(fields);
    }
    json_decref(head_call_as(f, ALICE, "POST", "/v1/attempts/begin",
                             json_pack("{s:s, s:s}", "job", "5150", "token", "t"), 200));
    assert_int_equal(db_get_int(f->service.db, &err, -1, &left, "SELECT count(*) FROM lineage", ""),
                     0);
    assert_int_equal(left, 3);
    assert_int_equal(
        db_get_int(f->service.db, &err, -1, &windows, "SELECT count(*) FROM evidence", ""), 0);
    assert_int_equal(windows, 1);
}

static void hostile_requests(void **state)
{
    struct head_fixture *f = *state;
    char long_path[2000];

    json_decref(head_call(f, "GET", "/v1/nothing", NULL, 404));
    json_decref(head_call(f, "GET", "/v1/attempts/begin", NULL, 405));
    json_decref(head_call(f, "POST", "/v1/attempts/begin", NULL, 400));
    json_decref(head_call(f, "POST", "/v1/attempts/begin", json_pack("{s:i}", "job", 7), 400));
    json_decref(head_call(f, "POST", "/v1/attempts/end", json_object(), 404));
    json_decref(head_call(f, "GET", "/v1/history/1;drop table lineage", NULL, 404));
    memset(long_path, 'a', sizeof(long_path) - 1);
    long_path[0] = '/';
    long_path[sizeof(long_path) - 1] = '\0';
    json_decref(head_call(f, "GET", long_path, NULL, 404));
}

static void shipped_policies_are_seeded_once(void **state)
{
    struct head_fixture *f = *state;
    struct oom_error err = {""};
    struct service again;
    int64_t versions = 0, later = 0;

    assert_int_equal(
        db_get_int(f->service.db, &err, 0, &versions, "SELECT count(*) FROM policy_version", ""),
        0);
    assert_true(versions >= 4);
    assert_int_equal(service_open(&again, f->path, &err), 0);
    assert_int_equal(
        db_get_int(again.db, &err, 0, &later, "SELECT count(*) FROM policy_version", ""), 0);
    service_close(&again);
    assert_int_equal(versions, later);
}

static void two_editors(void **state)
{
    struct head_fixture *f = *state;
    struct oom_error err = {""};
    json_t *body = policies_load(f->service.db, "relax", 0, NULL, &err);

    assert_non_null(body);
    assert_int_equal(policies_add(f->service.db, "relax", 1, body, "alice", "one", &err), 2);
    assert_int_equal(policies_add(f->service.db, "relax", 1, body, "bo", "two", &err), -1);
    assert_non_null(strstr(err.text, "version 2 by alice is active"));
    json_decref(body);
}

static void store_override(struct head_fixture *f, const char *scope, const char *subject, int base,
                           double scale)
{
    char path[128];

    snprintf(path, sizeof(path), "/v1/policies/relax:%s=%s", scope, subject);
    json_decref(head_call_as(f, 0, "POST", path,
                             json_pack("{s:i, s:s, s:{s:s, s:{s:s}, s:{s:f}}}", "base", base,
                                       "message", "test", "document", "policy", "relax", "for",
                                       scope, subject, "set", "forward.fewer-tokens.scale", scale),
                             200));
}

/* The new value of the first failure of a job of this partition and account. */
static void expect_tokens(struct head_fixture *f, json_t *begun, const char *tokens,
                          const char *overrides)
{
    json_t *reply = head_call(f, "POST", "/v1/attempts/end",
                              head_oom_end(json_get_int(begun, "lineage", 0), 1, "9216"), 200);
    const json_t *edit = json_array_get(json_object_get(reply, "edits"), 0);

    assert_string_equal(json_get_string(edit, "new", ""), tokens);
    assert_string_equal(json_get_string(reply, "overrides", ""), overrides);
    assert_string_equal(json_get_string(reply, "policy", ""), "relax@1");
    json_decref(reply);
    json_decref(begun);
}

static json_t *begin_in(struct head_fixture *f, const char *job, const char *partition,
                        const char *account)
{
    json_t *body = head_begin_body(job, "t", 0);

    json_object_set_new(body, "partition", json_string(partition));
    json_object_set_new(body, "account", json_string(account));
    return head_call(f, "POST", "/v1/attempts/begin", body, 200);
}

static void a_lineage_keeps_the_overrides_that_it_began_with(void **state)
{
    struct head_fixture *f = *state;

    store_override(f, "partition", "small", 0, 0.75);
    json_t *early = begin_in(f, "1", "small", "ml");
    store_override(f, "partition", "small", 1, 0.25);
    store_override(f, "account", "ml", 0, 0.9);
    expect_tokens(f, begin_in(f, "2", "small", "bio"), "2304", "partition=small@2");
    expect_tokens(f, begin_in(f, "3", "small", "ml"), "8256", "partition=small@2, account=ml@1");
    expect_tokens(f, begin_in(f, "4", "big", "bio"), "4608", "");
    expect_tokens(f, early, "6912", "partition=small@1");
}

static void overrides_are_for_administrators(void **state)
{
    struct head_fixture *f = *state;
    const char *path = "/v1/policies/relax:user=alice";
    json_t *document = json_pack("{s:s, s:{s:s}, s:{s:i}}", "policy", "relax", "for", "user",
                                 "alice", "set", "max_retries", 20);

    json_decref(head_call(
        f, "POST", path,
        json_pack("{s:i, s:s, s:O}", "base", 0, "message", "", "document", document), 403));
    json_decref(head_call(f, "GET", path, NULL, 404));
    /* whether it would fit, everybody may ask */
    json_decref(head_call(f, "POST", "/v1/policies/relax:user=alice/check",
                          json_pack("{s:O}", "document", document), 200));
    json_decref(head_call_as(
        f, 0, "POST", "/v1/policies/relax:user=bo",
        json_pack("{s:i, s:s, s:O}", "base", 0, "message", "", "document", document), 400));
    json_decref(head_call_as(f, 0, "POST", "/v1/policies/relax:user=alice/disable", NULL, 400));
    json_decref(document);
}

/* The end of a changed attempt, whose last words name the flag that was changed for it. */
static json_t *rejected_end(json_int_t lineage, json_int_t attempt, bool asks)
{
    json_t *body = head_oom_end(lineage, attempt, "8192");
    json_t *incident =
        json_pack("{s:b, s:s, s:s, s:{s:s, s:i}}", "oom", 0, "domain", "none", "phase", "unknown",
                  "cause", "text", "error: argument --max-tokens-per-gpu: too small", "line", 3);

    json_object_set_new(body, "incident", incident);
    json_object_set_new(body, "rejected", json_boolean(asks));
    return body;
}

static void who_does_not_ask_gets_no_next_attempt(void **state)
{
    struct head_fixture *f = *state;

    for (int asks = 0; asks < 2; asks++) {
        const char *job = asks ? "301" : "300";
        json_t *reply = head_begin(f, job, "t1", 0);
        json_int_t lineage = json_get_int(reply, "lineage", 0);
        json_decref(reply);
        json_decref(
            head_call(f, "POST", "/v1/attempts/end", head_oom_end(lineage, 1, "12288"), 200));
        json_decref(head_begin(f, job, "t1", 0));
        reply = head_call(f, "POST", "/v1/attempts/end", rejected_end(lineage, 2, asks), 200);
        assert_string_equal(json_get_string(reply, "action", ""), asks ? "retry" : "stop");
        if (asks)
            assert_string_equal(json_get_string(reply, "taken_back", ""), "fewer-tokens");
        json_decref(reply);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_retry_for_one_failure, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(a_refused_rung_is_not_offered_again, head_setup,
                                        head_teardown),
        cmocka_unit_test_setup_teardown(restarts_of_the_scheduler_keep_the_edits, head_setup,
                                        head_teardown),
        cmocka_unit_test_setup_teardown(a_job_id_comes_back, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(a_forgotten_id_goes_to_a_resubmission, head_setup,
                                        head_teardown),
        cmocka_unit_test_setup_teardown(a_lost_job_is_not_taken_for_its_successor, head_setup,
                                        head_teardown),
        cmocka_unit_test_setup_teardown(one_agent_of_a_cluster_looks_after_all, head_setup,
                                        head_teardown),
        cmocka_unit_test_setup_teardown(reports_of_other_jobs_are_not_kept, head_setup,
                                        head_teardown),
        cmocka_unit_test_setup_teardown(a_forgotten_start_keeps_its_lineage, head_setup,
                                        head_teardown),
        cmocka_unit_test_setup_teardown(a_start_that_is_told_late, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(what_is_done_about_an_intention, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(ids_that_never_come_back, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(not_memory_is_not_retried, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(who_does_not_ask_gets_no_next_attempt, head_setup,
                                        head_teardown),
        cmocka_unit_test_setup_teardown(memory_is_bounded_by_the_site, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(bounds_on_a_user, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(bounds_on_an_account, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(failed_attempts_take_a_bounded_time, head_setup,
                                        head_teardown),
        cmocka_unit_test_setup_teardown(a_policy_that_does_not_help_pauses, head_setup,
                                        head_teardown),
        cmocka_unit_test_setup_teardown(what_is_over_is_not_steered, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(a_checkpoint_is_gone_on_from, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(what_worked_before_is_started_as_this_job_is, head_setup,
                                        head_teardown),
        cmocka_unit_test_setup_teardown(an_owner_stops_and_holds, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(a_change_that_did_not_arrive_ends_it, head_setup,
                                        head_teardown),
        cmocka_unit_test_setup_teardown(rights, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(hostile_requests, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(questions_use_indexes, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(old_evidence_is_forgotten, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(shipped_policies_are_seeded_once, head_setup,
                                        head_teardown),
        cmocka_unit_test_setup_teardown(two_editors, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(a_lineage_keeps_the_overrides_that_it_began_with,
                                        head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(overrides_are_for_administrators, head_setup,
                                        head_teardown),
    };
    return cmocka_run_group_tests_name("service", tests, NULL, NULL);
}
