/* SPDX-License-Identifier: Apache-2.0
 *
 * What Slurm's words about a job mean to who comes after its supervisor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "agent/sched/slurm_fields.h"
#include "agent/sched/slurm_job.h"
#include "oomretry/error.h"

static char text[512];

/* A job of uid 1000, called "run", submitted at the first time and ended at the second. */
static struct slurm_job job_at(const char *state, int restarts, time_t submitted, time_t ended)
{
    char first[32], second[32];
    struct tm tm;
    struct slurm_job job = {.text = text, .restarts = restarts};

    strftime(first, sizeof(first), "%Y-%m-%dT%H:%M:%S", localtime_r(&submitted, &tm));
    strftime(second, sizeof(second), "%Y-%m-%dT%H:%M:%S", localtime_r(&ended, &tm));
    snprintf(text, sizeof(text),
             "JobId=7 JobName=run UserId=alice(1000) GroupId=a(1) RunTime=00:00:03 "
             "SubmitTime=%s EndTime=%s",
             first, second);
    snprintf(job.state, sizeof(job.state), "%s", state);
    job.over = strcmp(state, "RUNNING") != 0;
    return job;
}

static void another_job_under_the_same_id(void **state)
{
    json_t *ours = json_pack("{s:i, s:s}", "uid", 1000, "name", "run");
    json_t *renamed = json_pack("{s:i, s:s}", "uid", 1000, "name", "other");
    json_t *bobs = json_pack("{s:i, s:s}", "uid", 1001, "name", "run");
    time_t now = time(NULL);
    int64_t started_ms = ((int64_t)now - 100) * 1000;

    (void)state;
    struct slurm_job before = job_at("RUNNING", 0, now - 110, now);
    assert_false(slurm_job_is_another(&before, ours, started_ms, 0));
    /* Its user may rename it. */
    assert_false(slurm_job_is_another(&before, renamed, started_ms, 0));
    assert_true(slurm_job_is_another(&before, bobs, started_ms, 0));
    /* An intention has not started: only the name tells. */
    assert_false(slurm_job_is_another(&before, ours, 0, 0));
    assert_true(slurm_job_is_another(&before, renamed, 0, 0));

    /* Submitted after the attempt had started. */
    struct slurm_job after = job_at("RUNNING", 0, now - 95, now);
    assert_false(slurm_job_is_another(&after, ours, started_ms, 0)); /* clocks differ */
    assert_true(slurm_job_is_another(&after, renamed, started_ms, 0));
    struct slurm_job much_later = job_at("RUNNING", 0, now, now);
    assert_true(slurm_job_is_another(&much_later, ours, started_ms, 0));
    /* A job that was queued again is submitted anew. */
    struct slurm_job queued_again = job_at("RUNNING", 1, now, now);
    assert_false(slurm_job_is_another(&queued_again, ours, started_ms, 0));
    json_decref(ours);
    json_decref(renamed);
    json_decref(bobs);
}

static bool is_another(const char *record_name, const char *name)
{
    json_t *ours = json_pack("{s:i, s:s}", "uid", 1000, "name", name);
    struct slurm_job job = {.text = NULL};
    char *record = NULL;

    assert_non_null(ours);
    assert_true(asprintf(&record,
                         "JobId=7 JobName=%s UserId=alice(1000) GroupId=a(1) MCS_label=N/A "
                         "JobState=PENDING Reason=None SubmitTime=2026-11-29T12:00:00",
                         record_name) > 0);
    job.text = record;
    bool another = slurm_job_is_another(&job, ours, 0, 0);
    json_decref(ours);
    free(record);
    return another;
}

/* Names are the user's own: they hold blanks and whatever looks like Slurm's keys. */
static void names_of_any_kind(void **state)
{
    char long_name[600];

    (void)state;
    memset(long_name, 'n', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    assert_false(is_another("sweep LR=0.1 Batch=4", "sweep LR=0.1 Batch=4"));
    assert_true(is_another("sweep LR=0.1 Batch=4", "sweep LR=0.1 Batch=8"));
    assert_false(is_another("x UserId=bob(1001) ", "x UserId=bob(1001) "));
    assert_false(is_another("caf\xe9", "caf?"));
    assert_false(is_another(long_name, long_name));
    long_name[300] = 'x';
    assert_true(is_another("n", long_name));
    /* A component's record has one field more there. */
    assert_false(is_another("sweep LR=0.1 HetJobIdSet=17-18", "sweep LR=0.1"));
    assert_false(is_another(" HetJobIdSet=1", ""));
}

static void a_name_is_no_field(void **state)
{
    static const char record[] =
        "JobId=7 JobName=a JobState=FAILED Restarts=3 UserId=alice(1000) GroupId=a(1) "
        "JobState=RUNNING Restarts=0 WorkDir=/x\n"
        "JobId=8 HetJobId=7 JobName=b Restarts=9 HetJobIdSet=7-8 UserId=alice(1000) GroupId=a(1) "
        "JobState=PENDING "
        "Restarts=1";
    char word[64];

    (void)state;
    assert_true(slurm_field(record, "JobName", word, sizeof(word)));
    assert_string_equal(word, "a JobState=FAILED Restarts=3");
    assert_true(slurm_field(record, "JobState", word, sizeof(word)));
    assert_string_equal(word, "RUNNING");
    assert_true(slurm_field(record, "HetJobId", word, sizeof(word)));
    assert_string_equal(word, "7");
    const char *second = strchr(record, '\n') + 1;
    assert_true(slurm_field(second, "Restarts", word, sizeof(word)));
    assert_string_equal(word, "1");
    assert_true(slurm_field(second, "HetJobIdSet", word, sizeof(word)));
    assert_string_equal(word, "7-8");
    assert_true(slurm_field(second, "JobName", word, sizeof(word)));
    assert_string_equal(word, "b Restarts=9");
}

static void how_long_ago(void **state)
{
    time_t now = time(NULL);

    (void)state;
    struct slurm_job ended = job_at("FAILED", 0, now - 5000, now - 4000);
    assert_in_range(slurm_job_ended_s_ago(&ended), 3999, 4010);
    /* Of a running job EndTime is when its limit is reached. */
    struct slurm_job running = job_at("RUNNING", 0, now - 5000, now - 4000);
    assert_int_equal(slurm_job_ended_s_ago(&running), 0);
    running.text = strcpy(text, "EndTime=Unknown");
    running.over = true;
    assert_int_equal(slurm_job_ended_s_ago(&running), 0);
}

static void a_launch_that_failed(void **state)
{
    time_t now = time(NULL);

    (void)state;
    struct slurm_job job = job_at("FAILED", 0, now, now);
    assert_false(slurm_job_never_launched(&job, false));
    assert_true(slurm_job_never_launched(&job, true));
    *strstr(text, "00:00:03") = '1';
    assert_false(slurm_job_never_launched(&job, true));
    strcpy(text, "JobState=FAILED Reason=JobLaunchFailure RunTime=00:00:01");
    assert_false(slurm_job_never_launched(&job, false));
    job = job_at("BOOT_FAIL", 0, now, now);
    assert_true(slurm_job_never_launched(&job, false));
    job = job_at("NODE_FAIL", 0, now, now);
    assert_false(slurm_job_never_launched(&job, false));
    assert_true(slurm_job_ended_by_others(&job));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_job_under_the_same_id),
        cmocka_unit_test(names_of_any_kind),
        cmocka_unit_test(a_name_is_no_field),
        cmocka_unit_test(how_long_ago),
        cmocka_unit_test(a_launch_that_failed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
