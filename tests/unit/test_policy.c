/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "oomretry/policy.h"
#include "tests/unit/ladder_help.h"

static const char small[] =
    "{'name':'toy','title':'Toy','family':'argparse',"
    "'knobs':{'--tokens':{'type':'int','floor':'ceil(context / 2)','default':4096},"
    "         '--context':{'type':'int'},'--fast':{'type':'switch','aliases':['--quick']}},"
    "'rules':[{'require':'tokens > 0','why':'no tokens'}],"
    "'rungs':{'fewer-tokens':{'kind':'tokens','about':'fewer tokens','scale':0.5,"
    "  'guards':[{'require':'set(fast)','why':'slow'}],"
    "  'edits':[{'knob':'--tokens','to':'tokens * scale','move':'lower'}]}},"
    "'ladders':{'gpu':{'forward':['fewer-tokens'],'backward':'forward'}}}";

/* The small policy with `from` in its text made `to`; apostrophes are quotes. */
static struct oom_policy *parse(const char *from, const char *to, struct oom_error *err)
{
    char text[4000];
    const char *at = from ? strstr(small, from) : NULL;

    if (from && !at)
        fail_msg("the test's own text lost \"%s\"", from);
    if (at)
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - small), small, to, at + strlen(from));
    else
        snprintf(text, sizeof(text), "%s", small);
    for (char *c = text; *c; c++)
        if (*c == '\'')
            *c = '"';
    json_t *document = json_loads(text, 0, NULL);
    assert_non_null(document);
    struct oom_policy *policy = oom_policy_from_json(document, "toy.json", err);
    json_decref(document);
    return policy;
}

static void a_good_one_parses(void **state)
{
    struct oom_error err = {""};
    struct oom_policy *policy = parse(NULL, NULL, &err);

    (void)state;
    if (!policy)
        fail_msg("%s", err.text);
    assert_string_equal(oom_policy_name(policy), "toy");
    assert_int_equal(oom_policy_family(policy), OOM_FAMILY_ARGPARSE);
    assert_int_equal(oom_policy_version(policy), 0);
    assert_int_equal(oom_policy_knob_count(policy), 3);
    assert_string_equal(oom_policy_knob(policy, "--tokens")->default_value, "4096");
    assert_string_equal(oom_policy_knob(policy, "--quick")->name, "--fast");
    assert_null(oom_policy_knob(policy, "--to_kens"));
    assert_null(oom_policy_knob(policy, "tokens"));
    oom_policy_free(policy);
}

static void errors_say_where_and_what(void **state)
{
    static const struct {
        const char *from, *to, *says;
    } rows[] = {
        {"'title'", "'titel'", "toy.json: unknown key \"titel\" (did you mean \"title\"?)"},
        {"'family':'argparse'", "'family':'argprase'", "family: must be argparse"},
        {"'type':'switch'", "'type':'swich'",
         "knobs.--fast: unknown type \"swich\" (did you mean \"switch\"?)"},
        {"ceil(context / 2)", "ceil(contxt / 2)",
         "knobs.--tokens.floor: column 6 of \"ceil(contxt / 2)\": \"contxt\" is no knob and no "
         "fact "
         "(did you mean \"context\"?)"},
        {"ceil(context / 2)", "ceil(context / )", "knobs.--tokens.floor: column 16"},
        {"'default':4096", "'default':[1]", "knobs.--tokens.default: must be text, a number"},
        {"'kind':'tokens'", "'kind':'token'",
         "rungs.fewer-tokens: unknown kind \"token\" (did you mean \"tokens\"?)"},
        {"'scale':0.5", "'scale':2", "rungs.fewer-tokens.scale: must be a number between 0 and 1"},
        {"'scale':0.5", "'cost':0.1", "cost: needs \"cost_source\""},
        {"'about':'fewer tokens'", "'moves_to':'host'", "rungs.fewer-tokens.about: is missing"},
        {"'knob':'--tokens'", "'knob':'--token'",
         "rungs.fewer-tokens.edits[0]: unknown knob \"--token\" (did you mean \"--tokens\"?)"},
        {"'move':'lower'", "'set':1", "needs exactly one of \"set\", \"to\" and \"unset\""},
        {"'move':'lower'", "'move':'down'", "move: must be \"lower\" or \"raise\""},
        {"set(fast)", "set(fsat)", "rungs.fewer-tokens.guards[0].require: column 5"},
        {"'why':'slow'", "'wy':'slow'", "guards[0]: unknown key \"wy\" (did you mean \"why\"?)"},
        {"['fewer-tokens']", "['fewer-token']",
         "ladders.gpu.forward[0]: unknown rung \"fewer-token\" (did you mean \"fewer-tokens\"?)"},
        {"['fewer-tokens']", "[{'rung':'fewer-tokens','scale':'x'}]",
         "ladders.gpu.forward[0].scale: must be a number"},
        {"'backward':'forward'", "'backward':'init'", "names a phase that has no ladder here"},
        {"'backward':'forward'", "'backwards':[]", "ladders.gpu.backwards: is not a phase"},
        {"'gpu'", "'gpus'", "ladders.gpus: is not a domain"},
        {"'edits':[{'knob':'--tokens','to':'tokens * scale','move':'lower'}]", "'edits':[]",
         "a rung must change something"},
        {"tokens > 0", "tokens >", "rules[0].require: column 9"},
        {"'rules'", "'let':{'tokens':'1'},'rules'", "let.tokens: is the name of a knob"},
        {"'rules'", "'let':{'x':'y','y':'x'},'rules'", "let.x: column 1"},
        {"'rules'", "'captures':{'message.n':'(['},'rules'", "captures.message.n: column"},
        {"'rules'", "'captures':{'message.n':'none'},'rules'", "must have one group"},
        {"'rules'", "'resume':{'directory':'--token','complete':'done'},'rules'",
         "resume: unknown knob \"--token\""},
        {"'rules'", "'resume':{'directory':'--tokens','complete':'a/../../b'},'rules'",
         "complete: must be a path inside the directory"},
        {"'rules'", "'resume':{'directory':'--tokens','complete':'a{--tokens'},'rules'",
         "\"}\" ends it"},
        {"'rules'", "'resume':{'directory':'--tokens','complete':'a{x}'},'rules'",
         "resume: unknown knob \"x\""},
        {"'rules'", "'resume':{'directory':'--tokens','complete':'a','set':{'--tokens':1}},'rules'",
         "set: values are texts"},
        {"'rules'", "'own_restarts':{'end_at':-1},'rules'", "own_restarts: end_at"},
        {"'rules'", "'own_restarts':{'knob':'--tokens'},'rules'", "knob and off belong together"},
        {"'rules'", "'own_restarts':{'turn_off':true},'rules'", "needs the knob"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct oom_error err = {""};
        struct oom_policy *policy = parse(rows[i].from, rows[i].to, &err);
        if (policy)
            fail_msg("accepted: %s", rows[i].to);
        if (!strstr(err.text, rows[i].says))
            fail_msg("\"%s\" does not say \"%s\"", err.text, rows[i].says);
    }
}

static void dash_and_underscore_are_alike_where_the_parser_says_so(void **state)
{
    json_t *document = ladder_document("trl");
    struct oom_policy *policy = oom_policy_from_json(document, "trl", NULL);

    (void)state;
    assert_non_null(oom_policy_knob(policy, "--per-device-train-batch-size"));
    assert_null(oom_policy_knob(policy, "per_device_train_batch_size"));
    oom_policy_free(policy);
    json_decref(document);

    document = ladder_document("llamafactory");
    policy = oom_policy_from_json(document, "llamafactory", NULL);
    assert_string_equal(oom_policy_knob(policy, "--per_device_train_batch_size")->name,
                        "per_device_train_batch_size");
    oom_policy_free(policy);
    json_decref(document);
}

/* Which shipped policy takes a command: the first by order that recognises it. */
static void recognises(const char *program, const char *const *args, const char *expected)
{
    static const char *const names[] = {"areal",    "axolotl", "deepspeed",  "llamafactory",
                                        "megatron", "nemo-rl", "openrlhf",   "relax",
                                        "sglang",   "slime",   "torchtitan", "trl",
                                        "verl",     "vllm",    "pytorch"};
    const char *best = "none";
    int best_order = 1000000;
    size_t count = 0;

    while (args && args[count])
        count++;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        json_t *document = ladder_document(names[i]);
        struct oom_policy *policy = oom_policy_from_json(document, names[i], NULL);
        assert_non_null(policy);
        if (oom_policy_recognises(policy, program, args, count) &&
            oom_policy_order(policy) < best_order) {
            best = names[i];
            best_order = oom_policy_order(policy);
        }
        oom_policy_free(policy);
        json_decref(document);
    }
    if (strcmp(best, expected) != 0)
        fail_msg("%s is taken for %s, not %s", program, best, expected);
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void programs_are_recognised(void **state)
{
    (void)state;
    recognises("relax.entrypoints.train", ARGS("--rollout-batch-size", "32"), "relax");
    recognises("relax/entrypoints/train.py", NULL, "relax");
    recognises("train.py", ARGS("--actor-num-nodes", "1", "--rollout-batch-size=32"), "slime");
    recognises("pretrain_gpt.py", ARGS("--micro-batch-size", "1"), "megatron");
    recognises("examples/math/gsm8k_rl.py", ARGS("--config", "g.yaml", "actor.backend=fsdp:d8"),
               "areal");
    recognises("verl.trainer.main_ppo", ARGS("data.train_batch_size=8"), "verl");
    recognises("examples/run_grpo.py", ARGS("--config", "x.yaml"), "nemo-rl");
    recognises("openrlhf.cli.train_ppo_ray", NULL, "openrlhf");
    recognises("llamafactory-cli train", ARGS("x.yaml"), "llamafactory");
    recognises("axolotl train", ARGS("x.yaml"), "axolotl");
    recognises("torchtitan.train", ARGS("--module", "llama3"), "torchtitan");
    recognises("vllm serve", ARGS("m"), "vllm");
    recognises("trl vllm-serve", ARGS("--model", "m"), "vllm");
    recognises("sglang.launch_server", ARGS("--model-path", "m"), "sglang");
    recognises("trl sft", ARGS("--config", "x.yaml"), "trl");
    recognises("examples/scripts/grpo.py", ARGS("--per_device_train_batch_size", "1"), "trl");
    recognises("train_ds.py", ARGS("--deepspeed", "ds.json"), "deepspeed");
    recognises("main.py", ARGS("--batch-size", "1"), "pytorch");
    recognises("setup.py", ARGS("install"), "none");
}

/* Every phase of every domain leads somewhere, and each file is named after its policy. */
static void shipped_policies_are_complete(void **state)
{
    static const char *const phases[] = {"init",       "generation", "forward",     "backward",
                                         "optimizer",  "log_probs",  "weight_sync", "collective",
                                         "checkpoint", "data",       "eval",        "unknown"};
    DIR *dir = opendir("policies/frameworks");
    struct dirent *entry;
    int count = 0;

    (void)state;
    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        char name[64];
        if (sscanf(entry->d_name, "%63[^.].json", name) != 1 || entry->d_name[0] == '.')
            continue;
        struct ladder_run run;
        ladder_begin(&run, name, "gpu unknown", "");
        assert_string_equal(oom_policy_name(run.policies[0]), name);
        count++;
        const json_t *ladders = json_object_get(oom_policy_json(run.policies[0]), "ladders");
        const json_t *gpu = json_object_get(ladders, "gpu");
        for (size_t i = 0; strcmp(name, "host") != 0 && i < sizeof(phases) / sizeof(phases[0]); i++)
            if (!json_object_get(gpu, phases[i]) && !json_object_get(gpu, "any") &&
                !json_object_get(gpu, "unknown"))
                fail_msg("%s has no ladder for gpu %s", name, phases[i]);
        if (!json_object_get(ladders, "host"))
            fail_msg("%s has no ladder for host", name);
        ladder_end(&run);
    }
    closedir(dir);
    assert_int_equal(count, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_one_parses),
        cmocka_unit_test(errors_say_where_and_what),
        cmocka_unit_test(dash_and_underscore_are_alike_where_the_parser_says_so),
        cmocka_unit_test(programs_are_recognised),
        cmocka_unit_test(shipped_policies_are_complete),
    };
    return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
