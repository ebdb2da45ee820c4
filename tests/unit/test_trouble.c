/* SPDX-License-Identifier: Apache-2.0
 *
 * The head on a disk that fills up between two statements, under a clock that is set, and of a
 * cluster that counts its jobs anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/lib/jsonget.h"
#include "db/policies.h"
#include "tests/unit/head_help.h"

static int64_t set_by_s, passed_s; /* the clock on the wall, and time itself */

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, now);

    now->tv_sec += passed_s + (clock == CLOCK_REALTIME ? set_by_s : 0);
    return rc;
}

static int clock_as_it_is(void **state)
{
    set_by_s = passed_s = 0;
    return head_teardown(state);
}

/* --- a full disk --------------------------------------------------------------------------------
 */

/* Of the statements of one request, the one that changes this cannot be stored. */
static void fill_up(struct head_fixture *f, const char *event)
{
    char sql[200];

    snprintf(sql, sizeof(sql),
             "CREATE TEMP TRIGGER full BEFORE %s BEGIN "
             "SELECT RAISE(FAIL, 'database or disk is full'); END",
             event);
    assert_int_equal(sqlite3_exec(f->service.db->sql, sql, NULL, NULL, NULL), SQLITE_OK);
}

static void make_room(struct head_fixture *f)
{
    assert_int_equal(sqlite3_exec(f->service.db->sql, "DROP TRIGGER full", NULL, NULL, NULL),
                     SQLITE_OK);
}

static json_int_t begin(struct head_fixture *f, const char *job)
{
    json_t *reply = head_begin(f, job, "t1", 0);
    json_int_t lineage = json_get_int(reply, "lineage", 0);

    json_decref(reply);
    return lineage;
}

/* A member of an attempt of a job, as the history has it. New string. */
static char *member(struct head_fixture *f, const char *job, size_t attempt, const char *name)
{
    char path[64];

    snprintf(path, sizeof(path), "/v1/history/%s", job);
    json_t *reply = head_call(f, "GET", path, NULL, 200);
    char *text = strdup(
        json_get_string(json_array_get(json_object_get(reply, "attempts"), attempt - 1), name, ""));
    json_decref(reply);
    return text;
}

static void a_resume_can_be_said_again(void **state)
{
    struct head_fixture *f = *state;
    json_int_t lineage = begin(f, "200");
    char path[64];

    snprintf(path, sizeof(path), "/v1/lineages/%lld/hold", (long long)lineage);
    json_decref(head_call(f, "POST", path, NULL, 200));
    json_decref(head_call(f, "POST", "/v1/attempts/end", head_oom_end(lineage, 1, "12288"), 200));
    snprintf(path, sizeof(path), "/v1/lineages/%lld/resume", (long long)lineage);
    fill_up(f, "UPDATE OF state ON lineage");
    json_decref(head_call(f, "POST", path, NULL, 500));
    make_room(f);
    json_t *reply = head_call(f, "POST", path, NULL, 200);
    assert_true(json_get_bool(reply, "reopened", false));
    json_decref(reply);
}

static void a_note_is_kept_as_a_whole(void **state)
{
    struct head_fixture *f = *state;
    json_int_t lineage = begin(f, "201");
    json_t *note = json_pack("{s:I, s:i, s:s, s:s}", "lineage", lineage, "attempt", 1, "acted",
                             "half of it", "stopped", "the other half");

    fill_up(f, "UPDATE OF state ON lineage");
    json_decref(head_call(f, "POST", "/v1/attempts/note", json_incref(note), 500));
    make_room(f);
    char *acted = member(f, "201", 1, "acted");
    assert_string_equal(acted, "");
    free(acted);
    json_decref(head_call(f, "POST", "/v1/attempts/note", note, 200));
    acted = member(f, "201", 1, "acted");
    assert_string_equal(acted, "half of it");
    free(acted);
}

static void a_switch_that_is_not_on_record_is_not_made(void **state)
{
    struct head_fixture *f = *state;

    fill_up(f, "INSERT ON audit");
    json_decref(head_call_as(f, 0, "POST", "/v1/policies/relax/disable", NULL, 500));
    make_room(f);
    json_t *reply = head_call(f, "GET", "/v1/policies/relax", NULL, 200);
    assert_int_equal(json_get_int(reply, "enabled", 0), 1);
    json_decref(reply);
}

static void what_is_asked_for_trial_is_not_kept(void **state)
{
    struct head_fixture *f = *state;
    json_int_t lineage = begin(f, "202");

    json_t *reply =
        head_call(f, "POST", "/v1/attempts/ask", head_oom_end(lineage, 1, "12288"), 200);
    assert_string_equal(json_get_string(reply, "action", ""), "retry");
    json_decref(reply);
    char *running = member(f, "202", 1, "state");
    assert_string_equal(running, "running");
    free(running);
}

/* What is within a transaction and fails takes all of it along, whoever goes on. */
static void a_part_that_failed_dooms_the_whole(void **state)
{
    struct head_fixture *f = *state;
    struct db *db = f->service.db;
    struct oom_error err = {""};
    int64_t rows = -1;

    assert_int_equal(db_begin(db, &err), 0);
    assert_int_equal(db_run(db, &err,
                            "INSERT INTO audit (at_ms, who, verb, object, detail) "
                            "VALUES (1, 'a', 'b', 'c', 'd')",
                            ""),
                     0);
    assert_int_equal(db_begin(db, &err), 0);
    assert_int_equal(db_end(db, false, &err), 0);
    assert_int_equal(db_end(db, true, &err), -1);
    assert_non_null(strstr(err.text, "rolled back"));
    assert_int_equal(
        db_get_int(db, &err, 0, &rows, "SELECT count(*) FROM audit WHERE who = 'a'", ""), 0);
    assert_int_equal(rows, 0);
    /* The next one knows nothing of it. */
    assert_int_equal(db_begin(db, &err), 0);
    assert_int_equal(db_end(db, true, &err), 0);
}

/* --- a clock that is set ------------------------------------------------------------------------
 */

static void no_attempt_ends_before_it_began(void **state)
{
    struct head_fixture *f = *state;
    json_int_t lineage = begin(f, "203");

    set_by_s = -7200;
    json_decref(head_call(f, "POST", "/v1/attempts/end", head_oom_end(lineage, 1, "12288"), 200));
    json_t *reply = head_call(f, "GET", "/v1/history/203", NULL, 200);
    const json_t *attempt = json_array_get(json_object_get(reply, "attempts"), 0);
    int64_t began = json_get_int(attempt, "started_ms", 0);
    assert_true(began > 0);
    assert_int_equal(json_get_int(attempt, "ended_ms", 0), began);
    json_decref(reply);
}

static bool gets_the_turn(struct head_fixture *f, const char *by)
{
    json_t *reply = NULL,
           *query = json_pack("{s:s, s:s, s:s}", "cluster", "c", "turn", by, "nodes", "n1");
    struct service_request request = {
        .method = "GET", .path = "/v1/attempts/open", .query = query, .admin = true};

    assert_int_equal(service_handle(&f->service, &request, &reply), 200);
    bool all = json_get_bool(reply, "all", false);
    json_decref(reply);
    json_decref(query);
    return all;
}

static void a_turn_ends_in_its_time(void **state)
{
    struct head_fixture *f = *state;

    assert_true(gets_the_turn(f, "gone"));
    assert_false(gets_the_turn(f, "waits"));
    passed_s = 20;
    set_by_s = -7200;
    assert_true(gets_the_turn(f, "waits"));
    /* And it is not cut short. */
    set_by_s = 7200;
    assert_false(gets_the_turn(f, "third"));
}

/* --- an id that comes back ----------------------------------------------------------------------
 */

static void report_kills(struct head_fixture *f, const char *kills)
{
    json_decref(
        head_call_as(f, 0, "POST", "/v1/reports",
                     json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "event",
                               "task_exit", "job", "300", "cluster", "c", "opted", "1", "restart",
                               "0", "step", "0", "node", "n1", "task", "0", "oom_kill", kills),
                     200));
}

/* A cluster that was set up anew counts its jobs from the beginning. */
static void a_report_is_of_the_job_that_has_the_id_now(void **state)
{
    struct head_fixture *f = *state;
    json_t *reply = NULL, *query;

    report_kills(f, "0");
    passed_s = 3600;
    json_int_t lineage = begin(f, "300");
    report_kills(f, "2");
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)lineage);
    query = json_pack("{s:s, s:s}", "lineage", text, "attempt", "1");
    struct service_request request = {
        .method = "GET", .path = "/v1/reports/300", .query = query, .admin = true};
    assert_int_equal(service_handle(&f->service, &request, &reply), 200);
    const json_t *tasks = json_object_get(reply, "tasks");
    assert_int_equal(json_array_size(tasks), 1);
    assert_int_equal(json_get_int(json_array_get(tasks, 0), "oom_kills", -1), 2);
    json_decref(reply);
    json_decref(query);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_resume_can_be_said_again, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(a_note_is_kept_as_a_whole, head_setup, head_teardown),
        cmocka_unit_test_setup_teardown(a_switch_that_is_not_on_record_is_not_made, head_setup,
                                        head_teardown),
        cmocka_unit_test_setup_teardown(what_is_asked_for_trial_is_not_kept, head_setup,
                                        head_teardown),
        cmocka_unit_test_setup_teardown(a_part_that_failed_dooms_the_whole, head_setup,
                                        head_teardown),
        cmocka_unit_test_setup_teardown(no_attempt_ends_before_it_began, head_setup,
                                        clock_as_it_is),
        cmocka_unit_test_setup_teardown(a_report_is_of_the_job_that_has_the_id_now, head_setup,
                                        clock_as_it_is),
        cmocka_unit_test_setup_teardown(a_turn_ends_in_its_time, head_setup, clock_as_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
