/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "oomretry/values.h"

static void test_set_replaces_and_keeps_order(void **state)
{
    struct oom_values values = {0};

    (void)state;
    assert_int_equal(oom_values_set(&values, "--a", "1", OOM_SOURCE_SCRIPT, "script:3"), 0);
    assert_int_equal(oom_values_set(&values, "--b", NULL, OOM_SOURCE_DEFAULT, NULL), 0);
    assert_int_equal(oom_values_set(&values, "--a", "2", OOM_SOURCE_ARGV, NULL), 0);
    assert_int_equal(values.count, 2);
    assert_string_equal(values.items[0].knob, "--a");
    assert_string_equal(oom_values_get(&values, "--a"), "2");
    assert_null(oom_values_get(&values, "--b"));
    assert_non_null(oom_values_find(&values, "--b"));
    assert_null(oom_values_find(&values, "--c"));
    oom_values_free(&values);
    assert_int_equal(values.count, 0);
}

static void test_many(void **state)
{
    struct oom_values values = {0};
    char name[16];

    (void)state;
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "k%d", i);
        assert_int_equal(oom_values_set(&values, name, name, OOM_SOURCE_CONFIG, NULL), 0);
    }
    assert_int_equal(values.count, 1000);
    assert_string_equal(oom_values_get(&values, "k731"), "k731");
    oom_values_free(&values);
}

static void test_json_round_trip(void **state)
{
    struct oom_values values = {0}, back = {0};

    (void)state;
    oom_values_set(&values, "--a", "1", OOM_SOURCE_SCRIPT, "script:3");
    oom_values_set(&values, "--b", NULL, OOM_SOURCE_DEFAULT, NULL);
    oom_values_set(&values, "slurm.mem_bytes", "7", OOM_SOURCE_SCHEDULER, NULL);
    json_t *json = oom_values_to_json(&values);
    assert_non_null(json);
    assert_true(json_is_null(json_object_get(json_object_get(json, "--b"), "value")));
    assert_int_equal(oom_values_from_json(json, &back), 0);
    assert_int_equal(back.count, 3);
    assert_string_equal(oom_values_get(&back, "--a"), "1");
    assert_int_equal(oom_values_find(&back, "--a")->source, OOM_SOURCE_SCRIPT);
    assert_string_equal(oom_values_find(&back, "--a")->where, "script:3");
    assert_int_equal(oom_values_find(&back, "slurm.mem_bytes")->source, OOM_SOURCE_SCHEDULER);
    json_decref(json);
    oom_values_free(&values);
    oom_values_free(&back);
}

static void test_json_refuses(void **state)
{
    static const char *const bad[] = {"[]", "{\"a\": 1}", "{\"a\": {\"value\": 1}}",
                                      "{\"a\": {\"source\": \"moon\"}}", NULL};
    struct oom_values values = {0};

    (void)state;
    for (size_t i = 0; bad[i]; i++) {
        json_t *json = json_loads(bad[i], 0, NULL);
        assert_int_equal(oom_values_from_json(json, &values), -1);
        assert_int_equal(values.count, 0);
        json_decref(json);
    }
}

static void test_bytes_that_json_cannot_hold(void **state)
{
    struct oom_values values = {0};

    (void)state;
    oom_values_set(&values, "--name", "a\xff", OOM_SOURCE_SCRIPT, NULL);
    json_t *json = oom_values_to_json(&values);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(json, "--name"), "value")), "a?");
    json_decref(json);
    oom_values_free(&values);
}

static void test_edits_fold(void **state)
{
    struct oom_edits edits = {0}, back = {0};

    (void)state;
    oom_edits_add(&edits, "--a", "8", "4", "script:2");
    oom_edits_add(&edits, "--b", NULL, "true", NULL);
    oom_edits_add(&edits, "--a", "4", "2", NULL);
    assert_int_equal(edits.count, 2);
    assert_string_equal(edits.items[0].old_value, "8");
    assert_string_equal(edits.items[0].new_value, "2");
    assert_string_equal(edits.items[0].where, "script:2");
    oom_edits_add(&edits, "--b", "true", NULL, NULL);
    assert_null(edits.items[1].new_value);
    json_t *json = oom_edits_to_json(&edits);
    assert_int_equal(oom_edits_from_json(json, &back), 0);
    assert_int_equal(back.count, 2);
    assert_string_equal(back.items[0].new_value, "2");
    assert_null(back.items[1].new_value);
    json_decref(json);
    json = json_loads("[{\"old\": \"1\"}]", 0, NULL);
    oom_edits_free(&back);
    assert_int_equal(oom_edits_from_json(json, &back), -1);
    json_decref(json);
    oom_edits_free(&edits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_replaces_and_keeps_order),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_json_round_trip),
        cmocka_unit_test(test_json_refuses),
        cmocka_unit_test(test_bytes_that_json_cannot_hold),
        cmocka_unit_test(test_edits_fold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
