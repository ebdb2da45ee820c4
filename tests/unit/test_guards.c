/* SPDX-License-Identifier: Apache-2.0
 *
 * Every guard of every shipped policy, one row each in guards.tsv: settings that this guard alone
 * keeps from a rung. With the guard the rung is skipped for the guard's reason; without it the rung
 * is taken, or, where a second line of defence stands behind it, skipped for the reason in the
 * last column. A guard without a row fails the test, and so does a row without a guard.
 *
 * Columns, separated by tabs: policy (FRAMEWORK/POLICY where the framework matters to a general
 * one), rung, problem, settings (both as in ladder_help.h), the guard's reason, what stands behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/ladder_help.h"

#define TABLE "tests/unit/guards.tsv"

enum { COLUMNS = 6, MAX_ROWS = 2000 };

struct row {
    char *columns[COLUMNS];
    int line;
};

static const char *const policy_names[] = {
    "areal",   "axolotl", "deepspeed", "host",  "llamafactory", "megatron", "nemo-rl", "openrlhf",
    "pytorch", "relax",   "sglang",    "slime", "torchtitan",   "trl",      "verl",    "vllm",
};

static struct row rows[MAX_ROWS];
static size_t row_count;
static char *table;

static int read_table(void **state)
{
    FILE *file = fopen(TABLE, "r");
    size_t room = 0;
    int line = 0;

    (void)state;
    if (!file || getdelim(&table, &room, '\0', file) < 0)
        return -1;
    fclose(file);
    char *rest = table;
    for (char *text; (text = strsep(&rest, "\n"));) {
        line++;
        if (!*text || *text == '#')
            continue;
        struct row *row = &rows[row_count++];
        row->line = line;
        for (int i = 0; i < COLUMNS; i++)
            row->columns[i] = strsep(&text, "\t");
        if (text || !row->columns[COLUMNS - 1] || row_count == MAX_ROWS) {
            print_error(TABLE ":%d: needs %d columns\n", line, COLUMNS);
            return -1;
        }
    }
    return 0;
}

static int free_table(void **state)
{
    (void)state;
    free(table);
    return 0;
}

/* "relax/pytorch" is the policy "pytorch". */
static const char *policy_of(const struct row *row)
{
    const char *slash = strchr(row->columns[0], '/');

    return slash ? slash + 1 : row->columns[0];
}

static bool is_reason(const json_t *guard, const char *why)
{
    return strcmp(json_string_value(json_object_get(guard, "why")), why) == 0;
}

/* The policy with this rung alone on its ladders, whatever switches it on or off otherwise. */
static json_t *only_rung(const char *policy, const struct row *row, const char *without)
{
    json_t *document = ladder_document(policy);
    json_t *rung = json_object_get(json_object_get(document, "rungs"), row->columns[1]);
    json_t *guards = json_object_get(rung, "guards");
    char domain[16] = "";

    if (!rung)
        fail_msg(TABLE ":%d: %s has no rung \"%s\"", row->line, policy, row->columns[1]);
    sscanf(row->columns[2], "%15s", domain);
    json_object_set_new(rung, "enabled", json_true());
    json_object_del(rung, "changes_training");
    /* A diagnosis rides along with others; on a ladder of its own it is asked like any rung. */
    if (strcmp(json_string_value(json_object_get(rung, "kind")), "diagnose") == 0)
        json_object_set_new(rung, "kind", json_string("buffer"));
    for (size_t i = json_array_size(guards); without && i-- > 0;)
        if (is_reason(json_array_get(guards, i), without))
            json_array_remove(guards, i);
    json_object_set_new(document, "ladders",
                        json_pack("{s:{s:[s]}}", domain, "any", row->columns[1]));
    return document;
}

/* A framework that has nothing to say itself, above a general policy. */
static json_t *no_rungs(const char *policy)
{
    json_t *document = ladder_document(policy);

    json_object_set_new(document, "ladders", json_object());
    return document;
}

/* "" when the rung is taken, else why it is skipped. */
static void ask(const struct row *row, const char *without, char *why, size_t size)
{
    const char *policy = policy_of(row);
    struct oom_policy *policies[2];
    struct ladder_run run;
    struct oom_decision decision;
    struct oom_error err = {""};
    char framework[32];
    size_t count = 0;

    json_t *document = only_rung(policy, row, without);
    if (policy != row->columns[0]) {
        snprintf(framework, sizeof(framework), "%.*s", (int)(policy - row->columns[0] - 1),
                 row->columns[0]);
        json_t *above = no_rungs(framework);
        policies[count++] = oom_policy_from_json(above, framework, &err);
        json_decref(above);
    }
    policies[count++] = oom_policy_from_json(document, policy, &err);
    json_decref(document);
    if (!policies[count - 1])
        fail_msg("%s", err.text);
    ladder_begin_alone(&run, row->columns[2], row->columns[3]);
    if (oom_decide((const struct oom_policy *const *)policies, count, &run.input, &decision,
                   &err) != 0)
        fail_msg("%s", err.text);
    const char *skipped = ladder_skip_why(&decision, row->columns[1]);
    if (decision.retry && strcmp(decision.rung, row->columns[1]) == 0)
        why[0] = '\0';
    else
        snprintf(why, size, "%s", skipped ? skipped : "(not asked)");
    oom_decision_free(&decision);
    ladder_end(&run);
    for (size_t i = 0; i < count; i++)
        oom_policy_free(policies[i]);
}

static void each_guard_prevents(void **state)
{
    char with[256], without[256];
    int wrong = 0;

    (void)state;
    for (size_t i = 0; i < row_count; i++) {
        const struct row *row = &rows[i];
        const char *reason = row->columns[4], *behind = row->columns[5];
        size_t length = strlen(reason);
        ask(row, NULL, with, sizeof(with));
        ask(row, reason, without, sizeof(without));
        /* What is not known is said behind the reason. */
        if (strncmp(with, reason, length) != 0 ||
            (with[length] && strcmp(with + length, " (cannot be known here)") != 0)) {
            print_error(TABLE ":%d: %s: \"%s\" instead of \"%s\"\n", row->line, row->columns[1],
                        *with ? with : "taken", reason);
            wrong++;
        } else if (strcmp(without, behind) != 0) {
            print_error(TABLE ":%d: %s without its guard: \"%s\" instead of \"%s\"\n", row->line,
                        row->columns[1], *without ? without : "taken", *behind ? behind : "taken");
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

static bool has_row(const char *policy, const char *rung, const char *why)
{
    for (size_t i = 0; i < row_count; i++)
        if (strcmp(policy_of(&rows[i]), policy) == 0 && strcmp(rows[i].columns[1], rung) == 0 &&
            strcmp(rows[i].columns[4], why) == 0)
            return true;
    return false;
}

static void every_guard_has_a_row(void **state)
{
    int missing = 0;

    (void)state;
    for (size_t p = 0; p < sizeof(policy_names) / sizeof(policy_names[0]); p++) {
        json_t *document = ladder_document(policy_names[p]), *rung, *guard;
        const char *name;
        size_t i;
        json_object_foreach(json_object_get(document, "rungs"), name, rung)
        {
            json_array_foreach(json_object_get(rung, "guards"), i, guard)
            {
                const char *why = json_string_value(json_object_get(guard, "why"));
                if (has_row(policy_names[p], name, why))
                    continue;
                print_error("no row in " TABLE ": %s\t%s\t%s\n", policy_names[p], name, why);
                missing++;
            }
        }
        json_decref(document);
    }
    assert_int_equal(missing, 0);
}

static void no_shipped_policy_is_forgotten(void **state)
{
    (void)state;
    assert_int_equal(ladder_shipped_count(), sizeof(policy_names) / sizeof(policy_names[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_guard_prevents),
        cmocka_unit_test(every_guard_has_a_row),
        cmocka_unit_test(no_shipped_policy_is_forgotten),
    };
    return cmocka_run_group_tests_name("every guard", tests, read_table, free_table);
}
