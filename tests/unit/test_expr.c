/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policies/expr.h"

/* a=8, big=1e9, name="fsdp:d8", on=true, none=null; everything else is unknown. */
static void resolve(void *arg, const char *name, struct oom_expr_value *out)
{
    (void)arg;
    if (strcmp(name, "a") == 0)
        oom_expr_set_number(out, 8);
    else if (strcmp(name, "big") == 0)
        oom_expr_set_number(out, 1e9);
    else if (strcmp(name, "name") == 0)
        oom_expr_set_string(out, "fsdp:d8");
    else if (strcmp(name, "on") == 0)
        oom_expr_set_bool(out, true);
    else if (strcmp(name, "none") == 0)
        out->kind = OOM_EXPR_NULL;
    else
        out->kind = OOM_EXPR_UNKNOWN;
}

static void show(const struct oom_expr_value *value, char *out, size_t size)
{
    switch (value->kind) {
    case OOM_EXPR_UNKNOWN:
        snprintf(out, size, "unknown");
        break;
    case OOM_EXPR_NULL:
        snprintf(out, size, "null");
        break;
    case OOM_EXPR_BOOL:
        snprintf(out, size, "%s", value->truth ? "true" : "false");
        break;
    case OOM_EXPR_NUMBER:
        snprintf(out, size, "%g", value->number);
        break;
    case OOM_EXPR_STRING:
        snprintf(out, size, "'%s'", value->text);
        break;
    }
}

static void values(void **state)
{
    static const struct {
        const char *text;
        const char *is;
    } rows[] = {
        {"1 + 2 * 3", "7"},
        {"(1 + 2) * 3", "9"},
        {"-2 * -a", "16"},
        {"7 % 4", "3"},
        {"512 MiB / 1 KiB", "524288"},
        {"1 / 0", "unknown"},
        {"a / (a - 8)", "unknown"},
        {"ceil(9000 / 2)", "4500"},
        {"ceil(9001 / 2)", "4501"},
        {"floor(7.9)", "7"},
        {"min(3, a, 5)", "3"},
        {"max(3, a, 5)", "8"},
        {"max(3, nothing)", "unknown"},
        {"round_down(4607, 256)", "4352"},
        {"round_up(4097, 256)", "4352"},
        {"largest_divisor(12, 6)", "6"},
        {"largest_divisor(3, 2)", "1"},
        {"largest_divisor(none, 2)", "unknown"},
        {"divides(4, a)", "true"},
        {"divides(3, a)", "false"},
        {"divides(0, a)", "unknown"},
        {"set(on)", "true"},
        {"set(none)", "false"},
        {"set(nothing)", "unknown"},
        {"known(nothing)", "false"},
        {"known(none)", "false"},
        {"first(none, a)", "8"},
        {"first(nothing, a)", "unknown"},
        {"first(none)", "null"},
        {"if(on, 1, 2)", "1"},
        {"if(nothing, 1, 2)", "unknown"},
        {"name == 'fsdp:d8'", "true"},
        {"name != \"x\"", "true"},
        {"none == null", "true"},
        {"a == null", "false"},
        {"nothing == null", "unknown"},
        {"a == 'a'", "false"},
        {"none < 3", "unknown"},
        {"'x' < 3", "unknown"},
        /* three-valued logic: what is decided does not wait for what is unknown */
        {"on or nothing", "true"},
        {"nothing or on", "true"},
        {"nothing and false", "false"},
        {"nothing and on", "unknown"},
        {"not nothing", "unknown"},
        {"not a == 9", "true"},
        {"not on or on", "true"},
        {"none or on", "true"},
        {"contains(name, ':d')", "true"},
        {"contains(none, 'x')", "false"},
        {"replace('a/z2.json', 'z2', 'z3')", "'a/z3.json'"},
        {"conf_set(none, 'expandable_segments', 'True')", "'expandable_segments:True'"},
        {"conf_set('max_split_size_mb:512,expandable_segments:False', 'expandable_segments', "
         "'True')",
         "'max_split_size_mb:512,expandable_segments:True'"},
        {"engine(name)", "'fsdp'"},
        {"engine('megatron:(attn:d1t2|ffn:d1e2)')", "unknown"},
        {"dim('sglang:d2 t4', 't')", "4"},
        {"dim(name, 'c')", "1"},
        {"shift(name, 'd', 'c')", "'fsdp:d4c2'"},
        {"shift(shift(name, 'd', 'c'), 'd', 'c')", "'fsdp:d2c4'"},
        {"shift('sglang[a]:d3t2', 'd', 't')", "'sglang[a]:d1t6'"},
        {"shift('fsdp:d1', 'd', 'c')", "unknown"},
        {"widen('archon:d8e2', 'e')", "'archon:d8e4'"},
        {"widen('archon:d2e2', 'e')", "unknown"},
        {"json_get('{\"a\":16384}', 'a')", "16384"},
        {"json_get('{\"a\":1}', 'b')", "null"},
        {"json_get('[1', 'b')", "unknown"},
        {"json_set('{\"a\":1,\"b\":2}', 'a', 8192)", "'{\"a\":8192,\"b\":2}'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct oom_error err;
        struct oom_expr_value value;
        char text[OOM_EXPR_TEXT + 8];
        struct oom_expr *expr = oom_expr_parse(rows[i].text, &err);
        if (!expr)
            fail_msg("%s: %s", rows[i].text, err.text);
        oom_expr_eval(expr, resolve, NULL, &value);
        show(&value, text, sizeof(text));
        if (strcmp(text, rows[i].is) != 0)
            fail_msg("%s is %s, not %s", rows[i].text, text, rows[i].is);
        oom_expr_free(expr);
    }
}

static void errors_name_the_column(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } rows[] = {
        {"", "column 1 of \"\": the expression ends too early"},
        {"1 +", "column 4 "},
        {"(1", "column 3 "},
        {"a b", "column 3 of \"a b\": expected an operator"},
        {"ciel(3)", "no function \"ciel\" (did you mean \"ceil\"?)"},
        {"ceil(3, 4)", "wrong number of arguments"},
        {"ceil()", "wrong number of arguments"},
        {"'x", "no closing quote"},
        {"1x", "a number ends here"},
        {"a & b", "column 3 "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct oom_error err = {""};
        assert_null(oom_expr_parse(rows[i].text, &err));
        if (!strstr(err.text, rows[i].says))
            fail_msg("\"%s\": \"%s\" does not say \"%s\"", rows[i].text, err.text, rows[i].says);
    }
}

static void depth_and_length_are_bounded(void **state)
{
    char text[4000];
    struct oom_error err;

    (void)state;
    memset(text, '(', 500);
    text[500] = '\0';
    assert_null(oom_expr_parse(text, &err));
    assert_non_null(strstr(err.text, "nested too deeply"));
    memset(text, '1', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_null(oom_expr_parse(text, &err));
    assert_non_null(strstr(err.text, "at most"));
}

static int count_names(void *arg, const char *name, int column)
{
    char *out = arg;
    size_t used = strlen(out);
    snprintf(out + used, 100 - used, "%s@%d ", name, column);
    return 0;
}

static void names_come_with_columns(void **state)
{
    char names[100] = "";
    struct oom_expr *expr = oom_expr_parse("ceil(a / b.c_d.0.x) > 2", NULL);

    (void)state;
    assert_non_null(expr);
    assert_int_equal(oom_expr_names(expr, count_names, names), 0);
    assert_string_equal(names, "a@6 b.c_d.0.x@10 ");
    oom_expr_free(expr);
}

static void numbers_are_read_strictly(void **state)
{
    double number;

    (void)state;
    assert_true(oom_expr_read_number("1e9", &number) && number == 1e9);
    assert_true(oom_expr_read_number(" 1_000_000 ", &number) && number == 1e6);
    assert_true(oom_expr_read_number(".5", &number) && number == 0.5);
    assert_false(oom_expr_read_number("nan", &number));
    assert_false(oom_expr_read_number("0x10", &number));
    assert_false(oom_expr_read_number("8 GB", &number));
    assert_false(oom_expr_read_number("auto", &number));
    assert_false(oom_expr_read_number("", &number));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(errors_name_the_column),
        cmocka_unit_test(depth_and_length_are_bounded),
        cmocka_unit_test(names_come_with_columns),
        cmocka_unit_test(numbers_are_read_strictly),
    };
    return cmocka_run_group_tests_name("expr", tests, NULL, NULL);
}
