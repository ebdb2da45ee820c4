/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of rewriting; what it does to scripts is tested by running them (tests/rewrite). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "oomretry/rewrite.h"

static const char *const no_environment[] = {NULL};

static struct oom_policy *policy_of(const char *text)
{
    json_error_t why;
    struct oom_error err = {""};
    json_t *json = json_loads(text, 0, &why);

    assert_non_null(json);
    struct oom_policy *policy = oom_policy_from_json(json, "test", &err);
    if (!policy)
        fail_msg("%s", err.text);
    json_decref(json);
    return policy;
}

static struct oom_policy *flags(void)
{
    return policy_of(
        "{\"name\": \"t\", \"title\": \"t\", \"family\": \"argparse\","
        "\"recognise\": {\"programs\": [\"train.py\"]},"
        "\"knobs\": {\"--tokens\": {\"type\": \"int\"}, \"--fast\": {\"type\": \"switch\"},"
        "\"--size\": {\"type\": \"int\", \"default\": 3}},"
        "\"rungs\": {}, \"ladders\": {}}");
}

static struct oom_policy *keys(void)
{
    return policy_of("{\"name\": \"t\", \"title\": \"t\", \"family\": \"hydra\","
                     "\"recognise\": {\"programs\": [\"pkg.main\"]},"
                     "\"knobs\": {\"a.b\": {\"type\": \"int\"}}, \"rungs\": {}, \"ladders\": {}}");
}

static struct oom_script *script_of(const char *text, const char *const *environment,
                                    const char *const *args)
{
    struct oom_script_source source = {.bytes = text,
                                       .length = strlen(text),
                                       .name = "script",
                                       .args = args,
                                       .environ_list = environment};
    struct oom_error err = {""};
    struct oom_script *script = oom_script_parse(&source, &err);

    if (!script)
        fail_msg("%s", err.text);
    return script;
}

/* The script with one knob set (NULL: taken away). */
static char *with(const struct oom_policy *policy, const char *text, const char *const *environment,
                  const char *knob, const char *value)
{
    struct oom_edits edits = {0};
    struct oom_rewrite out;
    struct oom_error err = {""};
    struct oom_script *script = script_of(text, environment, NULL);

    oom_edits_add(&edits, knob, NULL, value, NULL);
    if (oom_script_apply(script, policy, &edits, &out, &err) != 0)
        fail_msg("%s", err.text);
    char *bytes = strdup(out.bytes);
    oom_rewrite_free(&out);
    oom_edits_free(&edits);
    oom_script_free(script);
    return bytes;
}

static void expect(const struct oom_policy *policy, const char *text, const char *knob,
                   const char *value, const char *result)
{
    char *bytes = with(policy, text, NULL, knob, value);

    assert_string_equal(bytes, result);
    free(bytes);
}

static void test_places(void **state)
{
    struct oom_policy *policy = flags();

    (void)state;
    expect(policy, "python train.py --tokens 8\n", "--tokens", "4", "python train.py --tokens 4\n");
    expect(policy, "python train.py --tokens=8\n", "--tokens", "4", "python train.py --tokens=4\n");
    expect(policy, "A=(--tokens 8)\npython train.py \"${A[@]}\" | tee x", "--tokens", "4",
           "A=(--tokens 4)\npython train.py \"${A[@]}\" | tee x");
    expect(policy, "T=8\npython train.py --tokens $T\n", "--tokens", "4",
           "T=4\npython train.py --tokens $T\n");
    expect(policy, "T=8\npython train.py --tokens $T --save $T\n", "--tokens", "4",
           "T=8\npython train.py --tokens 4 --save $T\n");
    expect(policy, "python train.py --x 1 > log 2>&1\n", "--tokens", "4",
           "python train.py --x 1 --tokens 4 > log 2>&1\n");
    expect(policy, "python train.py --fast --x 1\n", "--fast", NULL, "python train.py --x 1\n");
    expect(policy, "python train.py \\\n  --x 1 \\\n  --fast\n", "--fast", NULL,
           "python train.py \\\n  --x 1\n");
    expect(policy, "python train.py --x 1\n", "--fast", "true", "python train.py --x 1 --fast\n");
    expect(policy, "bash -c \"python train.py --tokens 8 --n \\\"a b\\\"\"\n", "--n", "c\"d",
           "bash -c \"python train.py --tokens 8 --n \\\"c\\\\\\\"d\\\"\"\n");
    oom_policy_free(policy);
}

static void test_what_may_win_later_is_outrun(void **state)
{
    struct oom_policy *policy = flags();

    (void)state;
    expect(policy, "python train.py --tokens 8 \"$@\"\n", "--tokens", "4",
           "python train.py --tokens 8 \"$@\" --tokens 4\n");
    expect(policy, "python train.py --tokens 8 $EXTRA_ARGS\n", "--tokens", "4",
           "python train.py --tokens 8 $EXTRA_ARGS --tokens 4\n");
    expect(policy, "python train.py --tokens ${T:-8}\n", "--tokens", "4",
           "python train.py --tokens 4\n");
    /* Where the environment is known, what it does not hold cannot win. */
    char *bytes = with(policy, "python train.py --tokens ${T:-8} $EXTRA_ARGS\n", no_environment,
                       "--tokens", "4");
    assert_string_equal(bytes, "python train.py --tokens ${T:-4} $EXTRA_ARGS\n");
    free(bytes);
    oom_policy_free(policy);
}

static void test_hydra(void **state)
{
    struct oom_policy *policy = keys();

    (void)state;
    expect(policy, "python -m pkg.main a.b=8 c=1 2>&1 | tee x\n", "a.b", "4",
           "python -m pkg.main a.b=4 c=1 2>&1 | tee x\n");
    expect(policy, "python -m pkg.main c=1 2>&1 | tee x\n", "a.b", "4",
           "python -m pkg.main c=1 ++a.b=4 2>&1 | tee x\n");
    oom_policy_free(policy);
}

static void test_edits_tell_where(void **state)
{
    static const char text[] = "#!/bin/bash\n#SBATCH --mem=100G\nA=(\n --tokens 8\n)\n"
                               "python train.py ${A[@]}\n";
    struct oom_policy *policy = flags();
    struct oom_script *script = script_of(text, NULL, NULL);
    struct oom_edits edits = {0};
    struct oom_rewrite out;
    struct oom_error err = {""};

    (void)state;
    oom_edits_add(&edits, "--tokens", NULL, "4", NULL);
    oom_edits_add(&edits, "slurm:mem", NULL, "2048", NULL);
    assert_int_equal(oom_script_apply(script, policy, &edits, &out, &err), 0);
    assert_int_equal(out.edits.count, 2);
    assert_string_equal(out.edits.items[0].old_value, "8");
    assert_string_equal(out.edits.items[0].where, "script:4");
    assert_string_equal(out.edits.items[1].old_value, "100G");
    assert_string_equal(out.edits.items[1].where, "script:2");
    assert_non_null(strstr(out.bytes, "#SBATCH --mem=2048M\n"));
    assert_false(out.needs_exec);
    oom_rewrite_free(&out);
    oom_edits_free(&edits);
    oom_script_free(script);
    oom_policy_free(policy);
}

static int side_file(void *arg, const char *path, char **bytes, size_t *length)
{
    (void)arg;
    if (strcmp(path, "args.sh") != 0)
        return -1;
    *bytes = strdup("T=16\nA=(--tokens $T --fast)\n");
    *length = strlen(*bytes);
    return 0;
}

static void test_values(void **state)
{
    static const char text[] = "source args.sh\npython train.py \"${A[@]}\"\n";
    struct oom_policy *policy = flags();
    struct oom_script_source source = {
        .bytes = text, .length = strlen(text), .name = "script", .read_side = side_file};
    struct oom_script *script = oom_script_parse(&source, NULL);
    struct oom_values values;

    (void)state;
    assert_int_equal(oom_script_values(script, policy, &values, NULL), 0);
    assert_string_equal(oom_values_get(&values, "--tokens"), "16");
    assert_string_equal(oom_values_find(&values, "--tokens")->where, "args.sh:1");
    assert_string_equal(oom_values_get(&values, "--fast"), "true");
    assert_string_equal(oom_values_get(&values, "--size"), "3");
    assert_int_equal(oom_values_find(&values, "--size")->source, OOM_SOURCE_DEFAULT);
    oom_values_free(&values);
    oom_script_free(script);
    oom_policy_free(policy);
}

static void test_argument_vector(void **state)
{
    const char *const argv[] = {"python3", "train.py", "--name", "it's a b", "--tokens", "8", NULL};
    struct oom_policy *policy = flags();
    struct oom_script_source source = {.name = "command", .environ_list = no_environment};
    struct oom_script *script = oom_script_from_argv(argv, &source, NULL);
    struct oom_edits edits = {0};
    struct oom_rewrite out;

    (void)state;
    assert_non_null(script);
    oom_edits_add(&edits, "--tokens", "8", "4", NULL);
    oom_edits_add(&edits, "--fast", NULL, "true", NULL);
    assert_int_equal(oom_script_apply(script, policy, &edits, &out, NULL), 0);
    assert_string_equal(out.argv[3], "it's a b");
    assert_string_equal(out.argv[5], "4");
    assert_string_equal(out.argv[6], "--fast");
    assert_null(out.argv[7]);
    assert_int_equal(oom_argv_verify(policy, (const char *const *)out.argv, &edits, NULL), 1);
    struct oom_error err = {""};
    assert_int_equal(oom_argv_verify(policy, argv, &edits, &err), 0);
    assert_non_null(strstr(err.text, "--tokens"));
    const char *const other[] = {"sleep", "8", NULL};
    assert_int_equal(oom_argv_verify(policy, other, &edits, NULL), -1);
    oom_rewrite_free(&out);
    oom_edits_free(&edits);
    oom_script_free(script);
    oom_policy_free(policy);
}

static void test_out_of_sight(void **state)
{
    struct oom_policy *policy = flags();
    struct oom_script *script = script_of("bash run/it.sh\n", NULL, NULL);
    struct oom_edits edits = {0};
    struct oom_rewrite out;

    (void)state;
    oom_edits_add(&edits, "--tokens", "8", "4", NULL);
    assert_int_equal(oom_script_apply(script, policy, &edits, &out, NULL), 0);
    assert_true(out.needs_exec);
    assert_int_equal(out.exec_edits.count, 1);
    assert_string_equal(out.bytes, "bash run/it.sh\n");
    oom_rewrite_free(&out);
    oom_edits_free(&edits);
    oom_script_free(script);
    oom_policy_free(policy);
}

/* What is to go and is not in sight may come through words that nobody knows. */
static void test_removal_behind_unknown_words(void **state)
{
    static const struct {
        const char *text;
        size_t at_exec;
    } cases[] = {
        {"torchrun train.py --tokens 8 $(python flags.py)\n", 1},
        {"torchrun train.py --tokens 8 \"$@\"\n", 1},
        {"torchrun train.py --tokens 8 $(echo --bf16)\n", 0},
        {"torchrun train.py --tokens 8\n", 0},
    };
    struct oom_policy *policy = flags();

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oom_script *script = script_of(cases[i].text, NULL, NULL);
        struct oom_edits edits = {0};
        struct oom_rewrite out;
        oom_edits_add(&edits, "--use-flash-attn", NULL, NULL, NULL);
        assert_int_equal(oom_script_apply(script, policy, &edits, &out, NULL), 0);
        assert_string_equal(out.bytes, cases[i].text);
        assert_int_equal(out.exec_edits.count, cases[i].at_exec);
        assert_true(out.needs_exec == (cases[i].at_exec > 0));
        oom_rewrite_free(&out);
        oom_edits_free(&edits);
        oom_script_free(script);
    }
    oom_policy_free(policy);
}

static void test_logs_and_status(void **state)
{
    static const struct {
        const char *text;
        bool masked;
    } cases[] = {
        {"python train.py --x\n", false},
        {"python train.py --x | tee a.log\n", true},
        {"set -o pipefail\npython train.py --x | tee a.log\n", false},
        {"python train.py | tee a.log\nexit ${PIPESTATUS[0]}\n", false},
        {"python train.py &\nwait\n", true},
        {"python train.py &\nwait $!\n", false},
        {"python train.py\necho done\n", true},
        {"set -e\npython train.py\necho done\n", false},
        {"python train.py || exit 1\necho done\n", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oom_script *script = script_of(cases[i].text, NULL, NULL);
        if (oom_script_masks_status(script) != cases[i].masked)
            fail_msg("%s", cases[i].text);
        oom_script_free(script);
    }
    struct oom_script *script =
        script_of("D=logs\npython train.py > $D/a.log 2>&1\npython train.py | tee -a b.log\n"
                  "echo x > c.log\n",
                  NULL, NULL);
    char **paths = oom_script_log_paths(script);
    assert_string_equal(paths[0], "logs/a.log");
    assert_string_equal(paths[1], "b.log");
    assert_null(paths[2]);
    oom_script_log_paths_free(paths);
    oom_script_free(script);
}

static void test_refusals(void **state)
{
    static const char *const bad[] = {"if true; then\n", "echo 'x\n", "A=(1\n", "echo $(\n", NULL};
    struct oom_error err = {""};

    (void)state;
    for (size_t i = 0; bad[i]; i++) {
        struct oom_script_source source = {
            .bytes = bad[i], .length = strlen(bad[i]), .name = "script"};
        assert_null(oom_script_parse(&source, &err));
        assert_non_null(strstr(err.text, "script:1:"));
    }
    struct oom_script_source source = {.bytes = "a\0b", .length = 3, .name = "script"};
    assert_null(oom_script_parse(&source, &err));
    assert_non_null(strstr(err.text, "NUL"));
}

/* A script that would take for ever, or all memory, is given up, not followed. */
static void test_bombs(void **state)
{
    struct oom_policy *policy = flags();
    struct oom_values values;
    char text[4096] = "A=xxxxxxxxxxxxxxxx\n";

    (void)state;
    for (int i = 0; i < 60; i++)
        strcat(text, "A=$A$A$A$A\n");
    strcat(text, "f() { f; f; }\nf\npython train.py $A --tokens 1\n");
    struct oom_script *script = script_of(text, NULL, NULL);
    struct oom_error err = {""};
    assert_int_equal(oom_script_values(script, policy, &values, &err), -1);
    assert_non_null(strstr(err.text, "too large"));
    oom_script_free(script);
    oom_policy_free(policy);
}

/* Whatever is asked for is the same file, which runs as many others as it can name. */
static int many_files(void *arg, const char *path, char **bytes, size_t *length)
{
    (void)path;
    *bytes = strdup(arg);
    *length = strlen(arg);
    return *bytes ? 0 : -1;
}

/* Files that run each other multiply: they are given up too, and the reason is told. */
static void test_many_files(void **state)
{
    static const char *const ways[] = {".", "bash"};
    struct oom_policy *policy = flags();
    struct oom_edits edits = {0};

    (void)state;
    oom_edits_add(&edits, "--tokens", NULL, "4", NULL);
    for (size_t w = 0; w < 2; w++) {
        for (int files = 6; files <= 384; files *= 4) {
            struct oom_error err = {""};
            struct oom_rewrite out;
            char text[8192] = "", inner[8192] = "";
            for (int i = 0; i < files; i++) {
                snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s a%d.sh\n", ways[w],
                         i);
                if (files < 384)
                    snprintf(inner + strlen(inner), sizeof(inner) - strlen(inner), "%s a%d.sh\n",
                             ways[w], i);
            }
            strcat(text, "python train.py --tokens 8\n");
            struct oom_script_source source = {.bytes = text,
                                               .length = strlen(text),
                                               .name = "script",
                                               .read_side = many_files,
                                               .read_side_arg = inner};
            struct oom_script *script = oom_script_parse(&source, &err);
            assert_non_null(script);
            int rc = oom_script_apply(script, policy, &edits, &out, &err);
            if (files < 20) {
                assert_int_equal(rc, 0);
                oom_rewrite_free(&out);
            } else {
                assert_int_equal(rc, -1);
                assert_non_null(strstr(err.text, files < 64 ? "too often" : "more than 64 files"));
            }
            oom_script_free(script);
        }
    }
    oom_edits_free(&edits);
    oom_policy_free(policy);
}

/* --- whose "train.py --config x.yaml" it is --------------------------------------------------- */

static int read_text(void *arg, const char *path, char **bytes, size_t *length)
{
    if (strcmp(path, "x.yaml") != 0 || !arg)
        return -1;
    *bytes = strdup(arg);
    *length = strlen(*bytes);
    return 0;
}

static void a_configuration_tells_whose_it_is(void **state)
{
    static const struct {
        const char *config, *command;
        bool ours;
    } cases[] = {
        {"a:\n  b: 3\n", "python3 train.py --config x.yaml\n", true},
        {"c:\n  b: 3\n", "python3 train.py --config x.yaml\n", false},
        {"c:\n  b: 3\n", "python3 train.py --config x.yaml a.b=4\n", true},
        {"c:\n  b: 3\n", "python3 train.py --config y.yaml\n", true}, /* out of sight */
        {NULL, "python3 train.py --config x.yaml\n", true},
        {"c: [", "python3 train.py --config x.yaml\n", true}, /* a template */
        {"a:\n  b: 3\n", "python3 other.py --config x.yaml\n", false},
    };
    struct oom_policy *policy = policy_of(
        "{\"name\": \"t\", \"title\": \"t\", \"family\": \"hydra\", \"config\": {\"flags\": "
        "[\"--config\"]},"
        "\"recognise\": {\"programs\": [\"train.py\"], \"with_setting\": [\"a.z\", \"a.b\"]},"
        "\"knobs\": {\"a.b\": {\"type\": \"int\"}}, \"rungs\": {}, \"ladders\": {}}");

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oom_script_source source = {.bytes = cases[i].command,
                                           .length = strlen(cases[i].command),
                                           .name = "script",
                                           .read_side = read_text,
                                           .read_side_arg = (void *)(uintptr_t)cases[i].config};
        struct oom_script *script = oom_script_parse(&source, NULL);
        assert_non_null(script);
        int index = oom_script_recognise(script, (const struct oom_policy *const *)&policy, 1);
        if ((index == 0) != cases[i].ours)
            fail_msg("case %zu: %s", i, cases[i].command);
        oom_script_free(script);
    }
    oom_policy_free(policy);
}

static void a_policy_that_takes_anything_adds_no_flag(void **state)
{
    static const struct {
        const char *knob, *text, *result; /* NULL: refused */
    } cases[] = {
        {"--size", "mkdir out\ncp a b\npython3 run.py --size 8\n",
         "mkdir out\ncp a b\npython3 run.py --size 4\n"},
        {"--size", "mkdir out\nmake train\n", NULL},
        {"--size", "python3 run.py\n", NULL},
        {"--size", "python3 run.py --size 8\npython3 eval.py --size 2\n",
         "python3 run.py --size 4\npython3 eval.py --size 2\n"},
        {"env:X", "mkdir out\npip install y\npython3 run.py\n",
         "mkdir out\npip install y\nX=4 python3 run.py\n"},
        {"env:X", "mkdir out\nmake train\n", "mkdir out\nX=4 make train\n"},
        {"env:X", "nvidia-smi\n", NULL},
    };
    struct oom_policy *policy =
        policy_of("{\"name\": \"t\", \"title\": \"t\", \"family\": \"argparse\","
                  "\"recognise\": {\"programs\": [\"*.py\", \"*\"]},"
                  "\"knobs\": {\"--size\": {\"type\": \"int\"}}, \"rungs\": {}, \"ladders\": {}}");

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oom_edits edits = {0};
        struct oom_rewrite out;
        struct oom_error err = {""};
        struct oom_script *script = script_of(cases[i].text, NULL, NULL);
        oom_edits_add(&edits, cases[i].knob, NULL, "4", NULL);
        int rc = oom_script_apply(script, policy, &edits, &out, &err);
        if ((rc == 0) != (cases[i].result != NULL))
            fail_msg("case %zu: %s", i, rc == 0 ? out.bytes : err.text);
        if (rc == 0)
            assert_string_equal(out.bytes, cases[i].result);
        if (rc == 0)
            oom_rewrite_free(&out);
        oom_edits_free(&edits);
        oom_script_free(script);
    }
    oom_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_what_may_win_later_is_outrun),
        cmocka_unit_test(test_hydra),
        cmocka_unit_test(test_edits_tell_where),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_argument_vector),
        cmocka_unit_test(test_out_of_sight),
        cmocka_unit_test(test_removal_behind_unknown_words),
        cmocka_unit_test(test_logs_and_status),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_many_files),
        cmocka_unit_test(a_configuration_tells_whose_it_is),
        cmocka_unit_test(a_policy_that_takes_anything_adds_no_flag),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
