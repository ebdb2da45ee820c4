/* SPDX-License-Identifier: Apache-2.0
 *
 * The shells that a script starts: whose status tells of a failure, what their options are, and
 * what they set by themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "oomretry/rewrite.h"

static const char *const no_environment[] = {NULL};

/* Any script file that is called holds this. */
static int inner(void *arg, const char *path, char **bytes, size_t *length)
{
    size_t n = strlen(path);

    if (!arg || n < 3 || strcmp(path + n - 3, ".sh") != 0)
        return -1;
    *bytes = strdup(arg);
    *length = strlen(*bytes);
    return 0;
}

static struct oom_script *script_of(const char *text, const char *called)
{
    struct oom_script_source source = {.bytes = text,
                                       .length = strlen(text),
                                       .name = "script",
                                       .environ_list = no_environment,
                                       .read_side = inner,
                                       .read_side_arg = (void *)(uintptr_t)called};
    struct oom_error err = {""};
    struct oom_script *script = oom_script_parse(&source, &err);

    if (!script)
        fail_msg("%s", err.text);
    return script;
}

static void a_called_shell_may_mask_the_status(void **state)
{
    static const struct {
        const char *text, *called;
        bool masked;
    } cases[] = {
        {"bash run.sh\n", "python train.py\n", false},
        {"bash run.sh\n", "python train.py | tee a.log\n", true},
        /* No shell inherits the options of the one that starts it. */
        {"set -euo pipefail\nbash run.sh\n", "python train.py | tee a.log\n", true},
        {"set -e\nbash run.sh\n", "python train.py\necho done\n", true},
        {"set -e\nexec bash run.sh\n", "set -o pipefail\npython train.py | tee a.log\n", false},
        {"bash run.sh\n", "python train.py | tee a.log\nexit ${PIPESTATUS[0]}\n", false},
        {"bash run.sh\n", "python train.py\nexit $?\n", false},
        {"bash -euo pipefail run.sh\n", "python train.py | tee a.log\n", false},
        {"bash -eo pipefail run.sh\n", "python train.py\necho done\n", false},
        {"srun bash -c 'python train.py; echo done'\n", NULL, true},
        {"srun bash -ec 'python train.py; echo done'\n", NULL, false},
        {"set -o pipefail\nsrun bash -c 'python train.py | tee a.log'\n", NULL, true},
        {"#!/bin/bash -eu\npython train.py\necho done\n", NULL, false},
        {"#!/bin/bash\npython train.py\necho done\n", NULL, true},
        {"#!/usr/bin/env bash\npython train.py\necho done\n", NULL, true},
        {"set -e\nset +e\npython train.py\necho done\n", NULL, true},
        {"python train.py\nset -e\necho done\n", NULL, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oom_script *script = script_of(cases[i].text, cases[i].called);
        if (oom_script_masks_status(script) != cases[i].masked)
            fail_msg("%s-- %s", cases[i].text, cases[i].called ? cases[i].called : "");
        oom_script_free(script);
    }
}

static void the_program_is_found_behind_words_that_vary(void **state)
{
    static const char *const cases[] = {
        "torchrun --rdzv_id $RANDOM train.py --size 8\n",
        "torchrun --rdzv_id ${RANDOM} train.py --size 8\n",
        "torchrun --master_addr $HOSTNAME train.py --size 8\n",
        "apptainer run --nv --bind $PWD img.sif python3 train.py --size 8\n",
        "bash -euo pipefail -c 'python3 train.py --size 8'\n",
        "bash -eo pipefail run.sh\n",
        "bash --init-file x -O extglob run.sh\n",
        "bash -- run.sh\n",
    };
    json_t *json =
        json_loads("{\"name\": \"t\", \"title\": \"t\", \"family\": \"argparse\","
                   "\"recognise\": {\"programs\": [\"train.py\"]},"
                   "\"knobs\": {\"--size\": {\"type\": \"int\"}}, \"rungs\": {}, \"ladders\": {}}",
                   0, NULL);
    struct oom_policy *policy = oom_policy_from_json(json, "test", NULL);

    (void)state;
    assert_non_null(policy);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oom_script *script = script_of(cases[i], "python3 train.py --size 8\n");
        struct oom_values values;
        assert_int_equal(oom_script_values(script, policy, &values, NULL), 0);
        const char *size = oom_values_get(&values, "--size");
        if (!size || strcmp(size, "8") != 0)
            fail_msg("%s", cases[i]);
        oom_values_free(&values);
        oom_script_free(script);
    }
    oom_policy_free(policy);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_called_shell_may_mask_the_status),
        cmocka_unit_test(the_program_is_found_behind_words_that_vary),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
