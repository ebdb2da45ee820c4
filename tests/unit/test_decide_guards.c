/* SPDX-License-Identifier: Apache-2.0
 *
 * What must not be tried: retries that the framework would refuse at start, or that cannot help.
 * Each row runs the whole ladder; the rung must never be taken, and the reason must say why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/ladder_help.h"

struct guard {
    const char *name;
    const char *policy;
    const char *problem;
    const char *settings;
    const char *rung;
    const char *why; /* part of the reason that is recorded */
};

#define DYNAMIC "--use-dynamic-batch-size; --max-tokens-per-gpu=12288; "
#define AREAL                                                                                      \
    "rollout.backend=sglang:d4; actor.backend=fsdp:d4; actor.mb_spec.max_tokens_per_mb=10240; "    \
    "train_dataset.max_length=1024; gconfig.max_new_tokens=3072; "
#define VERL                                                                                       \
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4; data.max_prompt_length=1024; "        \
    "data.max_response_length=3072; "

static const struct guard guards[] = {
    /* Relax */
    {"Relax: the token budget holds rollout_max_context_len", "relax", "gpu forward",
     DYNAMIC "--rollout-max-context-len=12288", "fewer-tokens",
     "--max-tokens-per-gpu is at its floor already"},
    {"Relax: without dynamic batch a token budget does nothing", "relax", "gpu forward",
     "--max-tokens-per-gpu=12288", "fewer-tokens", "without dynamic batch"},
    {"Relax: dynamic context parallelism answers fewer tokens with more GPUs", "relax",
     "gpu forward", DYNAMIC "--dynamic-context-parallel", "fewer-tokens",
     "dynamic context parallelism"},
    {"Relax: bshd forbids dynamic batch", "relax", "gpu forward",
     "--micro-batch-size=4; --qkv-format=bshd; --rollout-max-context-len=8192", "dynamic-batch",
     "bshd"},
    {"Relax: SFT requires dynamic batch", "relax", "gpu forward", DYNAMIC "--loss-type=sft",
     "fixed-micro-batch", "SFT requires"},
    {"Relax: log-probs have no budget of their own when colocated", "relax", "gpu log_probs",
     DYNAMIC "--colocate", "fewer-log-probs-tokens", "when colocated"},
    {"Relax: offloading the optimizer needs adam", "relax", "gpu optimizer",
     DYNAMIC "--optimizer=sgd", "optimizer-offload", "adam only"},
    {"Relax: the margin works only with offload_train", "relax", "gpu collective", DYNAMIC,
     "smaller-margin", "only works with offload_train"},
    {"Relax: no smaller margin on fragmented memory", "relax", "gpu collective",
     DYNAMIC "--colocate; n.tried=1; n.free=0.5; n.reserved_unallocated=4", "smaller-margin",
     "fragmented"},
    {"Relax: no larger margin without fragmentation", "relax", "gpu collective",
     DYNAMIC "--colocate; n.tried=1; n.free=0.5; n.reserved_unallocated=0.2", "larger-margin",
     "not fragmented"},
    {"Relax: --sglang-config wins over the fraction", "relax", "gpu weight_sync",
     DYNAMIC "--colocate; --sglang-config=e.yaml", "lower-mem-fraction", "--sglang-config"},
    {"Relax: no weights backup without offload_train", "relax", "host init", DYNAMIC,
     "no-weights-backuper", "only when the trainer is offloaded"},
    {"Relax: chunked SFT logits need untied embeddings", "relax", "gpu forward",
     DYNAMIC "--loss-type=sft", "sft-chunked-logits", "untied"},
    {"Relax: recomputation does not go with activation offload", "relax", "gpu forward",
     DYNAMIC "--cpu-offloading-num-layers=4", "full-recompute", "CPU offloading"},
    {"Relax: expandable segments do not go with a sleeping engine", "relax", "gpu forward",
     DYNAMIC "--colocate; n.tried=1; n.free=0.5; n.total=80; n.reserved_unallocated=4",
     "expandable-segments", "do not work with the memory pool"},

    /* slime */
    {"slime: the margin flag is gone in newer versions", "slime", "gpu optimizer",
     DYNAMIC "--colocate", "smaller-margin", "ignore --train-memory-margin-bytes"},
    {"slime: Megatron's flags only with its backend", "slime", "gpu forward",
     DYNAMIC "--train-backend=fsdp", "full-recompute", "Megatron backend"},

    /* Megatron-LM */
    {"Megatron: --yaml-cfg replaces the command line", "megatron", "gpu forward",
     "--micro-batch-size=4; --yaml-cfg=x.yaml", "smaller-micro-batch", "--yaml-cfg"},
    {"Megatron: FSDP2 has no distributed optimizer", "megatron", "gpu optimizer",
     "--use-torch-fsdp2", "optimizer-offload", "FSDP2"},
    {"Megatron: sequence parallelism needs tensor parallelism", "megatron", "gpu forward", "",
     "sequence-parallel", "needs tensor parallelism"},

    /* AReaL */
    {"AReaL: the floor of max_tokens_per_mb must be known", "areal", "gpu forward",
     AREAL "train_dataset.max_length=", "fewer-tokens", "the floor of"},
    {"AReaL: a micro-batch holds the longest sample", "areal", "gpu forward",
     AREAL "actor.mb_spec.max_tokens_per_mb=4096", "fewer-tokens", "at its floor already"},
    {"AReaL: FSDP has no pipeline parallelism", "areal", "gpu forward", AREAL, "pipeline-parallel",
     "FSDP has no pipeline"},
    {"AReaL: FSDP has no expert parallelism", "areal", "gpu forward", AREAL, "expert-parallel",
     "FSDP has no expert"},
    {"AReaL: Ulysses divides the heads", "areal", "gpu forward", AREAL "model.heads=7",
     "context-parallel", "heads cannot be divided"},
    {"AReaL: tensor parallel divides the key/value heads", "areal", "gpu init",
     AREAL "model.heads=32; model.kv_heads=1", "tensor-parallel", "key/value heads"},
    {"AReaL: an odd data parallel degree cannot be halved", "areal", "gpu generation",
     AREAL "rollout.backend=sglang:d3", "rollout-tensor-parallel", "not even"},
    {"AReaL: per-layer steps only with adam", "areal", "gpu optimizer",
     AREAL "actor.optimizer.type=adam_bf16", "per-layer-optimizer", "adam optimizer only"},
    {"AReaL: no memory-efficient load from scratch", "areal", "gpu init",
     AREAL "actor.init_from_scratch=true", "memory-efficient-load", "init_from_scratch"},
    {"AReaL: the disk update needs a shared file root", "areal", "gpu weight_sync",
     AREAL "cluster.n_nodes=2", "disk-weight-update", "shared"},
    {"AReaL: the file root is said not to be shared", "areal", "gpu weight_sync",
     AREAL "fileroot_shared=false", "disk-weight-update", "shared"},
    {"AReaL: no chunk size that this version may not know", "areal", "gpu log_probs", AREAL,
     "log-probs-chunks", "may not know"},
    {"AReaL: another optimizer needs consent", "areal", "gpu optimizer", AREAL,
     "bf16-optimizer-state", "--oom-allow=training"},

    /* verl */
    {"verl: the token budget holds prompt and response", "verl", "gpu forward",
     VERL "actor_rollout_ref.actor.use_dynamic_bsz=True; "
          "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=4096",
     "fewer-tokens", "at its floor already"},
    {"verl: with dynamic batches the micro-batch does nothing", "verl", "gpu forward",
     VERL "actor_rollout_ref.actor.use_dynamic_bsz=True", "smaller-micro-batch", "does nothing"},
    {"verl: Ulysses needs use_remove_padding", "verl", "gpu forward",
     VERL "actor_rollout_ref.model.use_remove_padding=False; model.heads=32", "sequence-parallel",
     "use_remove_padding"},
    {"verl: FSDP's settings are not Megatron's", "verl", "gpu forward",
     VERL "actor_rollout_ref.actor.strategy=megatron", "activation-offload", "FSDP backend"},

    /* Megatron */
    {"Megatron: a block of all layers is each layer by itself", "megatron", "gpu forward",
     "--recompute-granularity=full; --recompute-method=block; --recompute-num-layers=16; "
     "--num-layers=32; --pipeline-model-parallel-size=2",
     "finer-recompute", "by itself already"},

    /* NeMo-RL */
    {"NeMo-RL: Megatron's offload needs Megatron", "nemo-rl", "gpu optimizer",
     "policy.megatron_cfg.enabled=false", "optimizer-offload", "Megatron backend"},

    /* OpenRLHF */
    {"OpenRLHF: new versions refuse the old names", "openrlhf", "gpu forward",
     "--train.micro_batch_size=4; --actor.model_name_or_path=m", "smaller-micro-batch-old",
     "have their new names"},
    {"OpenRLHF: one old name among new ones is no old version", "openrlhf", "gpu forward",
     "--train.micro_batch_size=4; --pretrain=m", "smaller-micro-batch-old", "have their new names"},
    {"OpenRLHF: old versions refuse the new names", "openrlhf", "gpu forward",
     "--micro_train_batch_size=4; --pretrain=m", "smaller-micro-batch", "have their old names"},
    {"OpenRLHF: sleeping needs all models on the same GPUs", "openrlhf", "gpu generation",
     "--vllm.num_engines=4; --actor.model_name_or_path=m", "trainer-sleeps", "same GPUs"},

    /* TRL */
    {"TRL: two ways to say the generation batch exclude each other", "trl", "gpu backward",
     "--generation_batch_size=64; --steps_per_generation=4; --per_device_train_batch_size=8",
     "smaller-batch", "exclude each other"},
    {"TRL: FSDP brings its own checkpointing", "trl", "gpu backward",
     "--gradient_checkpointing=false; --fsdp=full_shard", "gradient-checkpointing", "FSDP brings"},
    {"TRL: a GRPO evaluation batch holds whole groups", "trl", "gpu eval",
     "--num_generations=8; --per_device_eval_batch_size=8", "smaller-eval-batch", "groups"},
    {"TRL: only SFT and DPO know activation offloading", "trl", "gpu backward",
     "--max_completion_length=512", "activation-offload", "only SFT and DPO"},

    /* LLaMA-Factory, axolotl */
    {"LLaMA-Factory: pure_bf16 does not go with ZeRO-3", "llamafactory", "gpu backward",
     "deepspeed=examples/deepspeed/ds_z2_config.json; pure_bf16=true", "zero-3", "pure_bf16"},
    {"LLaMA-Factory: checkpointing is on by default", "llamafactory", "gpu backward", "",
     "gradient-checkpointing", "on already"},
    {"axolotl: FSDP and gradient checkpointing exclude each other", "axolotl", "gpu backward",
     "--micro-batch-size=1; --gradient-accumulation-steps=4; "
     "--fsdp-config.activation-checkpointing=true",
     "gradient-checkpointing", "both together are refused"},
    {"axolotl: the global batch must be kept", "axolotl", "gpu backward", "--micro-batch-size=4",
     "smaller-batch", "could not be kept"},
    {"axolotl: no 8-bit optimizer with DeepSpeed offload", "axolotl", "gpu optimizer",
     "--optimizer=adamw_torch; --deepspeed=deepspeed_configs/zero3_bf16_cpuoffload_all.json; allow",
     "8bit-optimizer", "8-bit optimizers do not work"},

    /* torchtitan */
    {"torchtitan: HEAD does not know the old names", "torchtitan", "gpu forward",
     "--training.num_tokens_per_microbatch_per_dp_rank=16384", "full-checkpointing",
     "spells it otherwise"},
    {"torchtitan: the global batch cannot be named without the number of ranks", "torchtitan",
     "gpu forward", "--training.local_batch_size=8", "smaller-batch-named",
     "number of ranks is not known"},
    {"torchtitan: nor may it shrink without consent", "torchtitan", "gpu forward",
     "--training.local_batch_size=8", "smaller-batch-shrinking", "--oom-allow=training"},

    /* the engines */
    {"vLLM: --kv-cache-memory-bytes overrides the share", "vllm", "kv_cache init raise",
     "--kv-cache-memory-bytes=1000000000", "raise-gpu-utilization", "overrides"},
    {"vLLM: not down when the message says up", "vllm", "gpu init raise", "",
     "lower-gpu-utilization", "other direction"},
    {"vLLM: no tensor parallelism over GPUs that are not there", "vllm", "gpu init", "slurm:gpus=1",
     "tensor-parallel", "no further GPUs"},
    {"vLLM: without chunked prefill a batch holds the longest prompt", "vllm", "gpu generation",
     "--no-enable-chunked-prefill; --max-num-batched-tokens=32768", "smaller-prefill",
     "longest prompt"},
    {"SGLang: not up when the message says down", "sglang", "kv_cache generation lower", "",
     "raise-mem-fraction", "other direction"},

    /* a program of its own kind */
    {"general: a framework's flags are not any program's", "megatron", "gpu forward",
     "--micro-batch-size=1; --batch-size=8", "smaller-batch", "settings of its own"},
    {"general: a smaller global batch needs consent", "pytorch", "gpu forward", "--batch-size=8",
     "smaller-batch", "--oom-allow=training"},
    {"general: old PyTorch knows no expandable segments", "pytorch", "gpu forward",
     "n.tried=1; n.free=0.5; n.total=24; n.reserved_unallocated=4; text=CUDA out of memory. If "
     "reserved memory is >> allocated memory try setting max_split_size_mb",
     "expandable-segments", "older than"},

    /* host memory */
    {"host: never above what the partition's nodes have", "relax", "host data",
     DYNAMIC "slurm.mem_mib=196608; slurm.mem_max_mib=196608", "more-memory", "all that the"},
    {"host: --mem=0 is the whole node", "relax", "host data", DYNAMIC "slurm:mem=0", "more-memory",
     "all of the node"},
    {"host: no --mem beside --mem-per-cpu", "host", "host data",
     "slurm.mem_mib=1000; slurm:mem-per-cpu=4G", "more-memory", "by CPU or GPU"},
    {"host: no scheduler, no more memory", "relax", "host data",
     DYNAMIC "scheduler=none; slurm:mem=64G", "more-memory", "no scheduler"},
};

static void rung_is_never_taken(void **state)
{
    const struct guard *guard = *state;
    struct ladder_run run;
    struct oom_decision decision;

    ladder_begin(&run, guard->policy, guard->problem, guard->settings);
    for (;;) {
        ladder_decide(&run, &decision);
        if (decision.retry && strcmp(decision.rung, guard->rung) == 0)
            fail_msg("\"%s\" was taken: %s", guard->rung, decision.reason);
        const char *why = ladder_skip_why(&decision, guard->rung);
        if (why && !strstr(why, guard->why))
            fail_msg("\"%s\" was skipped because \"%s\", not \"%s\"", guard->rung, why, guard->why);
        if (!decision.retry) {
            if (!why)
                fail_msg("\"%s\" is not on this ladder", guard->rung);
            break;
        }
        /* Only the settings at the start are under test. */
        bool seen = why != NULL;
        ladder_apply(&run, &decision);
        oom_decision_free(&decision);
        if (seen)
            break;
    }
    oom_decision_free(&decision);
    ladder_end(&run);
}

/* What a guard prevents is really what would be refused: without it the rule behind it catches
 * the settings. */
static void rules_catch_what_guards_miss(void **state)
{
    struct ladder_run run;
    struct oom_decision decision;
    json_t *document = ladder_document("relax");
    json_t *rung = json_object_get(json_object_get(document, "rungs"), "fixed-micro-batch");

    (void)state;
    json_object_del(rung, "guards");
    ladder_begin_with(&run, document, "gpu forward",
                      DYNAMIC "--loss-type=sft; --micro-batch-size=2");
    for (;;) {
        ladder_decide(&run, &decision);
        assert_string_not_equal(decision.rung, "fixed-micro-batch");
        if (!decision.retry)
            break;
        ladder_apply(&run, &decision);
        oom_decision_free(&decision);
    }
    assert_string_equal(ladder_skip_why(&decision, "fixed-micro-batch"),
                        "would be refused at start: SFT requires --use-dynamic-batch-size");
    oom_decision_free(&decision);
    ladder_end(&run);
    json_decref(document);
}

/* However many rungs a checkpoint speaks against, none of them is taken, and each says so. */
static void a_checkpoint_freezes_knobs(void **state)
{
    static const char *const frozen[] = {"--recompute-granularity", "--max-tokens-per-gpu",
                                         "--optimizer-cpu-offload", NULL};
    struct ladder_run run;
    struct oom_decision decision;

    (void)state;
    ladder_begin(&run, "relax", "gpu forward", DYNAMIC);
    run.input.frozen = frozen;
    run.input.checkpoint = "/ckpt";
    for (;;) {
        ladder_decide(&run, &decision);
        if (!decision.retry)
            break;
        for (size_t i = 0; i < decision.edits.count; i++)
            for (const char *const *knob = frozen; *knob; knob++)
                assert_string_not_equal(decision.edits.items[i].knob, *knob);
        ladder_apply(&run, &decision);
        oom_decision_free(&decision);
    }
    assert_string_equal(ladder_skip_why(&decision, "full-recompute"),
                        "the checkpoint in /ckpt would not load with another "
                        "--recompute-granularity");
    oom_decision_free(&decision);
    ladder_end(&run);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int main(void)
{
    struct CMUnitTest tests[COUNT(guards) + 2];

    memset(tests, 0, sizeof(tests));
    for (size_t i = 0; i < COUNT(guards); i++) {
        tests[i].name = guards[i].name;
        tests[i].test_func = rung_is_never_taken;
        tests[i].initial_state = (void *)(uintptr_t)&guards[i];
    }
    tests[COUNT(guards)] = (struct CMUnitTest)cmocka_unit_test(rules_catch_what_guards_miss);
    tests[COUNT(guards) + 1] = (struct CMUnitTest)cmocka_unit_test(a_checkpoint_freezes_knobs);
    return cmocka_run_group_tests_name("guards", tests, NULL, NULL);
}
