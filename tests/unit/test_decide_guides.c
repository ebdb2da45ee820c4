/* SPDX-License-Identifier: Apache-2.0
 *
 * Each remedy of the frameworks' own guides to running out of memory, by the guide's name for it:
 * the ladder gets to it, and what it changes is what the framework accepts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/ladder_help.h"

struct remedy {
    const char *name; /* the guide's words */
    const char *policy;
    const char *problem;
    const char *settings;
    const char *rung;
    const char *edits; /* what it changes when the ladder gets there */
};

#define RELAX_DYNAMIC "--use-dynamic-batch-size; --max-tokens-per-gpu=12288; "
#define RELAX_RECOMPUTED                                                                           \
    "--recompute-granularity=full; --recompute-method=uniform; --recompute-num-layers=1; "
#define AREAL                                                                                      \
    "rollout.backend=sglang:d4; actor.backend=fsdp:d4; actor.mb_spec.max_tokens_per_mb=10240; "    \
    "train_dataset.max_length=1024; gconfig.max_new_tokens=3072; "

static const struct remedy remedies[] = {
    {"Relax 1: enable activation recomputation", "relax", "gpu forward", RELAX_DYNAMIC,
     "full-recompute",
     "--recompute-granularity: - -> full; --recompute-method: - -> uniform; "
     "--recompute-num-layers: - -> 1"},
    {"Relax 2: lower max tokens per GPU", "relax", "gpu backward",
     RELAX_DYNAMIC RELAX_RECOMPUTED "--rollout-max-context-len=8192", "fewer-tokens",
     "--max-tokens-per-gpu: 12288 -> 8192"},
    {"Relax 2: log-probs max tokens per GPU", "relax", "gpu log_probs",
     RELAX_DYNAMIC "--fully-async; --log-probs-max-tokens-per-gpu=16384", "fewer-log-probs-tokens",
     "--log-probs-max-tokens-per-gpu: 16384 -> 8192"},
    {"Relax 2: the reference role has a budget of its own", "relax", "gpu log_probs",
     RELAX_DYNAMIC "--fully-async; --ref-actor-config={\"max_tokens_per_gpu\":16384}",
     "fewer-log-probs-tokens",
     "--log-probs-max-tokens-per-gpu: - -> 6144; --ref-actor-config: "
     "{\"max_tokens_per_gpu\":16384} -> {\"max_tokens_per_gpu\":8192}"},
    {"Relax 3: dynamic batch", "relax", "gpu forward",
     RELAX_RECOMPUTED "--micro-batch-size=4; --rollout-max-context-len=8192", "dynamic-batch",
     "--use-dynamic-batch-size: - -> true; --max-tokens-per-gpu: - -> 8192"},
    {"Relax 4: fixed micro-batch of 1", "relax", "gpu forward",
     RELAX_DYNAMIC RELAX_RECOMPUTED "--rollout-max-context-len=12288; --micro-batch-size=2",
     "fixed-micro-batch", "--use-dynamic-batch-size: true -> -; --micro-batch-size: 2 -> 1"},
    {"Relax 5: optimizer CPU offload, overlapped", "relax", "gpu optimizer", RELAX_DYNAMIC,
     "optimizer-offload",
     "--optimizer-cpu-offload: - -> true; --use-precision-aware-optimizer: - -> true; "
     "--use-distributed-optimizer: - -> true; --overlap-cpu-optimizer-d2h-h2d: - -> true"},
    {"Relax 6: recompute the loss function", "relax", "gpu forward", RELAX_DYNAMIC RELAX_RECOMPUTED,
     "recompute-loss", "--recompute-loss-function: - -> true"},
    {"Relax 7: log-probs in chunks", "relax", "gpu log_probs", RELAX_DYNAMIC "--colocate",
     "log-probs-chunks", "--log-probs-chunk-size: -1 -> 256"},
    {"Relax 8: smaller weight update buffer", "relax", "gpu weight_sync", RELAX_DYNAMIC,
     "smaller-weight-buffer", "--update-weight-buffer-size: 536870912 -> 134217728"},
    {"Relax 9: disable the weights backuper (host memory)", "relax", "host weight_sync",
     RELAX_DYNAMIC "--colocate", "no-weights-backuper", "--disable-weights-backuper: - -> true"},
    {"Relax 10: smaller train memory margin", "relax", "gpu collective", RELAX_DYNAMIC "--colocate",
     "smaller-margin", "--train-memory-margin-bytes: 1073741824 -> 268435456"},
    {"Relax 10: larger train memory margin when fragmented", "relax", "gpu collective",
     RELAX_DYNAMIC "--colocate; n.tried=1; n.free=0.5; n.reserved_unallocated=4", "larger-margin",
     "--train-memory-margin-bytes: 1073741824 -> 2147483648"},
    {"Relax 11: lower the SGLang memory fraction", "relax", "gpu weight_sync",
     RELAX_DYNAMIC "--colocate; --sglang-mem-fraction-static=0.8", "lower-mem-fraction-colocated",
     "--sglang-mem-fraction-static: 0.8 -> 0.65"},
    {"Relax 11, the other way: SGLang asks for a larger fraction", "relax", "kv_cache init raise",
     RELAX_DYNAMIC "--sglang-mem-fraction-static=0.6", "raise-mem-fraction",
     "--sglang-mem-fraction-static: 0.6 -> 0.75"},
    {"Relax, NCCL: CUDA memory check", "relax", "gpu collective", RELAX_DYNAMIC,
     "check-before-nccl", "--enable-cuda-memory-check: - -> true"},

    {"AReaL generation 1: fewer concurrent rollouts", "areal", "gpu generation",
     AREAL "rollout.max_concurrent_rollouts=256", "fewer-rollouts",
     "rollout.max_concurrent_rollouts: 256 -> 102"},
    {"AReaL generation 2: tensor parallel for rollout", "areal", "gpu generation", AREAL,
     "rollout-tensor-parallel", "rollout.backend: sglang:d4 -> sglang:d2t2"},
    {"AReaL generation 3: SGLang memory fraction", "areal", "gpu generation",
     AREAL "sglang.mem_fraction_static=0.9", "lower-mem-fraction",
     "sglang.mem_fraction_static: 0.9 -> 0.75"},
    {"AReaL training 1: max_tokens_per_mb, down to its floor", "areal", "gpu forward",
     AREAL "actor.gradient_checkpointing=true; n.tried=8; n.free=1; n.allocated=12", "fewer-tokens",
     "actor.mb_spec.max_tokens_per_mb: 10240 -> 4096"},
    {"AReaL training 2: gradient checkpointing", "areal", "gpu backward", AREAL,
     "gradient-checkpointing", "actor.gradient_checkpointing: false -> true"},
    {"AReaL training 3: Ulysses context parallel", "areal", "gpu forward", AREAL,
     "context-parallel", "actor.backend: fsdp:d4 -> fsdp:d2c2"},
    {"AReaL training 3: tensor parallel on FSDP", "areal", "gpu init", AREAL, "tensor-parallel",
     "actor.backend: fsdp:d4 -> fsdp:d2t2"},
    {"AReaL training 3: pipeline parallel on Archon", "areal", "gpu optimizer",
     AREAL "actor.backend=archon:d4", "pipeline-parallel",
     "actor.backend: archon:d4 -> archon:d2p2"},
    {"AReaL training 3: expert parallel on Archon", "areal", "gpu optimizer",
     AREAL "actor.backend=archon:d8e2", "expert-parallel",
     "actor.backend: archon:d8e2 -> archon:d8e4"},
    {"AReaL training 4: per-layer optimizer step", "areal", "gpu optimizer", AREAL,
     "per-layer-optimizer", "actor.fsdp.per_layer_optim_step: false -> true"},
    {"AReaL training 4: offload parameters", "areal", "gpu optimizer", AREAL, "offload-params",
     "actor.fsdp.offload_params: false -> true"},
    {"AReaL training 5: a lighter optimizer, with consent", "areal", "gpu optimizer",
     AREAL "actor.backend=archon:d4; allow", "sgd-optimizer", "actor.optimizer.type: adam -> sgd"},
    {"AReaL training 6: memory-efficient load", "areal", "gpu init", AREAL, "memory-efficient-load",
     "actor.fsdp.memory_efficient_load: false -> true"},
    {"AReaL training 6, the other way: host OOM while loading", "areal", "host init",
     AREAL "actor.fsdp.memory_efficient_load=true", "direct-load",
     "actor.fsdp.memory_efficient_load: true -> false"},
    {"AReaL weight update 1: through the disk", "areal", "gpu weight_sync",
     AREAL "fileroot_shared=true", "disk-weight-update", "actor.weight_update_mode: xccl -> disk"},
    {"AReaL optimizer state in bf16, with consent", "areal", "gpu optimizer",
     AREAL "allow; actor.fsdp.per_layer_optim_step=true", "bf16-optimizer-state",
     "actor.optimizer_dtype: float32 -> bfloat16; actor.optimizer.type: adam -> adam_bf16; "
     "actor.fsdp.per_layer_optim_step: true -> false"},
};

static void remedy_is_reached(void **state)
{
    const struct remedy *remedy = *state;
    struct ladder_run run;
    struct oom_decision decision;
    char edits[1024];

    ladder_begin(&run, remedy->policy, remedy->problem, remedy->settings);
    for (;;) {
        ladder_decide(&run, &decision);
        if (!decision.retry) {
            const char *why = ladder_skip_why(&decision, remedy->rung);
            fail_msg("the ladder ended without \"%s\" (%s)", remedy->rung, why ? why : "not there");
        }
        if (strcmp(decision.rung, remedy->rung) == 0)
            break;
        ladder_apply(&run, &decision);
        oom_decision_free(&decision);
    }
    ladder_edits_text(&decision.edits, edits, sizeof(edits));
    assert_string_equal(edits, remedy->edits);
    oom_decision_free(&decision);
    ladder_end(&run);
}

/* The guides' tools for looking closer. They are off until an administrator wants them, ride
 * along with a remedy, and are gone in the attempt after. */
static const struct remedy diagnoses[] = {
    {"Relax step 2: memory snapshot with torch", "relax", "gpu forward", RELAX_DYNAMIC,
     "memory-snapshot-torch",
     "--memory-snapshot-dir: - -> oomretry-memory; --memory-snapshot-num-steps: - -> 3; "
     "--record-memory-history: - -> true"},
    {"Relax step 2: memory snapshot with memray", "relax", "host init",
     RELAX_DYNAMIC "--colocate; scheduler=none", "memory-snapshot-memray",
     "--memory-snapshot-dir: - -> oomretry-memory; --memory-snapshot-num-steps: - -> 3; "
     "--memory-recorder: torch -> memray; --record-memory-history: - -> true"},
    {"Relax step 3: CUDA memory check", "relax", "gpu collective",
     RELAX_DYNAMIC "--colocate; --sglang-mem-fraction-static=0.8", "cuda-memory-check",
     "--enable-cuda-memory-check: - -> true"},
    {"Relax step 4: profiler with memory", "relax", "gpu forward", RELAX_DYNAMIC, "profile-memory",
     "--profile-target: - -> train_overall; --profile-step-start: - -> 2; --profile-step-end: - -> "
     "4; --profile-with-memory: - -> true; --use-tensorboard: - -> true; --tb-project-name: - -> "
     "oomretry-memory"},
};

static void diagnosis_rides_along(void **state)
{
    const struct remedy *diagnosis = *state;
    struct ladder_run run;
    struct oom_decision first, second;
    char edits[2048], undone[2048];
    json_t *document = ladder_document(diagnosis->policy);
    json_t *rung = json_object_get(json_object_get(document, "rungs"), diagnosis->rung);

    ladder_begin_with(&run, document, diagnosis->problem, diagnosis->settings);
    ladder_decide(&run, &first);
    ladder_edits_text(&first.edits, edits, sizeof(edits));
    assert_null(strstr(edits, diagnosis->edits)); /* off by default */
    char remedy[64];
    snprintf(remedy, sizeof(remedy), "%s", first.rung);
    oom_decision_free(&first);
    ladder_end(&run);

    json_object_set_new(rung, "enabled", json_true());
    ladder_begin_with(&run, document, diagnosis->problem, diagnosis->settings);
    ladder_decide(&run, &first);
    ladder_edits_text(&first.edits, edits, sizeof(edits));
    assert_string_equal(first.rung, remedy); /* it costs no place on the ladder */
    assert_non_null(strstr(edits, diagnosis->edits));
    assert_non_null(strstr(first.reason, diagnosis->rung));

    ladder_apply(&run, &first);
    ladder_decide(&run, &second);
    ladder_edits_text(&second.edits, undone, sizeof(undone));
    for (size_t i = 0; i < json_array_size(json_object_get(rung, "edits")); i++) {
        const json_t *edit = json_array_get(json_object_get(rung, "edits"), i);
        const char *knob = json_string_value(json_object_get(edit, "knob"));
        for (size_t j = 0; j < first.edits.count; j++) {
            if (strcmp(first.edits.items[j].knob, knob) != 0)
                continue;
            bool back = false;
            for (size_t k = 0; k < second.edits.count; k++)
                back = back || strcmp(second.edits.items[k].knob, knob) == 0;
            assert_true(back);
        }
    }
    assert_null(strstr(second.reason, diagnosis->rung)); /* once */
    oom_decision_free(&first);
    oom_decision_free(&second);
    ladder_end(&run);
    json_decref(document);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int main(void)
{
    struct CMUnitTest tests[COUNT(remedies) + COUNT(diagnoses)];

    memset(tests, 0, sizeof(tests));
    for (size_t i = 0; i < COUNT(remedies); i++) {
        tests[i].name = remedies[i].name;
        tests[i].test_func = remedy_is_reached;
        tests[i].initial_state = (void *)(uintptr_t)&remedies[i];
    }
    for (size_t i = 0; i < COUNT(diagnoses); i++) {
        tests[COUNT(remedies) + i].name = diagnoses[i].name;
        tests[COUNT(remedies) + i].test_func = diagnosis_rides_along;
        tests[COUNT(remedies) + i].initial_state = (void *)(uintptr_t)&diagnoses[i];
    }
    return cmocka_run_group_tests_name("guides", tests, NULL, NULL);
}
