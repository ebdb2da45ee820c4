/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of deciding, apart from what any framework knows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policies/policy_impl.h"
#include "tests/unit/ladder_help.h"

#define DYNAMIC "--use-dynamic-batch-size; --max-tokens-per-gpu=12288; "
#define RECOMPUTED                                                                                 \
    "--recompute-granularity=full; --recompute-method=uniform; --recompute-num-layers=1; "

static void take(struct ladder_run *run, const char *rung)
{
    struct oom_decision decision;

    ladder_decide(run, &decision);
    if (!decision.retry || strcmp(decision.rung, rung) != 0)
        fail_msg("\"%s\" instead of \"%s\": %s", decision.rung, rung, decision.reason);
    ladder_apply(run, &decision);
    oom_decision_free(&decision);
}

static void other_failures_are_not_retried(void **state)
{
    struct ladder_run run;
    struct oom_decision decision;

    (void)state;
    ladder_begin(&run, "relax", "gpu forward", DYNAMIC);
    run.incident.oom = false;
    run.incident.domain = OOM_DOMAIN_NONE;
    snprintf(run.incident.summary, sizeof(run.incident.summary), "ImportError");
    ladder_decide(&run, &decision);
    assert_false(decision.retry);
    assert_non_null(strstr(decision.reason, "no sign of memory: ImportError"));
    oom_decision_free(&decision);
    ladder_end(&run);
}

static void retries_are_bounded(void **state)
{
    struct ladder_run run;
    struct oom_decision decision;

    (void)state;
    ladder_begin(&run, "relax", "gpu forward", DYNAMIC);
    run.input.max_retries = 1;
    take(&run, "full-recompute");
    ladder_decide(&run, &decision);
    assert_false(decision.retry);
    assert_non_null(strstr(decision.reason, "all 1 retry of this lineage"));
    assert_string_equal(decision.advice,
                        "With a larger --oom-max-retries the next rung would be fewer-tokens.");
    assert_int_equal(decision.edits.count, 0);
    oom_decision_free(&decision);
    ladder_end(&run);
}

static void fragmentation_asks_the_allocator_first(void **state)
{
    struct ladder_run run;
    struct oom_decision decision;

    (void)state;
    ladder_begin(&run, "megatron", "gpu forward",
                 "n.tried=2; n.free=1; n.total=79; n.reserved_unallocated=6; "
                 "env:PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512");
    ladder_decide(&run, &decision);
    assert_string_equal(decision.rung, "expandable-segments");
    assert_string_equal(decision.kind, "allocator");
    assert_string_equal(decision.policy, "pytorch");
    assert_string_equal(decision.edits.items[0].new_value,
                        "max_split_size_mb:512,expandable_segments:True");
    oom_decision_free(&decision);
    ladder_end(&run);
}

static void missing_bytes_say_how_far(void **state)
{
    struct ladder_run run;
    struct oom_decision decision;

    (void)state;
    /* A little is missing: the usual step. */
    ladder_begin(&run, "relax", "gpu forward",
                 DYNAMIC RECOMPUTED "n.tried=2; n.free=1; n.allocated=40; n.total=79");
    ladder_decide(&run, &decision);
    assert_string_equal(decision.edits.items[0].new_value, "6144");
    oom_decision_free(&decision);
    /* Much is missing: further at once. */
    ladder_settings(&run, "n.tried=16");
    ladder_decide(&run, &decision);
    assert_string_equal(decision.rung, "fewer-tokens");
    assert_true(atoi(decision.edits.items[0].new_value) < 6144);
    oom_decision_free(&decision);
    ladder_end(&run);
}

static void what_frees_too_little_waits(void **state)
{
    struct ladder_run run;
    struct oom_decision decision;

    (void)state;
    /* 12288 -> 12032 is all that the context length leaves, and 8 GiB are missing. */
    ladder_begin(&run, "relax", "gpu forward",
                 DYNAMIC RECOMPUTED "--rollout-max-context-len=11000; n.tried=9; n.free=1; "
                                    "n.allocated=30; n.total=79");
    ladder_decide(&run, &decision);
    assert_string_equal(decision.rung, "recompute-loss");
    assert_non_null(strstr(ladder_skip_why(&decision, "fewer-tokens"), "missing"));
    oom_decision_free(&decision);
    ladder_end(&run);
}

static void what_made_it_worse_is_taken_back(void **state)
{
    struct ladder_run run;
    struct oom_decision decision;

    (void)state;
    ladder_begin(&run, "megatron", "gpu optimizer", "n.tried=2; n.free=1; n.total=79");
    take(&run, "optimizer-offload");
    ladder_settings(&run, "n.tried=6");
    ladder_decide(&run, &decision);
    assert_true(decision.retry);
    assert_string_equal(decision.taken_back, "optimizer-offload");
    assert_string_not_equal(decision.rung, "optimizer-offload");
    bool back = false;
    for (size_t i = 0; i < decision.edits.count; i++)
        back = back || (strcmp(decision.edits.items[i].knob, "--optimizer-cpu-offload") == 0 &&
                        !decision.edits.items[i].new_value);
    assert_true(back);
    ladder_apply(&run, &decision);
    oom_decision_free(&decision);
    /* and does not come again */
    for (;;) {
        ladder_decide(&run, &decision);
        assert_string_not_equal(decision.rung, "optimizer-offload");
        if (!decision.retry)
            break;
        ladder_apply(&run, &decision);
        oom_decision_free(&decision);
    }
    oom_decision_free(&decision);
    ladder_end(&run);
}

static void growth_in_another_phase_is_progress(void **state)
{
    struct ladder_run run;
    struct oom_decision decision;

    (void)state;
    ladder_begin(&run, "megatron", "gpu init", "n.tried=2; n.free=1; n.total=79");
    take(&run, "optimizer-offload");
    ladder_problem(&run, "gpu forward");
    ladder_settings(&run, "n.tried=6");
    ladder_decide(&run, &decision);
    assert_string_equal(decision.taken_back, "");
    oom_decision_free(&decision);
    ladder_end(&run);
}

static void a_problem_moved_to_the_host_gets_memory_or_goes_back(void **state)
{
    struct ladder_run run;
    struct oom_decision decision;

    (void)state;
    ladder_begin(&run, "relax", "gpu optimizer",
                 DYNAMIC "--colocate; --sglang-mem-fraction-static=0.8; scheduler=slurm; "
                         "slurm.mem_mib=131072; slurm.mem_max_mib=1048576");
    take(&run, "optimizer-offload");
    ladder_problem(&run, "host optimizer");
    ladder_decide(&run, &decision);
    assert_string_equal(decision.rung, "more-memory");
    assert_string_equal(decision.policy, "host");
    assert_string_equal(decision.edits.items[0].new_value, "262144");
    assert_int_equal(decision.mode, OOM_MODE_REQUEUE);
    oom_decision_free(&decision);

    ladder_settings(&run, "slurm.mem_max_mib=131072");
    ladder_decide(&run, &decision);
    assert_string_equal(decision.taken_back, "optimizer-offload");
    assert_string_equal(decision.rung, "lower-mem-fraction-colocated"); /* for the GPU's problem */
    oom_decision_free(&decision);
    ladder_end(&run);
}

static void another_programs_problem_leaves_the_training_alone(void **state)
{
    struct ladder_run run;
    struct oom_decision decision;

    (void)state;
    ladder_begin(&run, "relax", "host unknown",
                 DYNAMIC "--num-workers=8; scheduler=slurm; slurm.mem_mib=131072; "
                         "slurm.mem_max_mib=1048576");
    snprintf(run.incident.program, sizeof(run.incident.program), "python3 export.py");
    ladder_decide(&run, &decision);
    assert_string_equal(decision.rung, "more-memory");
    assert_non_null(strstr(decision.reason, "host out of memory in python3 export.py"));
    oom_decision_free(&decision);

    ladder_settings(&run, "slurm.mem_max_mib=131072");
    ladder_decide(&run, &decision);
    assert_false(decision.retry);
    assert_non_null(strstr(decision.reason, "in python3 export.py: that is not the training"));
    assert_non_null(strstr(decision.advice, "--mem"));
    oom_decision_free(&decision);

    ladder_problem(&run, "gpu forward");
    ladder_settings(&run, "n.tried=2; n.free=1; n.total=79");
    ladder_decide(&run, &decision);
    assert_false(decision.retry);
    assert_null(strstr(decision.advice, "--mem"));
    oom_decision_free(&decision);

    run.incident.program[0] = '\0';
    ladder_decide(&run, &decision);
    assert_true(decision.retry);
    oom_decision_free(&decision);
    ladder_end(&run);
}

static void what_changed_nothing_is_not_repeated(void **state)
{
    struct ladder_run run;
    struct oom_decision decision;

    (void)state;
    ladder_begin(&run, "relax", "gpu forward",
                 DYNAMIC RECOMPUTED "n.tried=2; n.free=1; n.total=79");
    take(&run, "fewer-tokens");
    ladder_decide(&run, &decision); /* the very same numbers again */
    assert_string_not_equal(decision.rung, "fewer-tokens");
    assert_non_null(strstr(ladder_skip_why(&decision, "fewer-tokens"), "changed nothing"));
    oom_decision_free(&decision);
    ladder_end(&run);
}

static void numbers_that_nothing_moves_are_no_measure(void **state)
{
    struct ladder_run run;
    struct oom_decision decision;
    bool again = false;

    (void)state;
    ladder_begin(&run, "megatron", "gpu forward",
                 RECOMPUTED "--micro-batch-size=16; --global-batch-size=64; --num-layers=8; "
                            "n.tried=2; n.free=1; n.total=79");
    take(&run, "smaller-micro-batch");
    take(&run, "fused-cross-entropy");
    /* Fewer tokens make a difference, whatever the numbers say. */
    take(&run, "smaller-micro-batch");
    ladder_decide(&run, &decision);
    while (!again && decision.retry) {
        ladder_apply(&run, &decision);
        oom_decision_free(&decision);
        ladder_decide(&run, &decision);
        again = strcmp(decision.rung, "smaller-micro-batch") == 0;
    }
    /* Everything else is tried once before the third of them. */
    assert_true(again);
    assert_null(ladder_skip_why(&decision, "smaller-micro-batch"));
    assert_true(run.step_count > 4);
    for (size_t i = 1; i + 1 < run.step_count; i++)
        for (size_t k = i + 1; k < run.step_count; k++)
            assert_string_not_equal(run.steps[i].rung, run.steps[k].rung);
    oom_decision_free(&decision);
    ladder_end(&run);
}

static void too_high_here_and_too_low_there_meets_in_between(void **state)
{
    struct ladder_run run;
    struct oom_decision decision;

    (void)state;
    ladder_begin(&run, "relax", "gpu weight_sync",
                 DYNAMIC "--colocate; --sglang-mem-fraction-static=0.8; "
                         "text=[torch_memory_saver.cpp] cudaError error: 2 (out of memory)");
    take(&run, "lower-mem-fraction-waking"); /* 0.65 */
    ladder_problem(&run, "kv_cache init raise");
    ladder_decide(&run, &decision);
    assert_string_equal(decision.rung, "raise-mem-fraction");
    assert_string_equal(decision.edits.items[0].new_value, "0.73");
    oom_decision_free(&decision);
    ladder_end(&run);
}

static void one_identical_restart_for_a_card_that_others_hold(void **state)
{
    struct ladder_run run;
    struct oom_decision decision;

    (void)state;
    ladder_begin(&run, "megatron", "gpu init",
                 "n.tried=2; n.free=1; n.total=79; n.in_use=20; scheduler=slurm");
    ladder_decide(&run, &decision);
    assert_string_equal(decision.rung, "restart");
    assert_int_equal(decision.edits.count, 0);
    assert_non_null(strstr(decision.reason, "one identical restart"));
    assert_int_equal(decision.mode, OOM_MODE_REQUEUE); /* another node, perhaps */
    ladder_apply(&run, &decision);
    oom_decision_free(&decision);
    ladder_decide(&run, &decision);
    assert_string_not_equal(decision.rung, "restart");
    oom_decision_free(&decision);
    ladder_end(&run);
    /* An engine of the job itself is no other process. */
    ladder_begin(&run, "relax", "gpu forward",
                 DYNAMIC "--colocate; n.tried=2; n.free=1; n.total=79; n.in_use=20");
    ladder_decide(&run, &decision);
    assert_string_not_equal(decision.rung, "restart");
    oom_decision_free(&decision);
    ladder_end(&run);
}

static void the_global_batch_is_kept(void **state)
{
    struct ladder_run run;
    struct oom_decision decision;
    char edits[512];

    (void)state;
    ladder_begin(&run, "trl", "gpu backward",
                 "--per_device_train_batch_size=6; --gradient_accumulation_steps=4; "
                 "--steps_per_generation=4; --num_generations=8");
    ladder_decide(&run, &decision);
    ladder_edits_text(&decision.edits, edits, sizeof(edits));
    assert_string_equal(edits, "--per_device_train_batch_size: 6 -> 3; "
                               "--gradient_accumulation_steps: 4 -> 8; "
                               "--steps_per_generation: 4 -> 8");
    assert_false(decision.changes_training);
    oom_decision_free(&decision);
    ladder_end(&run);
    /* 3 has no half: 1 is the next divisor. */
    ladder_begin(&run, "megatron", "gpu forward",
                 RECOMPUTED "--micro-batch-size=3; --global-batch-size=96");
    ladder_decide(&run, &decision);
    ladder_edits_text(&decision.edits, edits, sizeof(edits));
    assert_string_equal(edits, "--micro-batch-size: 3 -> 1");
    oom_decision_free(&decision);
    ladder_end(&run);
}

static void refused_rungs_give_way(void **state)
{
    static const char *const refused[] = {"full-recompute", NULL};
    static const char *const why[] = {"the flags are out of sight", NULL};
    struct ladder_run run;
    struct oom_decision decision;

    (void)state;
    ladder_begin(&run, "relax", "gpu forward", DYNAMIC);
    run.input.refused = refused;
    run.input.refused_why = why;
    ladder_decide(&run, &decision);
    assert_string_equal(decision.rung, "fewer-tokens");
    assert_non_null(strstr(ladder_skip_why(&decision, "full-recompute"), "out of sight"));
    oom_decision_free(&decision);
    ladder_end(&run);
}

static void a_change_that_did_not_arrive_is_not_tried_again(void **state)
{
    struct ladder_run run;
    struct oom_decision decision;

    (void)state;
    ladder_begin(&run, "slime", "gpu forward", DYNAMIC);
    take(&run, "full-recompute");
    run.steps[0].not_applied = true;
    take(&run, "fewer-tokens");
    run.steps[1].not_applied = true;
    ladder_decide(&run, &decision);
    assert_false(decision.retry);
    assert_non_null(strstr(decision.reason, "not to reach the program"));
    oom_decision_free(&decision);
    ladder_end(&run);
}

static void the_mode_follows_what_changes(void **state)
{
    static const struct {
        const char *problem, *settings;
        enum oom_mode asked, is;
        const char *why;
    } rows[] = {
        {"gpu forward", "scheduler=slurm", OOM_MODE_AUTO, OOM_MODE_INPLACE, "only settings change"},
        {"gpu forward", "scheduler=none", OOM_MODE_REQUEUE, OOM_MODE_INPLACE, "no scheduler"},
        {"gpu forward", "scheduler=slurm", OOM_MODE_RESUBMIT, OOM_MODE_RESUBMIT, "--oom-mode"},
        {"gpu forward", "scheduler=ray", OOM_MODE_AUTO, OOM_MODE_RESUBMIT, "Ray"},
        {"gpu forward", "scheduler=slurm; slurm.time_left_s=300; attempt.seconds=900",
         OOM_MODE_AUTO, OOM_MODE_REQUEUE,
         "5 min of wall time are left, and this attempt took 15 min to fail"},
        {"gpu forward", "scheduler=slurm; slurm.time_left_s=90000; attempt.seconds=900",
         OOM_MODE_AUTO, OOM_MODE_INPLACE, "1500 min of wall time are left"},
        {"gpu forward", "scheduler=slurm; attempt.oom_kills=1", OOM_MODE_INPLACE, OOM_MODE_REQUEUE,
         "the kernel has killed"},
        {"gpu forward", "scheduler=slurm; allocation=gone", OOM_MODE_AUTO, OOM_MODE_REQUEUE,
         "allocation is gone"},
        {"host data", "scheduler=slurm; slurm.mem_mib=1000", OOM_MODE_AUTO, OOM_MODE_REQUEUE,
         "host memory ran out"},
        {"host data", "scheduler=slurm; slurm.mem_mib=1000; requeue_allowed=false", OOM_MODE_AUTO,
         OOM_MODE_RESUBMIT, "--no-requeue"},
        {"host data", "scheduler=slurm; slurm:mem-per-cpu=1000", OOM_MODE_AUTO, OOM_MODE_REQUEUE,
         "host memory ran out"},
        {"host data", "scheduler=slurm; slurm:mem-per-gpu=1000", OOM_MODE_AUTO, OOM_MODE_RESUBMIT,
         "memory by GPU"},
        {"host data", "slurm:mem=1G", OOM_MODE_AUTO, OOM_MODE_REQUEUE, "what the scheduler gives"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ladder_run run;
        struct oom_decision decision;
        ladder_begin(&run, "relax", rows[i].problem, DYNAMIC);
        ladder_settings(&run, rows[i].settings);
        run.input.mode = rows[i].asked;
        ladder_decide(&run, &decision);
        assert_true(decision.retry);
        if (decision.mode != rows[i].is)
            fail_msg("%s; %s: %s, not %s", rows[i].problem, rows[i].settings,
                     oom_mode_name(decision.mode), oom_mode_name(rows[i].is));
        if (!strstr(decision.mode_why, rows[i].why))
            fail_msg("%s; %s: %s", rows[i].problem, rows[i].settings, decision.mode_why);
        oom_decision_free(&decision);
        ladder_end(&run);
    }
}

static void numbers_of_the_message_are_used_within_bounds(void **state)
{
    struct ladder_run run;
    struct oom_decision decision;

    (void)state;
    ladder_begin(
        &run, "vllm", "kv_cache init raise",
        "--max-model-len=32768; --gpu-memory-utilization=0.92; text=Based on the available "
        "memory, the estimated maximum model length is 8192.");
    ladder_decide(&run, &decision);
    assert_string_equal(decision.rung, "shorter-model-len");
    assert_string_equal(decision.edits.items[0].new_value, "8192");
    oom_decision_free(&decision);
    /* Log text is anybody's: not below the knob's floor, and never upwards. */
    ladder_settings(&run, "text=the estimated maximum model length is 1");
    ladder_decide(&run, &decision);
    assert_string_equal(decision.edits.items[0].new_value, "128");
    oom_decision_free(&decision);
    ladder_settings(&run, "text=the estimated maximum model length is 99999999999");
    ladder_decide(&run, &decision);
    assert_string_not_equal(decision.rung, "shorter-model-len");
    oom_decision_free(&decision);
    ladder_end(&run);
}

static void the_value_that_the_message_names_is_taken(void **state)
{
    static const struct {
        const char *policy, *problem, *settings, *rung, *value;
    } rows[] = {
        {"vllm", "kv_cache init lower",
         "--max-num-seqs=512; text=ValueError: max_num_seqs (512) exceeds available Mamba cache "
         "blocks (187). Please lower max_num_seqs to at most 187 or increase "
         "gpu_memory_utilization.",
         "fewer-sequences", "187"},
        {"sglang", "kv_cache init raise",
         "--mem-fraction-static=0.5; text=Loaded weights leave no GPU memory for the KV cache "
         "under --mem-fraction-static=0.5. Raise --mem-fraction-static above 0.813.",
         "raise-mem-fraction", "0.87"},
        {"vllm", "gpu init lower",
         "--gpu-memory-utilization=0.95; text=ValueError: Free memory on device cuda:0 "
         "(70.11/79.15 GiB) on startup is less than desired GPU memory utilization (0.95, 75.19 "
         "GiB).",
         "fit-utilization", "0.86"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ladder_run run;
        struct oom_decision decision;
        ladder_begin(&run, rows[i].policy, rows[i].problem, rows[i].settings);
        ladder_decide(&run, &decision);
        assert_string_equal(decision.rung, rows[i].rung);
        assert_string_equal(decision.edits.items[0].new_value, rows[i].value);
        oom_decision_free(&decision);
        ladder_end(&run);
    }
}

static void equal_rungs_go_by_price(void **state)
{
    struct ladder_run run;
    struct oom_decision decision;
    json_t *document = ladder_document("relax");
    json_t *ladder =
        json_object_get(json_object_get(json_object_get(document, "ladders"), "gpu"), "optimizer");

    (void)state;
    json_array_clear(ladder);
    json_array_append_new(ladder, json_pack("[s{s:s,s:f}{s:s,s:f}]", "smaller-micro-batch", "rung",
                                            "full-recompute", "cost", 0.3, "rung", "empty-cache",
                                            "cost", 0.02));
    ladder_begin_with(&run, document, "gpu optimizer", DYNAMIC);
    ladder_decide(&run, &decision);
    assert_string_equal(decision.rung, "empty-cache");
    assert_true(decision.cost > 0.019 && decision.cost < 0.021);
    oom_decision_free(&decision);
    ladder_end(&run);
    json_decref(document);
}

static void decisions_survive_json(void **state)
{
    struct ladder_run run;
    struct oom_decision decision, again;
    struct oom_error err;

    (void)state;
    ladder_begin(&run, "relax", "gpu forward", DYNAMIC "scheduler=slurm");
    oom_policy_set_version(run.policies[0], 3);
    ladder_decide(&run, &decision);
    json_t *json = oom_decision_to_json(&decision);
    assert_string_equal(json_string_value(json_object_get(json, "policy")), "relax@3");
    assert_string_equal(json_string_value(json_object_get(json, "action")), "retry");
    assert_int_equal(oom_decision_from_json(json, &again, &err), 0);
    assert_true(again.retry);
    assert_string_equal(again.rung, decision.rung);
    assert_string_equal(again.reason, decision.reason);
    assert_int_equal(again.edits.count, decision.edits.count);
    assert_int_equal(again.skipped_count, decision.skipped_count);
    assert_int_equal(again.mode, OOM_MODE_INPLACE);
    assert_string_equal(again.mode_why, decision.mode_why);
    oom_decision_free(&again);
    json_object_set_new(json, "action", json_string("perhaps"));
    assert_int_equal(oom_decision_from_json(json, &again, &err), -1);
    json_decref(json);
    oom_decision_free(&decision);
    ladder_end(&run);
}

/* --- whatever the settings ---------------------------------------------------------------------
 */

static unsigned long seed = 12345;

static unsigned long draw(unsigned long below)
{
    seed = seed * 6364136223846793005UL + 1442695040888963407UL;
    return (seed >> 33) % below;
}

static void draw_settings(struct ladder_run *run)
{
    static const char *const numbers[] = {"0",    "1",    "2",    "3",     "4",     "8",
                                          "32",   "256",  "512",  "4096",  "12288", "0.5",
                                          "0.85", "null", "auto", "${x.y}"};
    const struct oom_policy *policy = run->policies[0];

    for (size_t i = 0; i < policy->knob_count; i++) {
        const struct knob *knob = &policy->knobs[i];
        const char *value = numbers[draw(sizeof(numbers) / sizeof(numbers[0]))];
        if (draw(2))
            continue;
        if (strcmp(knob->info.type, "switch") == 0)
            value = "true";
        else if (strcmp(knob->info.type, "bool") == 0)
            value = draw(2) ? "true" : "False";
        else if (knob->choices)
            value = json_string_value(
                json_array_get(knob->choices, draw(json_array_size(knob->choices))));
        else if (strstr(knob->info.name, "backend"))
            value = draw(2) ? "fsdp:d8" : "megatron:d4t2p2";
        oom_values_set(&run->values, knob->info.name, value, OOM_SOURCE_SCRIPT, "script:1");
    }
}

static void check_bounds(const struct ladder_run *run, const struct oom_decision *decision)
{
    for (size_t i = 0; i < decision->edits.count; i++) {
        const struct oom_edit *edit = &decision->edits.items[i];
        double number;
        if (edit->new_value && strstr(edit->new_value, "nan"))
            fail_msg("%s becomes %s", edit->knob, edit->new_value);
        const struct oom_knob *knob = oom_policy_knob(run->policies[0], edit->knob);
        if (knob && strcmp(knob->type, "int") == 0 && edit->new_value &&
            oom_expr_read_number(edit->new_value, &number) && number < -1)
            fail_msg("%s becomes %s", edit->knob, edit->new_value);
    }
}

/* Random settings, problems and numbers: the ladder ends, never goes back to settings that have
 * failed, and each retry has a reason. */
static void ladders_end_and_never_repeat(void **state)
{
    static const char *const names[] = {"areal",    "axolotl", "deepspeed", "llamafactory",
                                        "megatron", "nemo-rl", "openrlhf",  "pytorch",
                                        "relax",    "sglang",  "slime",     "torchtitan",
                                        "trl",      "verl",    "vllm"};
    static const char *const domains[] = {"gpu", "gpu", "gpu", "host", "shm", "kv_cache"};
    static const char *const phases[] = {"init",       "generation", "forward",     "backward",
                                         "optimizer",  "log_probs",  "weight_sync", "collective",
                                         "checkpoint", "data",       "eval",        "unknown"};
    static const char *const directions[] = {"", "lower", "raise"};

    (void)state;
    for (int round = 0; round < 300; round++) {
        struct ladder_run run;
        struct oom_decision decision;
        char problem[64];
        snprintf(problem, sizeof(problem), "%s %s %s", domains[draw(6)], phases[draw(12)],
                 directions[draw(3)]);
        ladder_begin(&run, names[draw(sizeof(names) / sizeof(names[0]))], problem,
                     "n.total=79; n.free=1; n.tried=2; n.allocated=60");
        draw_settings(&run);
        run.input.allow_training = draw(2);
        for (;;) {
            char tried[16];
            snprintf(tried, sizeof(tried), "n.tried=%lu", 1 + draw(20));
            ladder_settings(&run, tried);
            ladder_decide(&run, &decision);
            assert_true(decision.reason[0] != '\0');
            if (!decision.retry)
                break;
            check_bounds(&run, &decision);
            if (decision.edits.count == 0 && strncmp(decision.rung, "restart", 7) != 0)
                fail_msg("%s: %s changes nothing", problem, decision.rung);
            if (run.step_count + 1 == LADDER_STEPS)
                break;
            ladder_apply(&run, &decision);
            oom_decision_free(&decision);
        }
        oom_decision_free(&decision);
        ladder_end(&run);
    }
}

static void last_words_name_a_knob(void **state)
{
    static const struct {
        const char *knob, *line;
        bool named;
    } cases[] = {
        {"--loss-fusion", "train.py: error: unrecognized arguments: --loss-fusion", true},
        {"--loss-fusion", "train.py: error: unrecognized arguments: --a --loss-fusion=1 --b", true},
        {"--loss-fusion", "AssertionError: loss_fusion requires Transformer Engine", true},
        {"--loss-fusion", "AssertionError: args.loss_fusion is not there", true},
        {"--loss-fusion", "error: unrecognized arguments: --no-loss-fusion", false},
        {"--loss-fusion", "error: unrecognized arguments: --loss-fusion-impl", false},
        {"--loss-fusion", "ValueError: the loss is not finite", false},
        {"actor.fsdp.offload_params", "Could not override 'actor.fsdp.offload_params'.", true},
        {"actor.fsdp.offload_params", "Could not override 'ref.actor.fsdp.offload_params'.", false},
        {"actor.fsdp.offload_params",
         "TypeError: __init__() got an unexpected keyword argument 'offload_params'", true},
        {"actor.fsdp.offload_params", "ValueError: offload_params and more", false},
        {"env:PYTORCH_CUDA_ALLOC_CONF", "bad PYTORCH_CUDA_ALLOC_CONF: unknown key", true},
        {"slurm:mem", "ValueError: no mem left in slurm:mem", false},
        {"lr", "ValueError: lr is too high", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oom_edits edits = {NULL, 0};
        assert_int_equal(oom_edits_add(&edits, cases[i].knob, NULL, "1", NULL), 0);
        const char *named = oom_edits_named(&edits, cases[i].line);
        if (!!named != cases[i].named)
            fail_msg("%s in: %s", cases[i].knob, cases[i].line);
        oom_edits_free(&edits);
    }
}

/* The problem stays; the rung and its knobs are out, and nothing of them stays in force. */
static void what_the_program_refuses_is_taken_back(void **state)
{
    struct ladder_run run;
    struct oom_decision decision;

    (void)state;
    ladder_begin(&run, "relax", "gpu forward", DYNAMIC);
    take(&run, "full-recompute");
    snprintf(run.steps[0].rejected, sizeof(run.steps[0].rejected), "--recompute-method");
    ladder_decide(&run, &decision);
    assert_true(decision.retry);
    assert_string_equal(decision.taken_back, "full-recompute");
    assert_non_null(strstr(decision.reason, "full-recompute was refused by the program"));
    bool undone = false;
    for (size_t i = 0; i < decision.edits.count; i++)
        undone = undone || (strcmp(decision.edits.items[i].knob, "--recompute-method") == 0 &&
                            !decision.edits.items[i].new_value);
    assert_true(undone);
    oom_decision_free(&decision);
    ladder_end(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_failures_are_not_retried),
        cmocka_unit_test(retries_are_bounded),
        cmocka_unit_test(fragmentation_asks_the_allocator_first),
        cmocka_unit_test(missing_bytes_say_how_far),
        cmocka_unit_test(what_frees_too_little_waits),
        cmocka_unit_test(what_made_it_worse_is_taken_back),
        cmocka_unit_test(growth_in_another_phase_is_progress),
        cmocka_unit_test(a_problem_moved_to_the_host_gets_memory_or_goes_back),
        cmocka_unit_test(another_programs_problem_leaves_the_training_alone),
        cmocka_unit_test(what_changed_nothing_is_not_repeated),
        cmocka_unit_test(numbers_that_nothing_moves_are_no_measure),
        cmocka_unit_test(too_high_here_and_too_low_there_meets_in_between),
        cmocka_unit_test(one_identical_restart_for_a_card_that_others_hold),
        cmocka_unit_test(the_global_batch_is_kept),
        cmocka_unit_test(refused_rungs_give_way),
        cmocka_unit_test(a_change_that_did_not_arrive_is_not_tried_again),
        cmocka_unit_test(the_mode_follows_what_changes),
        cmocka_unit_test(numbers_of_the_message_are_used_within_bounds),
        cmocka_unit_test(the_value_that_the_message_names_is_taken),
        cmocka_unit_test(equal_rungs_go_by_price),
        cmocka_unit_test(decisions_survive_json),
        cmocka_unit_test(last_words_name_a_knob),
        cmocka_unit_test(what_the_program_refuses_is_taken_back),
        cmocka_unit_test(ladders_end_and_never_repeat),
    };
    return cmocka_run_group_tests_name("decide", tests, NULL, NULL);
}
