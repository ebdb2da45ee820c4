/* SPDX-License-Identifier: Apache-2.0
 *
 * A script with several training commands, each with settings of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "oomretry/rewrite.h"

#define SFT "python train.py --batch 8 --steps 2 --out a\n"
#define DPO "python train.py --batch 4 --steps 4 --out b\n"

static const char *const ran_sft[] = {
    "/usr/bin/python3", "train.py", "--batch", "8", "--steps", "2", "--out", "a", NULL};
static const char *const ran_dpo[] = {
    "/usr/bin/python3", "train.py", "--batch", "4", "--steps", "4", "--out", "b", NULL};
/* With the change of an earlier attempt. */
static const char *const ran_changed[] = {"python3", "train.py", "--batch", "2", "--steps",
                                          "8",       "--out",    "b",       NULL};

static struct oom_policy *policy_of(void)
{
    struct oom_error err = {""};
    json_t *json =
        json_loads("{\"name\": \"t\", \"title\": \"t\", \"family\": \"hf\","
                   "\"recognise\": {\"programs\": [\"train.py\"]},"
                   "\"knobs\": {\"--batch\": {\"type\": \"int\"}, \"--steps\": {\"type\": "
                   "\"int\", \"default\": 1}, \"--fast\": {\"type\": \"bool\"}},"
                   "\"rungs\": {}, \"ladders\": {}}",
                   0, NULL);
    struct oom_policy *policy = oom_policy_from_json(json, "test", &err);
    json_decref(json);
    if (!policy)
        fail_msg("%s", err.text);
    return policy;
}

static struct oom_script *script_of(const char *text, const char *const *ran, bool for_what_ran)
{
    struct oom_script_source source = {.bytes = text,
                                       .length = strlen(text),
                                       .name = "script",
                                       .ran = ran,
                                       .for_what_ran = for_what_ran};
    struct oom_script *script = oom_script_parse(&source, NULL);

    assert_non_null(script);
    return script;
}

static void values_are_those_of_what_ran(void **state)
{
    static const struct {
        const char *const *ran;
        const char *batch;
    } cases[] = {{NULL, "8"}, {ran_sft, "8"}, {ran_dpo, "4"}, {ran_changed, "4"}};
    struct oom_policy *policy = policy_of();

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oom_script *script = script_of(SFT DPO, cases[i].ran, false);
        struct oom_values values;
        assert_int_equal(oom_script_values(script, policy, &values, NULL), 0);
        assert_string_equal(oom_values_get(&values, "--batch"), cases[i].batch);
        oom_values_free(&values);
        oom_script_free(script);
    }
    oom_policy_free(policy);
}

static void a_remedy_is_for_what_had_the_old_values(void **state)
{
    static const struct {
        const char *text, *old_batch, *old_steps;
        const char *const *ran;
        const char *result;
    } cases[] = {
        /* It is not known which one ran. */
        {SFT DPO, "4", "4", NULL,
         "python train.py --batch 1 --steps 9 --out a\n"
         "python train.py --batch 1 --steps 9 --out b\n"},
        {SFT DPO, "4", "4", ran_dpo, SFT "python train.py --batch 1 --steps 9 --out b\n"},
        /* Another process goes on, and knows only the edits. */
        {SFT DPO, "8", "2", NULL, "python train.py --batch 1 --steps 9 --out a\n" DPO},
        {SFT DPO, "4", "4", ran_changed, SFT "python train.py --batch 1 --steps 9 --out b\n"},
        /* Now the other one fails: both are changed. */
        {SFT DPO, "8", "2", ran_dpo,
         "python train.py --batch 1 --steps 9 --out a\n"
         "python train.py --batch 1 --steps 9 --out b\n"},
        /* Nothing says what was before, or it was nobody's. */
        {SFT DPO, NULL, NULL, ran_dpo,
         "python train.py --batch 1 --steps 9 --out a\n"
         "python train.py --batch 1 --steps 9 --out b\n"},
        {SFT DPO, "3", "3", NULL,
         "python train.py --batch 1 --steps 9 --out a\n"
         "python train.py --batch 1 --steps 9 --out b\n"},
        /* The default is a value as well. */
        {SFT "python train.py --batch 4\n", "4", "1", NULL,
         SFT "python train.py --batch 1 --steps 9\n"},
    };
    struct oom_policy *policy = policy_of();

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oom_script *script = script_of(cases[i].text, cases[i].ran, i > 0);
        struct oom_edits edits = {0};
        struct oom_rewrite out;
        struct oom_error err = {""};
        oom_edits_add(&edits, "--batch", cases[i].old_batch, "1", NULL);
        oom_edits_add(&edits, "--steps", cases[i].old_steps, "9", NULL);
        if (oom_script_apply(script, policy, &edits, &out, &err) != 0)
            fail_msg("case %zu: %s", i, err.text);
        assert_string_equal(out.bytes, cases[i].result);
        oom_rewrite_free(&out);
        oom_edits_free(&edits);
        oom_script_free(script);
    }
    oom_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_what_ran),
        cmocka_unit_test(a_remedy_is_for_what_had_the_old_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
