/* SPDX-License-Identifier: Apache-2.0
 *
 * What slurmrestd is told, in each family of versions, and what its answers mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lib/jsonget.h"
#include "agent/sched/slurm_rest.h"

static json_t *body_of(int version, const char *script, const char *const *options,
                       const char *const *args, struct oom_error *err)
{
    static const char environment[] = "PATH=/bin\0A=b=c\0EMPTY=\0nonsense";
    struct sched_submission submission = {
        .options = options, .args = args, .directory = "/home/a b", .hold = true};
    struct slurm_rest_job job = {.script = script,
                                 .script_length = strlen(script),
                                 .environment = environment,
                                 .environment_length = sizeof(environment),
                                 .submission = &submission};

    return slurm_rest_body(version, &job, err);
}

static void check(int version, const char *script, const char *const *options,
                  const char *const *args, const char *expected)
{
    struct oom_error err = {""};
    json_t *body = body_of(version, script, options, args, &err);
    json_t *wanted = json_loads(expected, 0, NULL);

    assert_non_null(wanted);
    if (!body)
        fail_msg("v0.0.%d: %s", version, err.text);
    assert_string_equal(json_get_string(body, "script", ""), script);
    if (!json_equal(json_object_get(body, "job"), wanted)) {
        char *text = json_dumps(body, JSON_SORT_KEYS);
        fail_msg("v0.0.%d: %s\nwanted %s", version, text, expected);
    }
    json_decref(body);
    json_decref(wanted);
}

static const char *const OPTIONS[] = {"--job-name=x, \"y\"",
                                      "--account=lab",
                                      "--partition=a,b",
                                      "--qos=high",
                                      "--time=1-02:03:04",
                                      "--cpus-per-task=2",
                                      "--ntasks=4",
                                      "--nodes=2",
                                      "--gres=gpu:a100:2,shard:1",
                                      "--mem=1.5G",
                                      "--mail-type=BEGIN,END",
                                      "--no-requeue",
                                      "--comment=mine oomretry:L1.2",
                                      "--open-mode=append",
                                      "--output=/o/%j",
                                      "--oom-retry=auto",
                                      "--oom-max-retries=3",
                                      NULL};

static void members_of_each_family(void **state)
{
    (void)state;
#define COMMON                                                                                     \
    "\"name\": \"x, \\\"y\\\"\", \"account\": \"lab\", \"partition\": \"a,b\", \"qos\": \"high\"," \
    "\"time_limit\": 1564, \"cpus_per_task\": 2, \"tasks\": 4, \"nodes\": \"2\","                  \
    "\"memory_per_node\": 1536, \"comment\": \"mine oomretry:L1.2\","                              \
    "\"standard_output\": \"/o/%j\", \"current_working_directory\": \"/home/a b\","
    check(38, "#!/bin/sh\ntrue\n", OPTIONS, NULL,
          "{" COMMON "\"gres\": \"gpu:a100:2,shard:1\", \"mail_type\": \"BEGIN,END\","
          "\"no_requeue\": true, \"open_mode\": \"append\", \"hold\": true,"
          "\"environment\": {\"PATH\": \"/bin\", \"A\": \"b=c\", \"EMPTY\": \"\","
          "\"_SLURM_SPANK_OPTION_oomretry_oom_retry\": \"auto\","
          "\"_SLURM_SPANK_OPTION_oomretry_oom_max_retries\": \"3\"}}");
    const char *later = "{" COMMON "\"tres_per_node\": \"gres/gpu:a100:2,gres/shard:1\","
                        "\"mail_type\": [\"BEGIN\", \"END\"], \"requeue\": false,"
                        "\"open_mode\": [\"APPEND\"], \"priority\": 0,"
                        "\"argv\": [\"x, \\\"y\\\"\", \"one\", \"t w o\"],"
                        "\"environment\": [\"PATH=/bin\", \"A=b=c\", \"EMPTY=\","
                        "\"_SLURM_SPANK_OPTION_oomretry_oom_retry=auto\","
                        "\"_SLURM_SPANK_OPTION_oomretry_oom_max_retries=3\"]}";
    const char *const args[] = {"one", "t w o", NULL};
    check(39, "#!/bin/sh\ntrue\n", OPTIONS, args, later);
    check(40, "#!/bin/sh\ntrue\n", OPTIONS, args, later);
    check(44, "#!/bin/sh\ntrue\n", OPTIONS, args, later);
#undef COMMON
}

/* Lines before the first command count, the last of two wins, given options win over the script's,
 * also over others that set the same. */
static void lines_of_the_script(void **state)
{
    static const char script[] = "#!/bin/bash\n"
                                 "#SBATCH -J 'a b' -N2 --ntasks-per-node 8 # --mem=9G\n"
                                 "#SBATCH --mem-per-cpu=2G --requeue --oom-retry --export ALL\n"
                                 "# a comment\n"
                                 "   \n"
                                 "#SBATCH --gpus-per-node=4 -N 3 --oom-mode resubmit\n"
                                 "cd /tmp\n"
                                 "#SBATCH --account=nobody\n";
    static const char *const none[] = {NULL};
    static const char *const given[] = {"--mem=100", "--no-requeue", "--gres=gpu:2", NULL};

    (void)state;
    check(38, script, none, NULL,
          "{\"name\": \"a b\", \"nodes\": \"3\", \"tasks_per_node\": 8, \"memory_per_cpu\": 2048,"
          "\"requeue\": true, \"gpus_per_node\": \"4\", \"hold\": true,"
          "\"current_working_directory\": \"/home/a b\","
          "\"environment\": {\"PATH\": \"/bin\", \"A\": \"b=c\", \"EMPTY\": \"\"}}");
    check(40, script, given, NULL,
          "{\"name\": \"a b\", \"nodes\": \"3\", \"tasks_per_node\": 8, \"memory_per_node\": 100,"
          "\"requeue\": false, \"tres_per_node\": \"gres/gpu:2\", \"priority\": 0,"
          "\"current_working_directory\": \"/home/a b\","
          "\"environment\": [\"PATH=/bin\", \"A=b=c\", \"EMPTY=\"]}");
}

/* Nothing is left out silently: what cannot be said is an error that names it. */
static void what_cannot_be_said(void **state)
{
    static const char *const args[] = {"one", NULL};
    static const struct {
        int version;
        const char *script, *option;
        const char *const *args;
        const char *words;
    } cases[] = {
        {38, "#SBATCH --signal=B:USR1@60\n", NULL, NULL, "line 1 of the script"},
        {44, "#!/bin/sh\n#SBATCH hetjob\n", NULL, NULL, "line 2 of the script"},
        {44, "#SBATCH --site-plugin=3\n", NULL, NULL, "--site-plugin=3"},
        {44, "#SBATCH --hold=yes\n", NULL, NULL, "line 1"},
        {44, "#SBATCH --mem\n", NULL, NULL, "line 1"},
        {44, "#SBATCH -J 'a\n", NULL, NULL, "line 1"},
        {44, "#SBATCH -J a\\ b\n", NULL, NULL, "line 1"},
        {44, "#SBATCH -k\n", NULL, NULL, "line 1"},
        {44, "#PBS -l mem=4G\n", NULL, NULL, "line 1"},
        {44, "\n", "--frobnicate=1", NULL, "--frobnicate"},
        {44, "\n", "--mem-per-gpu=4G", NULL, "v0.0.44 of slurmrestd cannot be told --mem-per-gpu"},
        {39, "\n", "--exclude=n1", NULL, "v0.0.39 of slurmrestd cannot be told --exclude"},
        {38, "\n", "--time=UNLIMITED", NULL, "--time=UNLIMITED"},
        {38, "\n", "--time=-1", NULL, "--time=-1"},
        {38, "\n", "--time=999999999999999-", NULL, "--time=999999999999999-"},
        {38, "\n", "--mem=nan", NULL, "--mem=nan"},
        {38, "\n", "--mem=lots", NULL, "--mem=lots"},
        {38, "\n", "--nice=-5", NULL, "--nice=-5"},
        {38, "\n", "--ntasks=2x", NULL, "--ntasks=2x"},
        {38, "\n", "--job-name=\xff", NULL, "--job-name"},
        {38, "echo \xff\n", NULL, NULL, "UTF-8"},
        {38, "\n", NULL, args, "arguments"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *const options[] = {cases[i].option, NULL};
        struct oom_error err = {""};
        json_t *body = body_of(cases[i].version, cases[i].script, options, cases[i].args, &err);
        if (body || !strstr(err.text, cases[i].words))
            fail_msg("case %zu: %s", i, body ? "was accepted" : err.text);
    }
}

static void times(void **state)
{
    static const struct {
        const char *text;
        int minutes;
    } cases[] = {{"90", 90},        {"90:30", 91},   {"1:30:00", 90},  {"1-0", 1440},
                 {"1-12:30", 2190}, {"00:05:00", 5}, {"0-00:00:01", 1}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *chosen = json_object(), *job = json_object();
        slurm_rest_choose(chosen, "time", cases[i].text);
        assert_int_equal(slurm_rest_members(chosen, 38, job, NULL), 0);
        assert_int_equal(json_get_int(job, "time_limit", -1), cases[i].minutes);
        json_decref(chosen);
        json_decref(job);
    }
}

static int version_of(const char *text, struct oom_error *err)
{
    json_t *openapi = json_loads(text, 0, NULL);
    int version = slurm_rest_version(openapi, err);

    json_decref(openapi);
    return version;
}

static void versions(void **state)
{
    struct oom_error err = {""};

    (void)state;
    assert_int_equal(version_of("{\"paths\": {\"/slurm/v0.0.38/job/submit\": {},"
                                "\"/slurm/v0.0.36/job/submit\": {}}}",
                                &err),
                     38);
    assert_int_equal(version_of("{\"paths\": {\"/slurm/v0.0.40/job/submit\": {},"
                                "\"/slurm/v0.0.41/job/submit/\": {},"
                                "\"/slurmdb/v0.0.42/jobs/\": {}, \"/slurm/v0.0.43/ping/\": {}}}",
                                &err),
                     41);
    assert_int_equal(version_of("{\"paths\": {\"/slurm/v0.0.37/job/submit\": {},"
                                "\"/slurm/v0.0.99/job/submit\": {}}}",
                                &err),
                     -1);
    assert_non_null(strstr(err.text, "v0.0.38"));
    assert_int_equal(version_of("[]", &err), -1);
}

static void answers(void **state)
{
    static const struct {
        const char *text;
        long long job;
        bool ignored;
        const char *words;
    } cases[] = {
        /* As 22.05 answers to a job that is to be held. */
        {"{\"errors\": [{\"error_code\": 2016, \"error\": \"Job is in held state, pending "
         "scheduler release\"}], \"job_id\": 7, \"step_id\": \"BATCH\"}",
         7, false, ""},
        {"{\"errors\": [{\"error_code\": 2000, \"error\": \"Invalid partition name specified\"}]}",
         -1, false, "Invalid partition name specified"},
        {"{\"errors\": [{\"description\": \"Unknown key \\\"x\\\"\", \"error\": \"no\"}], "
         "\"job_id\": 0}",
         -1, false, "Unknown key"},
        {"{\"errors\": [], \"job_id\": 9, \"warnings\": [{\"description\": \"Ignoring unknown "
         "field \\\"x\\\" of type string in DATA_PARSER_JOB_DESC_MSG\"}]}",
         9, true, ""},
        {"{\"errors\": \"none\", \"job_id\": \"7\", \"warnings\": 3}", -1, false, "no job id"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oom_error err = {""};
        bool ignored = !cases[i].ignored;
        json_t *reply = json_loads(cases[i].text, 0, NULL);
        assert_non_null(reply);
        assert_int_equal(slurm_rest_reply(reply, &ignored, &err), cases[i].job);
        assert_int_equal(ignored, cases[i].ignored);
        assert_non_null(strstr(err.text, cases[i].words));
        json_decref(reply);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_of_each_family),
        cmocka_unit_test(lines_of_the_script),
        cmocka_unit_test(what_cannot_be_said),
        cmocka_unit_test(times),
        cmocka_unit_test(versions),
        cmocka_unit_test(answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
