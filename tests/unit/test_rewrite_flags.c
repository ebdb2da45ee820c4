/* SPDX-License-Identifier: Apache-2.0
 *
 * Flags that are spelled by their beginning only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "oomretry/rewrite.h"

static struct oom_policy *policy_of(const char *family)
{
    char text[512];
    struct oom_error err = {""};

    snprintf(text, sizeof(text),
             "{\"name\": \"t\", \"title\": \"t\", %s,"
             "\"recognise\": {\"programs\": [\"train.py\"]},"
             "\"knobs\": {\"--accumulation_steps\": {\"type\": \"int\"},"
             "\"--accum\": {\"type\": \"int\"}, \"--fsdp_config\": {\"type\": \"string\"}},"
             "\"rungs\": {}, \"ladders\": {}}",
             family);
    json_t *json = json_loads(text, 0, NULL);
    struct oom_policy *policy = oom_policy_from_json(json, "test", &err);
    json_decref(json);
    if (!policy)
        fail_msg("%s", err.text);
    return policy;
}

static void a_beginning_stands_for_the_flag(void **state)
{
    static const struct {
        const char *family, *knob, *text, *result;
    } cases[] = {
        {"\"family\": \"hf\"", "--accumulation_steps", "python train.py --accumula 2 -x\n",
         "python train.py --accumula 9 -x\n"},
        {"\"family\": \"hf\"", "--accumulation_steps", "python train.py --accumulation-st=2\n",
         "python train.py --accumulation-st=9\n"},
        {"\"family\": \"argparse\", \"abbreviates\": true", "--accumulation_steps",
         "python train.py --accumula 2\n", "python train.py --accumula 9\n"},
        /* Megatron's parser does not abbreviate. */
        {"\"family\": \"argparse\"", "--accumulation_steps", "python train.py --accumula 2\n",
         "python train.py --accumula 2 --accumulation_steps 9\n"},
        /* Another flag, here or perhaps. */
        {"\"family\": \"hf\"", "--accumulation_steps", "python train.py --accum 2\n",
         "python train.py --accum 2 --accumulation_steps 9\n"},
        {"\"family\": \"hf\"", "--fsdp_config", "python train.py --fsdp full_shard\n",
         "python train.py --fsdp full_shard --fsdp_config 9\n"},
        {"\"family\": \"hf\"", "--accumulation_steps", "python train.py --acc 2\n",
         "python train.py --acc 2 --accumulation_steps 9\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oom_policy *policy = policy_of(cases[i].family);
        struct oom_script_source source = {
            .bytes = cases[i].text, .length = strlen(cases[i].text), .name = "script"};
        struct oom_script *script = oom_script_parse(&source, NULL);
        struct oom_edits edits = {0};
        struct oom_rewrite out;
        assert_non_null(script);
        oom_edits_add(&edits, cases[i].knob, NULL, "9", NULL);
        assert_int_equal(oom_script_apply(script, policy, &edits, &out, NULL), 0);
        assert_string_equal(out.bytes, cases[i].result);
        oom_rewrite_free(&out);
        oom_edits_free(&edits);
        oom_script_free(script);
        oom_policy_free(policy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_beginning_stands_for_the_flag),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
