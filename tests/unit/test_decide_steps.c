/* SPDX-License-Identifier: Apache-2.0
 *
 * What the shipped policies do first about some problems that are easily answered wrongly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/ladder_help.h"

static void a_first_step_is(const char *policy, const char *problem, const char *settings,
                            const char *edits)
{
    struct ladder_run run;
    struct oom_decision decision;
    char text[1024];

    ladder_begin(&run, policy, problem, settings);
    ladder_decide(&run, &decision);
    ladder_edits_text(&decision.edits, text, sizeof(text));
    assert_string_equal(text, edits);
    oom_decision_free(&decision);
    ladder_end(&run);
}

/* Megatron's global batch is micro-batch times data parallel size where nothing names it. */
static void a_global_batch_that_nothing_names_is_named(void **state)
{
    (void)state;
    a_first_step_is("megatron", "gpu eval",
                    "--micro-batch-size=4; --tensor-model-parallel-size=2; "
                    "--pipeline-model-parallel-size=2; slurm.gpus=16",
                    "--global-batch-size: - -> 16; --micro-batch-size: 4 -> 2");
    a_first_step_is("megatron", "gpu eval", "--micro-batch-size=4; --global-batch-size=64",
                    "--micro-batch-size: 4 -> 2");
}

static void what_the_settings_ask_for_in_bytes_is_lowered(void **state)
{
    (void)state;
    a_first_step_is("vllm", "gpu generation",
                    "--kv-cache-memory-bytes=34359738368; n.tried=4; n.free=1; n.total=79",
                    "--kv-cache-memory-bytes: 34359738368 -> 30172145254");
    a_first_step_is("deepspeed", "gpu checkpoint",
                    "--deepspeed=ds.json; ds:zero_optimization.stage=3; "
                    "ds:zero_optimization.stage3_gather_16bit_weights_on_model_save=true",
                    "ds:zero_optimization.stage3_gather_16bit_weights_on_model_save: true -> "
                    "false");
}

/* A sleeping trainer cannot have expandable segments: its margin is what helps against holes. */
static void a_fragmented_card_of_a_sleeping_trainer_gets_a_larger_margin(void **state)
{
    (void)state;
    a_first_step_is("relax", "gpu forward",
                    "--colocate; --use-dynamic-batch-size; --max-tokens-per-gpu=12288; n.tried=1; "
                    "n.free=0.5; n.total=79; n.reserved_unallocated=4",
                    "--train-memory-margin-bytes: 1073741824 -> 2147483648");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_global_batch_that_nothing_names_is_named),
        cmocka_unit_test(what_the_settings_ask_for_in_bytes_is_lowered),
        cmocka_unit_test(a_fragmented_card_of_a_sleeping_trainer_gets_a_larger_margin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
