/* SPDX-License-Identifier: Apache-2.0
 *
 * The head over time and among strangers: who acts, who sees what, and what it keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/lib/elapsed.h"
#include "agent/lib/jsonget.h"
#include "db/lineages.h"
#include "db/policies.h"
#include "tests/unit/head_help.h"

#define YEAR_MS (INT64_C(365) * 24 * 3600 * 1000)

static json_int_t lineage_of(json_t *reply)
{
    json_int_t id = json_get_int(reply, "lineage", 0);

    json_decref(reply);
    return id;
}

static int64_t number(struct head_fixture *f, const char *sql)
{
    int64_t out = -1;

    assert_int_equal(db_get_int(f->service.db, NULL, -1, &out, sql, ""), 0);
    return out;
}

/* --- who acts -----------------------------------------------------------------------------------
 */

static bool claim_of(struct head_fixture *f, json_int_t lineage, int attempt, const char *by,
                     bool release)
{
    json_t *reply = head_call_as(f, 0, "POST", "/v1/attempts/claim",
                                 json_pack("{s:I, s:i, s:s, s:b}", "lineage", lineage, "attempt",
                                           attempt, "by", by, "release", (int)release),
                                 200);
    bool granted = json_get_bool(reply, "granted", false);

    json_decref(reply);
    return granted;
}

static bool claim(struct head_fixture *f, json_int_t lineage, const char *by, bool release)
{
    return claim_of(f, lineage, 1, by, release);
}

/* Who has found the end of an attempt is about to start the next one. */
static void the_next_attempt_is_claimed_with_it(void **state)
{
    struct head_fixture *f = *state;
    json_int_t id = lineage_of(head_begin(f, "1", "t", 0));
    json_int_t other = lineage_of(head_begin(f, "2", "u", 0));

    assert_true(claim(f, id, "node:a:1", false));
    json_decref(head_call(f, "POST", "/v1/attempts/end", head_oom_end(id, 1, "12288"), 200));
    assert_false(claim_of(f, id, 2, "node:a:2", false));
    assert_true(claim(f, other, "node:a:2", false));
    assert_true(claim(f, id, "node:a:1", false));
    db_run(f->service.db, NULL, "UPDATE attempt SET claimed_ms = claimed_ms - 61000", "");
    assert_true(claim(f, id, "node:a:1", false)); /* still at work */
    assert_false(claim_of(f, id, 2, "node:a:2", false));
    assert_true(claim(f, id, "node:a:1", true));
    assert_true(claim_of(f, id, 2, "node:a:2", false));
}

/* GPU-hours and what people read count up to its end, not up to when somebody came to look. */
static void an_end_that_is_found_late(void **state)
{
    struct head_fixture *f = *state;
    static const struct {
        json_int_t ago_ms;
        int64_t ran_s;
    } rows[] = {{600000, 900}, {0, 1500}, {-5, 1500}, {INT64_MAX, 1500}, {99999000, 0}};
    int64_t ran_ms;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char job[8], token[8];
        snprintf(job, sizeof(job), "%zu", i + 1);
        snprintf(token, sizeof(token), "t%zu", i);
        json_int_t id = lineage_of(head_begin(f, job, token, 0));
        json_t *body = head_oom_end(id, 1, "12288");
        db_run(f->service.db, NULL,
               "UPDATE attempt SET started_ms = started_ms - 1500000 WHERE lineage = ?", "i",
               (int64_t)id);
        json_object_set_new(body, "ended_ago_ms", json_integer(rows[i].ago_ms));
        json_decref(head_call(f, "POST", "/v1/attempts/end", body, 200));
        assert_int_equal(db_get_int(f->service.db, NULL, -1, &ran_ms,
                                    "SELECT ended_ms - started_ms FROM attempt "
                                    "WHERE lineage = ? AND number = 1",
                                    "i", (int64_t)id),
                         0);
        assert_in_range(ran_ms / 1000, rows[i].ran_s, rows[i].ran_s + 20);
    }
}

static void one_acts_at_a_time(void **state)
{
    struct head_fixture *f = *state;
    json_int_t id = lineage_of(head_begin(f, "1", "t", 0));

    assert_true(claim(f, id, "node:a:1", false));
    assert_false(claim(f, id, "node:a:2", false));
    assert_true(claim(f, id, "node:a:1", false)); /* it is still at work */
    assert_false(claim(f, id, "node:a:2", true));
    assert_false(claim(f, id, "node:a:2", false));
    assert_true(claim(f, id, "node:a:1", true));
    assert_true(claim(f, id, "node:a:2", false));
    /* Nobody gave it back, and nobody keeps it. */
    db_run(f->service.db, NULL, "UPDATE attempt SET claimed_ms = claimed_ms - 61000", "");
    assert_true(claim(f, id, "node:a:3", false));
    /* The clock was set back by a year. */
    db_run(f->service.db, NULL, "UPDATE attempt SET claimed_ms = claimed_ms + ?", "i", YEAR_MS);
    assert_true(claim(f, id, "node:a:4", false));
}

static json_int_t tasks_of(struct head_fixture *f, const json_t *query)
{
    json_t *reply = NULL;
    struct service_request request = {
        .method = "GET", .path = "/v1/reports/1", .query = query, .uid = ALICE};

    assert_int_equal(service_handle(&f->service, &request, &reply), 200);
    json_int_t count = (json_int_t)json_array_size(json_object_get(reply, "tasks"));
    json_decref(reply);
    return count;
}

/* A node's clock may be minutes before or behind the head's: when an attempt began is the head's to
 * say, as it says when a task has ended. */
static void what_ended_in_an_attempt(void **state)
{
    struct head_fixture *f = *state;
    json_int_t id = lineage_of(head_begin(f, "1", "t", 0));
    json_t *query = json_pack("{s:s, s:s}", "lineage", "1", "attempt", "1");

    assert_int_equal(id, 1);
    json_decref(head_call_as(f, 0, "POST", "/v1/reports",
                             json_pack("{s:s, s:s, s:s, s:s, s:s}", "event", "task_exit", "job",
                                       "1", "uid", "2001", "oom_kill", "1", "step", "0"),
                             200));
    assert_int_equal(tasks_of(f, query), 1);
    db_run(f->service.db, NULL, "UPDATE task_exit SET at_ms = at_ms - 60000", "");
    assert_int_equal(tasks_of(f, query), 0);
    assert_int_equal(tasks_of(f, NULL), 1);
    json_decref(query);
}

/* --- who sees what ------------------------------------------------------------------------------
 */

static json_int_t backtested_for(struct head_fixture *f, uid_t uid)
{
    json_t *reply = head_call_as(f, uid, "POST", "/v1/policies/relax/backtest", json_object(), 200);
    json_int_t incidents = json_get_int(reply, "incidents", -1);

    json_decref(reply);
    return incidents;
}

static void a_backtest_tells_of_ones_own_failures(void **state)
{
    struct head_fixture *f = *state;
    json_int_t id = lineage_of(head_begin(f, "1", "t", 0));

    json_decref(
        head_call_as(f, ALICE, "POST", "/v1/attempts/end", head_oom_end(id, 1, "12288"), 200));
    assert_int_equal(backtested_for(f, ALICE), 1);
    assert_int_equal(backtested_for(f, 0), 1);
    assert_int_equal(backtested_for(f, BO), 0);
}

static void names_of_jobs_are_not_lineages(void **state)
{
    struct head_fixture *f = *state;
    static const char *const jobs[] = {"Llama-8b", "L1x", "1.5B-run", "1.x"};
    json_int_t first = lineage_of(head_begin(f, "4711", "t", 0));

    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        char path[64], token[8];
        snprintf(token, sizeof(token), "t%zu", i);
        json_int_t id = lineage_of(head_begin(f, jobs[i], token, 0));
        snprintf(path, sizeof(path), "/v1/history/%s", jobs[i]);
        json_t *reply = head_call(f, "GET", path, NULL, 200);
        assert_int_equal(json_get_int(json_object_get(reply, "lineage"), "id", 0), id);
        json_decref(reply);
    }
    static const char *const lineages[] = {"/v1/history/L1", "/v1/history/1.1"};
    for (size_t i = 0; i < 2; i++) {
        json_t *reply = head_call(f, "GET", lineages[i], NULL, 200);
        assert_int_equal(json_get_int(json_object_get(reply, "lineage"), "id", 0), first);
        json_decref(reply);
    }
}

/* --- what it keeps ------------------------------------------------------------------------------
 */

/* Sums of these would be more than an integer holds, in everybody's report. */
static void numbers_beyond_all_measure(void **state)
{
    struct head_fixture *f = *state;

    for (int i = 0; i < 3; i++) {
        char job[16];
        snprintf(job, sizeof(job), "%d", 900 + i);
        json_t *body = head_begin_body(job, job, 0);
        json_object_set_new(body, "gpus", json_integer(INT64_MAX));
        json_int_t id = lineage_of(head_call_as(f, ALICE, "POST", "/v1/attempts/begin", body, 200));
        body = head_oom_end(id, 1, "12288");
        if (i > 0)
            json_object_set_new(
                json_object_get(body, "values"), "slurm.gpus",
                json_pack("{s:s, s:s}", "value", "9223372036854775807", "source", "scheduler"));
        json_decref(head_call_as(f, ALICE, "POST", "/v1/attempts/end", body, 200));
    }
    db_run(f->service.db, NULL, "UPDATE attempt SET started_ms = ended_ms - 1", "");
    json_decref(head_call_as(f, 0, "GET", "/v1/stats", NULL, 200));
    json_decref(head_call_as(f, 0, "GET", "/v1/report", NULL, 200));
    json_decref(head_call_as(f, 0, "GET", "/v1/budget", NULL, 200));
}

/* SQLite's functions refuse what is nested so deep, in whatever statement meets it. */
static void bodies_without_measure(void **state)
{
    struct head_fixture *f = *state;
    json_t *deep = json_object(), *values = json_object(), *body;
    char name[16];

    for (int i = 0; i < 2010; i++)
        deep = json_pack("{s:o}", "a", deep);
    body = head_begin_body("1", "t", 0);
    json_object_set(body, "options", deep);
    json_decref(head_call_as(f, ALICE, "POST", "/v1/attempts/begin", body, 400));
    json_decref(head_call_as(f, 0, "GET", "/v1/attempts/open", NULL, 200));

    json_int_t id = lineage_of(head_begin(f, "2", "t2", 0));
    body = head_oom_end(id, 1, "12288");
    json_object_set_new(json_object_get(body, "incident"), "more", deep);
    json_decref(head_call_as(f, ALICE, "POST", "/v1/attempts/end", body, 400));
    json_decref(head_call_as(f, 0, "GET", "/v1/report", NULL, 200));

    /* Each is looked up among those before it: these took the head a minute. */
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof(name), "k%d", i);
        json_object_set_new(values, name, json_pack("{s:s}", "value", "1"));
    }
    body = head_oom_end(id, 1, "12288");
    json_object_set_new(body, "values", values);
    json_decref(head_call_as(f, ALICE, "POST", "/v1/attempts/end", body, 400));

    /* Kept for as long as the lineage is. */
    char *text = malloc(100001);
    memset(text, 'x', 100000);
    text[100000] = '\0';
    body = head_begin_body("3", "t3", 0);
    json_object_set_new(json_object_get(body, "options"), "note", json_string(text));
    json_decref(head_call_as(f, ALICE, "POST", "/v1/attempts/begin", body, 413));
    body = head_begin_body("4", "t4", 0);
    json_object_set_new(body, "name", json_string(text));
    json_decref(head_call_as(f, ALICE, "POST", "/v1/attempts/begin", body, 413));
    free(text);
}

/* Supervisors that were killed by hand: nobody reports the end of their attempts. */
static void evidence_without_an_end_is_forgotten_too(void **state)
{
    struct head_fixture *f = *state;
    json_t *log = json_array();

    for (int i = 0; i < 201; i++) {
        json_t *fields = json_pack("{s:i, s:{}, s:{}}", "uid", ALICE, "policies", "options");
        int64_t id = lineage_create(f->service.db, fields, NULL);
        assert_int_equal(attempt_insert(f->service.db, id, 1, "first", NULL, NULL, NULL, NULL), 0);
        assert_int_equal(evidence_put(f->service.db, id, 1, "log", log, NULL), 0);
        json_decref(fields);
    }
    json_decref(log);
    db_run(f->service.db, NULL, "UPDATE attempt SET state = 'running', started_ms = ?", "i",
           db_now_ms() - YEAR_MS);
    json_decref(head_begin(f, "1", "t1", 0));
    json_decref(head_begin(f, "2", "t2", 0));
    assert_int_equal(number(f, "SELECT count(*) FROM evidence"), 0);
}

static void write_policy(const char *directory, const json_t *document)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/relax.json", directory);
    assert_int_equal(json_dump_file(document, path, 0), 0);
}

/* Two installations, one of them older, use the same home in turn. */
static void installations_that_take_turns(void **state)
{
    struct head_fixture *f = *state;
    char directory[] = "/tmp/oomretry-policies-XXXXXX", path[128];
    json_t *theirs = policies_load(f->service.db, "relax", 0, NULL, NULL);
    json_t *ours = json_deep_copy(theirs);

    assert_non_null(mkdtemp(directory));
    json_object_set_new(ours, "title", json_string("of another release"));
    for (int i = 0; i < 6; i++) {
        write_policy(directory, i % 2 ? theirs : ours);
        assert_int_equal(policies_seed(f->service.db, directory, NULL), 0);
        json_t *active = policies_load(f->service.db, "relax", 0, NULL, NULL);
        assert_true(json_equal(active, i % 2 ? theirs : ours));
        json_decref(active);
    }
    assert_int_equal(number(f, "SELECT count(*) FROM policy_version WHERE name = 'relax'"), 2);
    /* What an administrator has stored since stays. */
    assert_int_equal(policies_add(f->service.db, "relax", 1, theirs, "root", "mine", NULL), 3);
    write_policy(directory, ours);
    assert_int_equal(policies_seed(f->service.db, directory, NULL), 0);
    assert_int_equal(number(f, "SELECT version FROM policy WHERE name = 'relax'"), 3);
    json_decref(ours);
    json_decref(theirs);
    snprintf(path, sizeof(path), "%s/relax.json", directory);
    unlink(path);
    rmdir(directory);
}

/* The first use of a home by many at once: they wait for each other, seconds on a busy machine. */
static void many_make_it_at_once(void **state)
{
    char directory[] = "/tmp/oomretry-first-XXXXXX", path[128];
    int failed = 0, status;

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/db", directory);
    for (int round = 0; round < 10; round++) {
        int gate[2];
        assert_int_equal(pipe(gate), 0);
        for (int i = 0; i < 24; i++)
            if (fork() == 0) {
                struct oom_error err = {""};
                struct service service;
                close(gate[1]);
                if (read(gate[0], &status, 1) != 0)
                    _exit(1);
                int64_t start_ms = elapsed_ms();
                int rc = service_open(&service, path, &err);
                if (rc == 0)
                    service_close(&service);
                _exit(rc < 0 && elapsed_ms() - start_ms < 4000);
            }
        close(gate[0]);
        close(gate[1]);
        while (wait(&status) > 0)
            failed += status != 0;
        unlink(path);
    }
    rmdir(directory);
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_end_that_is_found_late, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(one_acts_at_a_time, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(the_next_attempt_is_claimed_with_it, head_setup,
                                        head_teardown),
        cmocka_unit_test_setup_teardown(what_ended_in_an_attempt, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(a_backtest_tells_of_ones_own_failures, head_setup,
                                        head_teardown),
        cmocka_unit_test_setup_teardown(names_of_jobs_are_not_lineages, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(numbers_beyond_all_measure, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(bodies_without_measure, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(evidence_without_an_end_is_forgotten_too, head_setup,
                                        head_teardown),
        cmocka_unit_test_setup_teardown(installations_that_take_turns, head_setup, head_teardown),
        cmocka_unit_test(many_make_it_at_once),
    };
    return cmocka_run_group_tests_name("head", tests, NULL, NULL);
}
