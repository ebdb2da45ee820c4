/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/unit/sets.h"

static void shipped_keep_their_promise(void **state)
{
    struct oom_signatures *set = sets_shipped();
    json_t *faults = oom_signatures_check(set);
    size_t i;
    const json_t *fault;

    (void)state;
    json_array_foreach(faults, i, fault)
    {
        print_error("%s: %s: %s\n", json_string_value(json_object_get(fault, "signature")),
                    json_string_value(json_object_get(fault, "what")),
                    json_string_value(json_object_get(fault, "line")));
    }
    assert_int_equal(json_array_size(faults), 0);
    json_decref(faults);
    oom_signatures_free(set);
}

static void broken_promises_are_found(void **state)
{
    struct oom_signatures *set = oom_signatures_new();
    json_t *document = json_loads(
        "{\"family\":\"t\",\"signatures\":[{\"id\":\"a\",\"kind\":\"oom\",\"domain\":\"gpu\","
        "\"find\":[\"full\"],\"match\":\"is full$\",\"examples\":[\"is full now\"],"
        "\"look_alikes\":[\"it is full\"]},{\"id\":\"b\",\"kind\":\"progress\","
        "\"find\":[\"step\"]}]}",
        0, NULL);

    (void)state;
    assert_int_equal(oom_signatures_add(set, document, "t.json", NULL), 0);
    assert_int_equal(oom_signatures_compile(set, NULL), 0);
    json_t *faults = oom_signatures_check(set);
    assert_int_equal(json_array_size(faults), 4);
    json_decref(faults);
    json_decref(document);
    oom_signatures_free(set);
}

static void refuse(const char *text, const char *reason)
{
    struct oom_signatures *set = oom_signatures_new();
    struct oom_error err = {""};
    json_t *document = json_loads(text, JSON_DECODE_ANY, NULL);

    assert_non_null(document);
    assert_int_equal(oom_signatures_add(set, document, "site.json", &err), -1);
    if (!strstr(err.text, reason) || !strstr(err.text, "site.json"))
        fail_msg("\"%s\" does not say \"%s\"", err.text, reason);
    /* Nothing of it stays. */
    json_t *list = oom_signatures_to_json(set);
    assert_int_equal(json_array_size(list), 0);
    json_decref(list);
    json_decref(document);
    oom_signatures_free(set);
}

#define SIG(more)                                                                                  \
    "{\"family\":\"t\",\"signatures\":[{\"id\":\"a\",\"kind\":\"oom\",\"find\":[\"abc\"]," more    \
    "}]}"

static void bad_documents_are_refused_with_a_reason(void **state)
{
    (void)state;
    refuse("[]", "one object");
    refuse("{\"signatures\":[]}", "family");
    refuse("{\"family\":\"t\",\"signatures\":{}}", "arrays");
    refuse("{\"family\":\"t\",\"signature\":[]}", "did you mean \"signatures\"");
    refuse("{\"family\":\"t\",\"signatures\":[3]}", "objects");
    refuse("{\"family\":\"t\",\"signatures\":[{\"kind\":\"oom\"}]}", "\"id\"");
    refuse("{\"family\":\"t\",\"signatures\":[{\"id\":\"a\",\"kind\":\"omm\"}]}", "\"kind\"");
    refuse(SIG("\"domain\":\"disk\""), "t.a: \"domain\"");
    refuse(SIG("\"phase\":\"init\""), "\"domain\": is needed");
    refuse(SIG("\"domain\":\"gpu\",\"phase\":\"sleep\""), "it may be init, generation");
    refuse(SIG("\"domain\":\"gpu\",\"direction\":\"up\""), "it may be lower, raise");
    refuse(SIG("\"domain\":\"hots\""), "is \"hots\" (did you mean \"host\"?)");
    refuse(SIG("\"domain\":\"gpu\",\"strength\":\"scoop\""), "did you mean \"scope\"");
    refuse(SIG("\"domain\":\"gpu\",\"edge\":\"start\""), "it may be begin, end, toggle");
    refuse(SIG("\"domain\":\"gpu\",\"numbers\":[\"(?<tryed>%size%)\"]"), "did you mean \"tried\"");
    refuse(SIG("\"domain\":\"gpu\",\"numbers\":[\"(?<tried_mib>%size%)\"]"), "tried_mib");
    refuse(SIG("\"domain\":\"gpu\",\"numbers\":[\"%size% free\"]"), "a group with a name");
    refuse(SIG("\"domain\":\"gpu\",\"match\":\"(\""), "t.a: \"match\"");
    refuse(SIG("\"domain\":\"gpu\",\"numbers\":[\"[\"]"), "t.a: \"numbers\"");
    refuse(SIG("\"domain\":\"gpu\",\"numbers\":\"x\""), "array");
    refuse(SIG("\"domain\":\"gpu\",\"confidence\":2"), "from 0 to 1");
    refuse(SIG("\"domain\":\"gpu\",\"within\":0"), "whole number");
    refuse(SIG("\"domain\":\"gpu\",\"nocase\":1"), "true or false");
    refuse(SIG("\"domain\":\"gpu\",\"exmaples\":[]"), "did you mean \"examples\"");
    refuse(SIG("\"domain\":\"gpu\",\"examples\":[1]"), "strings");
    refuse("{\"family\":\"t\",\"signatures\":[{\"id\":\"a\",\"kind\":\"oom\",\"domain\":\"gpu\","
           "\"find\":[\"ab\"]}]}",
           "3 to 200 bytes");
    refuse("{\"family\":\"t\",\"signatures\":[{\"id\":\"a\",\"kind\":\"oom\",\"domain\":\"gpu\"}]}",
           "\"find\"");
    refuse("{\"family\":\"t\",\"signatures\":[{\"id\":\"a\",\"kind\":\"phase\",\"find\":[\"abc\"]},"
           "{\"id\":\"a\",\"kind\":\"phase\",\"find\":[\"abc\"]}]}",
           "used twice");
    refuse(
        "{\"family\":\"t\",\"frames\":[{\"function\":\"f\",\"phase\":\"init\"},{\"function\":\"g\","
        "\"phase\":\"trainer\"}]}",
        "rule 2 of \"frames\": \"phase\": is \"trainer\"");
    refuse("{\"family\":\"t\",\"frames\":[{\"phase\":\"init\"}]}", "\"function\" or \"file\"");
    refuse("{\"family\":\"t\",\"frames\":[{\"function\":\"f\"}]}", "\"phase\"");
    refuse("{\"family\":\"t\",\"frames\":[{\"function\":\"f\",\"phase\":\"init\","
           "\"strength\":\"big\"}]}",
           "\"strength\"");
}

static void too_long_an_expression_is_told_its_limit(void **state)
{
    char text[2048];
    char long_one[1100];

    (void)state;
    memset(long_one, 'x', sizeof(long_one) - 1);
    long_one[sizeof(long_one) - 1] = '\0';
    snprintf(text, sizeof(text), SIG("\"domain\":\"gpu\",\"match\":\"%s\""), long_one);
    refuse(text, "longer than 1024 bytes");
}

static void a_refused_document_leaves_the_others(void **state)
{
    struct oom_signatures *set = oom_signatures_new();
    json_t *good = json_loads("{\"family\":\"g\",\"signatures\":[{\"id\":\"a\",\"kind\":\"oom\","
                              "\"domain\":\"gpu\",\"find\":[\"abc\"]}]}",
                              0, NULL);
    json_t *bad = json_loads("{\"family\":\"b\",\"signatures\":[{\"id\":\"a\",\"kind\":\"oom\","
                             "\"domain\":\"gpu\",\"find\":[\"abc\"]},{\"id\":\"b\"}]}",
                             0, NULL);
    struct oom_error err;

    (void)state;
    assert_int_equal(oom_signatures_compile(set, &err), -1); /* empty */
    assert_int_equal(oom_signatures_add(set, good, "g.json", &err), 0);
    assert_int_equal(oom_signatures_add(set, bad, "b.json", &err), -1);
    assert_int_equal(oom_signatures_compile(set, &err), 0);
    assert_int_equal(oom_signatures_add(set, good, "g.json", &err), -1); /* compiled */
    json_t *list = oom_signatures_to_json(set);
    assert_int_equal(json_array_size(list), 1);
    json_decref(list);
    json_decref(good);
    json_decref(bad);
    oom_signatures_free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shipped_keep_their_promise),
        cmocka_unit_test(broken_promises_are_found),
        cmocka_unit_test(bad_documents_are_refused_with_a_reason),
        cmocka_unit_test(too_long_an_expression_is_told_its_limit),
        cmocka_unit_test(a_refused_document_leaves_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
