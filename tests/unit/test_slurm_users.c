/* SPDX-License-Identifier: Apache-2.0
 *
 * What users write into their jobs, or do to them, in what Slurm prints of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/sched/slurm_fields.h"
#include "agent/sched/slurm_options.h"
#include "agent/sched/slurm_singleton.h"
#include "oomretry/values.h"

static const char NAMED[] =
    "JobId=1 JobName=llama lr=1e-4 BS=32 UserId=a(1) GroupId=b(1) WorkDir=/my runs "
    "Comment=a Team=b why  StdErr=/x StdIn=/dev/null\n";

static void words_that_look_like_keys(void **state)
{
    char out[64];

    (void)state;
    assert_true(slurm_field(NAMED, "JobName", out, sizeof(out)));
    assert_string_equal(out, "llama lr=1e-4 BS=32");
    assert_true(slurm_field("JobId=1 JobName=a B=1 HetJobIdSet=1-2 UserId=a(1) GroupId=b(1)",
                            "JobName", out, sizeof(out)));
    assert_string_equal(out, "a B=1");
    assert_true(slurm_field(NAMED, "Comment", out, sizeof(out)));
    assert_string_equal(out, "a Team=b why");
    assert_true(slurm_field(NAMED, "WorkDir", out, sizeof(out)));
    assert_string_equal(out, "/my runs");
    /* A component that is not the batch script's has no StdErr, and the next one is another line.
     */
    assert_true(
        slurm_field("JobId=2 Comment=c Power=\nJobId=3 StdErr=/x", "Comment", out, sizeof(out)));
    assert_string_equal(out, "c");
}

/* Slurm also shows what is happening to a job in the place of its state. */
static void states_that_are_ends(void **state)
{
    static const char *const ends[] = {"COMPLETED", "CANCELLED by 7", "OUT_OF_MEMORY", "REVOKED"};
    static const char *const others[] = {"RUNNING",   "COMPLETING",   "STOPPED",
                                         "SIGNALING", "SPECIAL_EXIT", ""};

    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        assert_true(slurm_state_is_over(ends[i]));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(slurm_state_is_over(others[i]));
}

/* The first ones, in that order. */
static void assert_listed(const struct slurm_options *options, const char *wanted)
{
    char text[512] = "";

    for (size_t i = 0, used = 0; i < options->count; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? " " : "",
                                 options->items[i]);
    text[strlen(text) < strlen(wanted) ? strlen(text) : strlen(wanted)] = '\0';
    assert_string_equal(text, wanted);
}

/* All that a node has; more than was decided, as the owner has raised it since; and a comment of
 * two lines, which are no components. */
static void what_the_owner_asks_for_stays(void **state)
{
    static const struct {
        const char *record, *wanted;
    } rows[] = {{"JobId=1 JobName=x MinMemoryNode=0", "--job-name=x --mem=0 --comment=M"},
                {"JobId=1 JobName=x MinMemoryNode=300M", "--job-name=x --mem=300M --comment=M"},
                {"JobId=1 JobName=x MinMemoryNode=100M", "--job-name=x --mem=220M --comment=M"},
                {"JobId=1 JobName=x Comment=a\nb StdErr=/x\n", "--job-name=x --comment=a b M"}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct slurm_options options = {NULL, 0};
        struct oom_edits edits = {NULL, 0};
        if (strstr(rows[i].record, "00M"))
            oom_edits_add(&edits, "slurm:mem", "100", "220", NULL);
        assert_int_equal(slurm_options_from_text(rows[i].record, " ", &edits, "M", &options, NULL),
                         0);
        assert_listed(&options, rows[i].wanted);
        slurm_options_free(&options);
        oom_edits_free(&edits);
    }
}

static void who_takes_turns_with_a_job(void **state)
{
    static const struct slurm_singleton turns = {.name = "run", .new_job = "20_3"},
                                        none = {.name = "", .new_job = "20"};
    static const struct {
        const char *job, *name, *dependency;
        bool behind;
    } rows[] = {{"12", "run", "singleton", true},
                {"12_[0-3]", "run", "afterok:7,singleton", true},
                {"12", "other", "singleton", false},
                {"12", "run", "afterok:7", false},
                {"12", "run", "", false},
                {"12", "run", "afterok:7?singleton", false},
                {"12", "run", "singleton,afterany:20_3", false}, /* it does already */
                {"20_3", "run", "singleton", false},
                {"21", "run", "singleton", false}}; /* by itself */

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(
            slurm_singleton_is_behind(&turns, rows[i].job, rows[i].name, rows[i].dependency),
            rows[i].behind);
        assert_false(
            slurm_singleton_is_behind(&none, rows[i].job, rows[i].name, rows[i].dependency));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_that_look_like_keys),
        cmocka_unit_test(states_that_are_ends),
        cmocka_unit_test(what_the_owner_asks_for_stays),
        cmocka_unit_test(who_takes_turns_with_a_job),
    };
    return cmocka_run_group_tests_name("slurm_users", tests, NULL, NULL);
}
