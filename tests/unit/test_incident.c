/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "oomretry/incident.h"

static void names_go_both_ways(void **state)
{
    enum oom_domain domain;
    enum oom_phase phase;
    enum oom_direction direction;

    (void)state;
    for (int i = OOM_DOMAIN_NONE; i <= OOM_DOMAIN_KV_CACHE; i++) {
        assert_int_equal(oom_domain_parse(oom_domain_name((enum oom_domain)i), &domain), 0);
        assert_int_equal(domain, i);
    }
    for (int i = OOM_PHASE_UNKNOWN; i <= OOM_PHASE_EVAL; i++) {
        assert_int_equal(oom_phase_parse(oom_phase_name((enum oom_phase)i), &phase), 0);
        assert_int_equal(phase, i);
    }
    assert_int_equal(oom_domain_parse("disk", &domain), -1);
    assert_int_equal(oom_phase_parse(NULL, &phase), -1);
    assert_null(oom_domain_name((enum oom_domain)99));
    assert_null(oom_direction_name(OOM_DIRECTION_NONE));
    assert_int_equal(oom_direction_parse("", &direction), 0);
    assert_int_equal(direction, OOM_DIRECTION_NONE);
    assert_int_equal(oom_direction_parse("raise", &direction), 0);
    assert_int_equal(direction, OOM_DIRECTION_RAISE);
    assert_int_equal(oom_direction_parse("sideways", &direction), -1);
}

static void shortage_and_fragmentation(void **state)
{
    struct oom_numbers n;

    (void)state;
    oom_numbers_init(&n);
    assert_int_equal(oom_numbers_short_bytes(&n), OOM_UNSTATED);
    assert_false(oom_numbers_fragmented(&n));
    n.tried_bytes = 100;
    assert_int_equal(oom_numbers_short_bytes(&n), OOM_UNSTATED);
    n.free_bytes = 40;
    assert_int_equal(oom_numbers_short_bytes(&n), 60);
    n.free_bytes = 400;
    assert_int_equal(oom_numbers_short_bytes(&n), 0);
    n.reserved_unallocated_bytes = 99;
    assert_false(oom_numbers_fragmented(&n));
    n.reserved_unallocated_bytes = 100;
    assert_true(oom_numbers_fragmented(&n));
}

static void json_goes_both_ways(void **state)
{
    struct oom_incident a, b;
    struct oom_error err = {""};

    (void)state;
    oom_incident_init(&a);
    a.oom = true;
    a.domain = OOM_DOMAIN_KV_CACHE;
    a.phase = OOM_PHASE_WEIGHT_SYNC;
    a.direction = OOM_DIRECTION_LOWER;
    a.confidence = 0.75;
    strcpy(a.framework, "relax");
    strcpy(a.summary, "sum");
    strcpy(a.program, "python3 export.py");
    strcpy(a.evidence, "log");
    a.numbers.tried_bytes = INT64_C(1) << 40;
    a.numbers.free_bytes = 0;
    a.cause.file = strdup("x.log");
    a.cause.line = 12;
    a.cause.text = strdup("bytes \xff that are no UTF-8");
    a.cause.rank = 0;
    a.secondary = calloc(1, sizeof(*a.secondary));
    a.secondary_count = 1;
    a.secondary[0].text = strdup("second");
    a.secondary[0].why = strdup("because");
    a.secondary[0].rank = -1;
    json_t *json = oom_incident_to_json(&a);
    assert_non_null(json);
    assert_null(json_object_get(json_object_get(json, "numbers"), "total"));
    assert_true(json_is_null(
        json_object_get(json_array_get(json_object_get(json, "secondary"), 0), "line")));
    assert_int_equal(oom_incident_from_json(json, &b, &err), 0);
    assert_true(b.oom);
    assert_int_equal(b.domain, a.domain);
    assert_int_equal(b.phase, a.phase);
    assert_int_equal(b.direction, a.direction);
    assert_int_equal(b.numbers.tried_bytes, a.numbers.tried_bytes);
    assert_int_equal(b.numbers.free_bytes, 0);
    assert_int_equal(b.numbers.total_bytes, OOM_UNSTATED);
    assert_string_equal(b.framework, "relax");
    assert_string_equal(b.program, "python3 export.py");
    assert_string_equal(b.cause.text, "bytes ? that are no UTF-8");
    assert_int_equal(b.cause.rank, 0);
    assert_int_equal(b.cause.line, 12);
    assert_int_equal(b.secondary_count, 1);
    assert_int_equal(b.secondary[0].rank, -1);
    assert_string_equal(b.secondary[0].why, "because");
    json_decref(json);
    oom_incident_free(&a);
    oom_incident_free(&b);
    assert_null(b.secondary);
    oom_incident_free(NULL);
}

static void refuse(const char *text)
{
    struct oom_incident out;
    struct oom_error err = {""};
    json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);

    assert_non_null(json);
    assert_int_equal(oom_incident_from_json(json, &out, &err), -1);
    assert_non_null(strstr(err.text, "incident"));
    json_decref(json);
}

static void wrong_types_are_errors(void **state)
{
    (void)state;
    refuse("[]");
    refuse("{}");
    refuse("{\"oom\":1}");
    refuse("{\"oom\":true,\"domain\":\"disk\"}");
    refuse("{\"oom\":true,\"domain\":7}");
    refuse("{\"oom\":true,\"phase\":\"sleep\"}");
    refuse("{\"oom\":true,\"direction\":\"up\"}");
    refuse("{\"oom\":true,\"confidence\":\"high\"}");
    refuse("{\"oom\":true,\"numbers\":[]}");
    refuse("{\"oom\":true,\"numbers\":{\"tried\":-4}}");
    refuse("{\"oom\":true,\"numbers\":{\"tried\":1.5}}");
    refuse("{\"oom\":true,\"cause\":\"x\"}");
    refuse("{\"oom\":true,\"cause\":{\"line\":\"x\"}}");
    refuse("{\"oom\":true,\"secondary\":{}}");
    refuse("{\"oom\":true,\"secondary\":[{\"text\":\"a\"},3]}");
}

static void unknown_keys_are_ignored(void **state)
{
    struct oom_incident out;
    json_t *json = json_loads("{\"oom\":false,\"later\":{\"x\":1},\"cause\":null}", 0, NULL);

    (void)state;
    assert_int_equal(oom_incident_from_json(json, &out, NULL), 0);
    assert_false(out.oom);
    assert_null(out.cause.text);
    json_decref(json);
    oom_incident_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_go_both_ways),       cmocka_unit_test(shortage_and_fragmentation),
        cmocka_unit_test(json_goes_both_ways),      cmocka_unit_test(wrong_types_are_errors),
        cmocka_unit_test(unknown_keys_are_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
