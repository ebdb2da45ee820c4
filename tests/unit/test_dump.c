/* SPDX-License-Identifier: Apache-2.0
 *
 * What programs print of their own settings: shapes as frameworks have them, and hostile ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ladder_help.h"
#include "oomretry/dump.h"

static struct oom_policy *policy(const char *name)
{
    json_t *document = ladder_document(name);
    struct oom_policy *policy = oom_policy_from_json(document, name, NULL);

    assert_non_null(policy);
    json_decref(document);
    return policy;
}

/* What the log shows for a knob: NULL nothing, "" a switch that is off. */
static void shows(const char *framework, const char *log, const char *knob, const char *expected)
{
    struct oom_policy *p = policy(framework);
    struct oom_values values;

    assert_int_equal(oom_dump_values(p, log, strlen(log), &values), 0);
    const struct oom_value *v = oom_values_find(&values, knob);
    if (!expected) {
        assert_null(v);
    } else {
        assert_non_null(v);
        assert_string_equal(v->value ? v->value : "", expected);
        assert_int_equal(v->source, OOM_SOURCE_LOG);
    }
    oom_values_free(&values);
    oom_policy_free(p);
}

static const char table[] =
    "(pid=7) --micro-batch-size ........ 99\n"
    "------------------------ arguments ------------------------\n"
    "  max_tokens_per_gpu .............................. 9216\n"
    "(TrainRayActor pid=12, ip=10.0.0.1)   micro_batch_size ................................ 2\n"
    "  use_dynamic_batch_size .......................... True\n"
    "  recompute_granularity ........................... None\n"
    "  lr .............................................. 1e-06\n"
    "-------------------- end of arguments ---------------------\n"
    "  micro_batch_size ................................ 77\n";

static void tables(void **state)
{
    (void)state;
    shows("slime", table, "--max-tokens-per-gpu", "9216");
    shows("slime", table, "--micro-batch-size", "2");
    shows("slime", table, "--use-dynamic-batch-size", "true");
    shows("slime", table, "--recompute-granularity", NULL);
    shows("megatron", "0: ---- arguments ----\n0:   seq_length .......... 4096\n", "--seq-length",
          "4096");
    shows("deepspeed",
          "[INFO] DeepSpeedEngine configuration:\n"
          "[2026-02-10 08:19:04,250] [INFO] [config.py:1007:print]   "
          "train_micro_batch_size_per_gpu ............. 4\n",
          "--train_micro_batch_size_per_gpu", "4");
}

static void literals(void **state)
{
    static const char verl[] =
        "\x1b[36m(TaskRunner pid=64309)\x1b[0m {'actor_rollout_ref': {'actor': {'_target_': "
        "'a.B',\n"
        "\x1b[36m(TaskRunner pid=64309)\x1b[0m    'checkpoint': {'save': ['model', 'extra'],\n"
        "INFO a line of somebody else's, with a ' in it\n"
        "\x1b[36m(TaskRunner pid=64309)\x1b[0m                   'async_save': False},\n"
        "\x1b[36m(TaskRunner pid=64309)\x1b[0m    'ppo_max_token_len_per_gpu': 24576,\n"
        "\x1b[36m(TaskRunner pid=64309)\x1b[0m    'ppo_micro_batch_size_per_gpu': None},\n"
        "\x1b[36m(TaskRunner pid=64309)\x1b[0m  'rollout': {'gpu_memory_utilization': 0.85}},\n"
        "\x1b[36m(TaskRunner pid=64309)\x1b[0m  'data': {'train_batch_size': 256}}\n";

    (void)state;
    const char *actor = "actor_rollout_ref.actor.ppo_max_token_len_per_gpu";
    shows("verl", verl, actor, "24576");
    shows("verl", verl, "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", NULL);
    shows("verl", verl, "actor_rollout_ref.rollout.gpu_memory_utilization", "0.85");
    shows("verl", verl, "data.train_batch_size", "256");

    shows(
        "vllm",
        "INFO 08-10 [utils.py:233] non-default args: {'model_tag': 'a/b', 'max_model_len': 32768, "
        "'gpu_memory_utilization': 0.5}\n",
        "--gpu-memory-utilization", "0.5");
    shows("sglang",
          "[2026] server_args=ServerArgs(model_path='/m (1), x=2', mem_fraction_static=0.7, "
          "kv=<Kind.A: 1>, tp=[1, 2], max_running_requests=None)\n",
          "--mem-fraction-static", "0.7");
    shows("openrlhf",
          "Namespace(ds=Namespace(zero_stage=3, adam_offload=False), train=Namespace("
          "micro_batch_size=4))\n",
          "--train.micro_batch_size", "4");
    shows("openrlhf", "Namespace(zero_stage=2, adam_offload=False)\n", "--adam_offload", "");
    shows("nemo-rl",
          "Final config:\n{'policy': {'train_micro_batch_size': 4,\n            'x': 1}}\n",
          "policy.train_micro_batch_size", "4");
    shows("trl",
          "INFO Training/evaluation parameters TrainingArguments(\n_n_gpu=1,\n"
          "accelerator_config={'split_batches': False},\nper_device_train_batch_size=8,\n)\n",
          "--per_device_train_batch_size", "8");
}

static void values_that_do_not_fit(void **state)
{
    (void)state;
    shows("vllm", "non-default args: {'max_model_len': '$(reboot)'}\n", "--max-model-len", NULL);
    shows("vllm", "non-default args: {'max_model_len': 1e400}\n", "--max-model-len", NULL);
    shows("vllm", "non-default args: {'max_model_len': 99999999999999999999}\n", "--max-model-len",
          NULL);
    shows("vllm", "non-default args: {'max_model_len': 4096.5}\n", "--max-model-len", NULL);
    shows("vllm", "non-default args: {'kv_cache_dtype': 'fp8; rm -rf /'}\n", "--kv-cache-dtype",
          NULL);
    shows("vllm", "non-default args: {'max_model_len': 1", "--max-model-len", NULL);
    /* Two engines that differ say nothing about the command line. */
    shows("vllm",
          "non-default args: {'max_model_len': 4096}\nnon-default args: {'max_model_len': 8192}\n",
          "--max-model-len", NULL);
    /* Deep, long, unfinished: bounded. */
    size_t size = 600000;
    char *deep = malloc(size + 64);
    assert_non_null(deep);
    strcpy(deep, "non-default args: ");
    memset(deep + strlen(deep), '{', size);
    deep[size] = '\0';
    shows("vllm", deep, "--max-model-len", NULL);
    free(deep);
}

static int verdict(const char *framework, const char *log, const char *knob, const char *old,
                   const char *new, struct oom_error *err)
{
    struct oom_policy *p = policy(framework);
    struct oom_edits edits = {NULL, 0};

    assert_int_equal(oom_edits_add(&edits, knob, old, new, NULL), 0);
    int result = oom_dump_verify(p, log, strlen(log), &edits, err);
    oom_edits_free(&edits);
    oom_policy_free(p);
    return result;
}

static char *full_table(void)
{
    char *text = malloc(65536);
    size_t at;

    assert_non_null(text);
    strcpy(text, "---- arguments ----\n");
    at = strlen(text);
    for (int i = 0; i < 300; i++)
        at += (size_t)sprintf(text + at, "  argument_%d ............ %d\n", i, i);
    strcpy(text + at, "---- end of arguments ----\n");
    return text;
}

static void proof(void **state)
{
    struct oom_error err = {""};

    (void)state;
    assert_int_equal(verdict("slime", table, "--max-tokens-per-gpu", "18432", "9216", &err), 1);
    assert_int_equal(verdict("slime", table, "--max-tokens-per-gpu", "9216", "4608", &err), 0);
    assert_non_null(strstr(err.text, "shows 9216"));
    /* Neither old nor new: the program computed something of its own. */
    assert_int_equal(verdict("slime", table, "--max-tokens-per-gpu", "1", "2", &err), -1);
    /* slime ignores what it does not know; its table says so, when it is no excerpt. */
    assert_int_equal(verdict("slime", table, "--no-such-flag", NULL, "4", &err), -1);
    char *full = full_table();
    assert_int_equal(verdict("slime", full, "--no-such-flag", NULL, "4", &err), 0);
    assert_non_null(strstr(err.text, "ignores"));
    assert_int_equal(verdict("slime", full, "--recompute-activations", NULL, "true", &err), -1);
    assert_int_equal(verdict("megatron", full, "--no-such-flag", NULL, "4", &err), -1);
    free(full);
    assert_int_equal(verdict("megatron", table, "--num-workers", NULL, "4", &err), -1);
    assert_int_equal(verdict("slime", table, "--use-dynamic-batch-size", "true", NULL, &err), 0);
    assert_int_equal(verdict("slime", table, "env:A", NULL, "4", &err), -1);
    assert_int_equal(verdict("slime", "nothing\n", "--max-tokens-per-gpu", "1", "2", &err), -1);
    assert_int_equal(verdict("vllm",
                             "non-default args: {'max_model_len': 8192}\n"
                             "non-default args: {'max_model_len': 4096}\n",
                             "--max-model-len", "8192", "4096", &err),
                     1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables),
        cmocka_unit_test(literals),
        cmocka_unit_test(values_that_do_not_fit),
        cmocka_unit_test(proof),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
