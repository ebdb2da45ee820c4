/* SPDX-License-Identifier: Apache-2.0
 *
 * The small parts of agent/lib and agent/sched that are pure text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/lib/child.h"
#include "agent/lib/config.h"
#include "agent/lib/humanize.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/proctree.h"
#include "agent/lib/textdiff.h"
#include "agent/lib/urlquery.h"
#include "agent/sched/slurm_components.h"
#include "agent/sched/slurm_dependents.h"
#include "agent/sched/slurm_fields.h"
#include "agent/sched/slurm_options.h"
#include "agent/sched/slurm_submitted.h"
#include "policies/jsontext.h"

static const char JOB[] = "JobId=17 JobName=a JobState=RUNNING Reason=None Requeue=1 "
                          "MinCPUsNode=1 MinMemoryNode=300M MinTmpDiskNode=0 EndTime=Unknown\n";

static void fields_of_scontrol(void **state)
{
    char out[64];

    (void)state;
    assert_true(slurm_field(JOB, "JobState", out, sizeof(out)));
    assert_string_equal(out, "RUNNING");
    assert_true(slurm_field(JOB, "MinMemoryNode", out, sizeof(out)));
    assert_string_equal(out, "300M");
    assert_true(slurm_field(JOB, "EndTime", out, sizeof(out)));
    assert_string_equal(out, "Unknown");
    assert_true(
        slurm_field("JobId=1 JobName=my long run UserId=a(1) X=2", "JobName", out, sizeof(out)));
    assert_string_equal(out, "my long run");
    /* A key that is only the tail of another one. */
    assert_false(slurm_field(JOB, "State", out, sizeof(out)));
    assert_false(slurm_field(JOB, "Memory", out, sizeof(out)));
}

static void memory_words(void **state)
{
    (void)state;
    assert_int_equal(slurm_mib("300M"), 300);
    assert_int_equal(slurm_mib("2G"), 2048);
    assert_int_equal(slurm_mib("1.50T"), 1572864);
    assert_int_equal(slurm_mib("4096"), 4096);
    assert_int_equal(slurm_mib("512000K"), 500);
    assert_int_equal(slurm_mib("lots"), -1);
    assert_int_equal(slurm_mib("-5G"), -1);
}

static void dependents_are_repointed(void **state)
{
    static const struct {
        const char *before, *old_job, *new_job, *others;
        int index;
        const char *after; /* NULL: it does not concern the job */
    } cases[] = {
        {"afterok:12(unfulfilled)", "12", "99", "", -1, "afterok:99"},
        {"afterok:12(failed),afterany:13(unfulfilled)", "12", "99", "", -1,
         "afterok:99,afterany:13"},
        {"afterok:120(unfulfilled)", "12", "99", "", -1, NULL},
        {"afterok:112(unfulfilled)", "12", "99", "", -1, NULL},
        {"afterok:12_3(unfulfilled)", "12", "99", "", -1, NULL},
        {"afternotok:12?afterany:12(unfulfilled)", "12", "99", "", -1, "afternotok:99?afterany:99"},
        {"afterok:11:12:13", "12", "99", "", -1, "afterok:11:99:13"},
        {"after:12+30(unfulfilled)", "12", "99", "", -1, "after:99+30"},
        {"singleton(unfulfilled),afterok:12", "12", "99", "", -1, "singleton,afterok:99"},
        {"singleton", "12", "99", "", -1, NULL},
        {"afterok:12(unfulfilled", "12", "99", "", -1, NULL},
        {"", "12", "99", "", -1, NULL},
        /* Tasks of an array. */
        {"afterok:12_3(unfulfilled)", "12_3", "99_3", "", -1, "afterok:99_3"},
        {"afterok:12_30(unfulfilled)", "12_3", "99_3", "", -1, NULL},
        {"afterok:12_*(unfulfilled)", "12_3", "99_3", "12_1:12_4", -1, "afterok:99_3:12_1:12_4"},
        {"afterany:12_*,afterok:7", "12_3", "99_3", "", -1, "afterany:99_3,afterok:7"},
        {"aftercorr:12_*(unfulfilled)", "12_3", "99_3", "12_1", 3, "afterok:99_3"},
        {"aftercorr:12_*(unfulfilled)", "12_3", "99_3", "12_1", 2, NULL},
        /* "or" has no way to say "all of these". */
        {"afterok:12_*?afterok:7", "12_3", "99_3", "12_1", -1, NULL},
        /* Too many others to be listed. */
        {"afterok:12_*(unfulfilled)", "12_3", "99_3", NULL, -1, NULL},
        {"afterok:12_3,afterok:12_*", "12_3", "99_3", NULL, -1, "afterok:99_3,afterok:12_*"},
        {"aftercorr:12_*(unfulfilled)", "12_3", "99_3", NULL, 3, "afterok:99_3"},
    };
    struct slurm_replacement small = {"12", "99", ""};
    char out[128];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct slurm_replacement r = {cases[i].old_job, cases[i].new_job, cases[i].others};
        bool found =
            slurm_dependency_rewrite(cases[i].before, &r, cases[i].index, out, sizeof(out));
        assert_int_equal(found, cases[i].after != NULL);
        if (cases[i].after)
            assert_string_equal(out, cases[i].after);
    }
    assert_false(slurm_dependency_rewrite("afterok:12", &small, -1, out, 6));
}

static void array_ids_are_plain(void **state)
{
    static const char *const cases[][2] = {{"12", "12"},
                                           {"12_3", "12_3"},
                                           {"12_[3]", "12_3"},
                                           {"12_[3-5]", "12_[3-5]"},
                                           {"12_[3%1]", "12_3"},
                                           {"12_[3-5%20]", "12_[3-5]"},
                                           {"12_[3,5-7%2", "12_[3,5-7%2"},
                                           {"12+1", "12+1"}};
    char id[32];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        strcpy(id, cases[i][0]);
        slurm_plain_id(id);
        assert_string_equal(id, cases[i][1]);
    }
}

static void output_files_are_patterns_again(void **state)
{
    static const struct {
        const char *record, *wanted[3]; /* NULL: no more */
        const char *absent;
    } cases[] = {
        {"JobId=12 JobName=x StdErr=/w/12.out StdIn=/dev/null StdOut=/w/12.out",
         {"--output=/w/%j.out"},
         "--error"},
        {"JobId=12 StdErr=/w/e-12-112-120.txt StdIn=/w/in StdOut=/w/train.log",
         {"--output=/w/train.log", "--error=/w/e-%j-112-120.txt", "--input=/w/in"},
         NULL},
        {"JobId=8 StdErr=/tmp/q8w/run-8/8.out StdOut=/tmp/q8w/run-8/8.out",
         {"--output=/tmp/q8w/run-8/%j.out"},
         NULL},
        {"JobId=19 ArrayJobId=12 ArrayTaskId=3 StdErr=/w/12_3.out StdOut=/w/12_3.out",
         {"--output=/w/%A_%a.out", "--array=3"},
         NULL},
        {"JobId=12 ArrayJobId=12 ArrayTaskId=3 StdErr=/w/a StdOut=/w/100%/12.out",
         {"--output=/w/100%%/%j.out", "--array=3"},
         NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct slurm_options options = {NULL, 0};
        size_t found = 0, wanted = 0;

        assert_int_equal(
            slurm_options_from_text(cases[i].record, NULL, NULL, "mark", &options, NULL), 0);
        for (; wanted < 3 && cases[i].wanted[wanted]; wanted++)
            for (size_t k = 0; k < options.count; k++)
                found += strcmp(options.items[k], cases[i].wanted[wanted]) == 0;
        assert_int_equal(found, wanted);
        for (size_t k = 0; cases[i].absent && k < options.count; k++)
            assert_null(strstr(options.items[k], cases[i].absent));
        slurm_options_free(&options);
    }
}

static char *joined(const struct slurm_options *options)
{
    static char text[4096];
    size_t used = 0;

    for (size_t i = 0; i < options->count; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? " " : "",
                                 options->items[i]);
    return text;
}

static void options_are_those_that_were_asked_for(void **state)
{
    static const char record[] =
        "JobId=12 JobName=my run Partition=gpu TimeLimit=00:10:00 NumNodes=2 NumTasks=4 "
        "CPUs/Task=1 Nice=-5 MinMemoryCPU=100M Features=a100 Requeue=1 Comment=two words "
        "StdOut=/w/12.out MemPerTres=gres:gpu:90 TresPerJob=gres:gpu:2";
    static const struct {
        const char *submitted, *mem, *wanted;
    } rows[] = {
        /* Nobody knows: the record, as it was allocated. */
        {NULL, NULL,
         "--oom-retry=auto --job-name=my run --partition=gpu --time=00:10:00 --constraint=a100 "
         "--cpus-per-task=1 --ntasks=4 --nodes=2 --gpus=2 --mem-per-gpu=90M --output=/w/%j.out "
         "--requeue --comment=two words M --open-mode=append"},
        {"--gpus=2 --output=x%20%25j --mem-per-gpu=90 --signal=USR1", NULL,
         "--oom-retry=auto --gpus=2 --output=x %j --signal=USR1 --job-name=my run "
         "--partition=gpu --time=00:10:00 --mem-per-gpu=90M --requeue --comment=two words M "
         "--open-mode=append"},
        {" ", "500",
         "--oom-retry=auto --job-name=my run --partition=gpu --time=00:10:00 --mem=500M "
         "--requeue --comment=two words M --open-mode=append"},
    };
    static const char *const damaged[] = {"",        "-n4",     "x",   "--a=%", "--a=%0",
                                          "--a=%00", "--a=%zz", "---", "--",    "--a b"};
    struct slurm_submitted asked;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct slurm_options options = {NULL, 0};
        struct oom_edits edits = {NULL, 0};
        if (rows[i].mem)
            oom_edits_add(&edits, "slurm:mem", "100", rows[i].mem, NULL);
        assert_int_equal(slurm_options_add(&options, "oom-retry", "auto"), 0);
        assert_int_equal(
            slurm_options_from_text(record, rows[i].submitted, &edits, "M", &options, NULL), 0);
        assert_string_equal(joined(&options), rows[i].wanted);
        slurm_options_free(&options);
        oom_edits_free(&edits);
    }
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++)
        assert_false(slurm_submitted_read(damaged[i], &asked));
}

static void each_component_has_its_own(void **state)
{
    static const char records[] = "JobId=12 HetJobOffset=0 JobName=x MinMemoryNode=60M\n"
                                  "JobId=13 HetJobOffset=1 JobName=x MinMemoryNode=70M\n";
    struct slurm_options options = {NULL, 0};

    (void)state;
    assert_int_equal(
        slurm_options_from_text(records, "--signal=USR1 : --exclusive", NULL, "M", &options, NULL),
        0);
    assert_string_equal(joined(&options),
                        "--signal=USR1 --job-name=x --mem=60M --comment=M --open-mode=append : "
                        "--exclusive --job-name=x --mem=70M --comment=M --open-mode=append");
    slurm_options_free(&options);
}

static void the_component_that_ran_out(void **state)
{
    static const char records[] =
        "JobId=12 HetJobId=12 HetJobOffset=0 NodeList=cpu1 MinMemoryNode=60M\n"
        "JobId=13 HetJobId=12 HetJobOffset=1 NodeList=gpu1 MinMemoryNode=110M\n"
        "JobId=14 HetJobId=12 HetJobOffset=2 NodeList=big1 MinMemoryNode=1000M\n";
    static const struct {
        const char *message, *node, *id;
    } rows[] = {{NULL, "gpu1", "13"},
                {"task 0: Out Of Memory", "big1", "14"},
                {NULL, "cpu1", "12"},
                {NULL, "cpu", "12"},
                {NULL, NULL, "12"},
                {"Detected 1 oom-kill event(s) in StepId=13.0. Some", NULL, "13"},
                {"Detected 1 oom_kill event in StepId=12+2.0. Some", "cpu1", "14"},
                {"Detected 1 oom-kill event(s) in StepId=12.batch.", NULL, "12"},
                {"Detected 1 oom-kill event(s) in StepId=99.0.", "gpu1", "13"},
                {"StepId=", "gpu1", "13"}};
    struct oom_edits edits = {NULL, 0};
    struct slurm_options options = {NULL, 0};
    char word[16];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *copy = strdup(records),
             *line = slurm_component_of(copy, rows[i].message, rows[i].node);
        assert_true(slurm_field(line, "JobId", word, sizeof(word)));
        assert_string_equal(word, rows[i].id);
        assert_null(strchr(line, '\n'));
        free(copy);
    }
    /* Twice too little: the one that has 110 by now. Never the small one, never less. */
    oom_edits_add(&edits, "slurm:mem", "110", "440", NULL);
    assert_int_equal(slurm_options_from_text(records, " ", &edits, "M", &options, NULL), 0);
    assert_non_null(strstr(joined(&options), "--mem=60M --comment=M --open-mode=append : "
                                             "--mem=440M --comment=M --open-mode=append : "
                                             "--mem=1000M"));
    slurm_options_free(&options);
    oom_edits_free(&edits);
}

static void human_numbers(void **state)
{
    char out[64];

    (void)state;
    humanize_bytes(1052266987, out, sizeof(out));
    assert_string_equal(out, "1003.52 MiB");
    humanize_bytes(2147483648, out, sizeof(out));
    assert_string_equal(out, "2.00 GiB");
    humanize_bytes(1073741823, out, sizeof(out));
    assert_string_equal(out, "1.00 GiB");
    humanize_bytes(7, out, sizeof(out));
    assert_string_equal(out, "7 bytes");
    humanize_duration(252000, out, sizeof(out));
    assert_string_equal(out, "4m12s");
    humanize_duration(3660000, out, sizeof(out));
    assert_string_equal(out, "1h01m");
    humanize_duration(400, out, sizeof(out));
    assert_string_equal(out, "0.4s");
    humanize_iso(1795961000000, out, sizeof(out));
    assert_string_equal(out, "2026-11-29T14:03:20Z");
}

static void diffs(void **state)
{
    static const char old_text[] = "a\nb\nc\nd\ne\nf\ng\nh\n",
                      new_text[] = "a\nb\nc\nD\ne\nf\ng\nh";
    char *diff = textdiff_unified("x", "x", old_text, strlen(old_text), new_text, strlen(new_text));

    (void)state;
    assert_non_null(diff);
    assert_string_equal(diff, "--- x\n+++ x\n@@ -2,7 +2,7 @@\n b\n c\n-d\n+D\n e\n f\n g\n-h\n+h\n"
                              "\\ No newline at end of file\n");
    free(diff);
    diff = textdiff_unified("x", "x", old_text, 4, old_text, 4);
    assert_string_equal(diff, "");
    free(diff);
}

static void queries(void **state)
{
    char path[64] = "/v1/history", plain[64];

    (void)state;
    assert_int_equal(urlquery_add(path, sizeof(path), "user", "a&b=c d"), 0);
    assert_int_equal(urlquery_add(path, sizeof(path), "all", "1"), 0);
    json_t *query = urlquery_split(path, plain, sizeof(plain));
    assert_string_equal(plain, "/v1/history");
    assert_string_equal(json_get_string(query, "user", ""), "a&b=c d");
    assert_string_equal(json_get_string(query, "all", ""), "1");
    json_decref(query);
    strcpy(path, "/v1/history");
    assert_int_equal(urlquery_add(path, 14, "user", "somebody"), -1);
    assert_string_equal(path, "/v1/history");
}

/* Half a list of nodes names other nodes. */
static void options_are_repeated_as_they_are(void **state)
{
    static const char *const fields[] = {"ExcNodeList=", "ReqNodeList=", "StdOut=/"};

    (void)state;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        struct slurm_options options = {NULL, 0};
        struct oom_error err = {""};
        char record[8192] = "JobId=7 JobName=run ";
        size_t used = strlen(record);

        used += (size_t)snprintf(record + used, sizeof(record) - used, "%s", fields[i]);
        memset(record + used, 'n', 5000);
        strcpy(record + used + 5000, " TimeLimit=00:10:00");
        assert_int_equal(slurm_options_from_text(record, NULL, NULL, "M", &options, &err), -1);
        assert_non_null(strstr(err.text, "job 7"));
    }
}

static void children(void **state)
{
    const char *echo[] = {"sh", "-c", "echo out; echo err >&2; exit 3", NULL};
    const char *slow[] = {"sleep", "30", NULL};
    const char *silent[] = {"sh", "-c", "exec >&- 2>&-; sleep 30", NULL};
    const char *missing[] = {"no-such-program-here", NULL};
    struct child_result result;
    struct oom_error err;

    (void)state;
    assert_int_equal(child_run(echo, 5000, &result, &err), 0);
    assert_string_equal(result.out, "out\n");
    assert_string_equal(result.errors, "err\n");
    child_result_free(&result);
    assert_int_equal(child_expect(echo, 5000, NULL, &err), -1);
    assert_string_equal(err.text, "sh -c: err");
    assert_int_equal(child_run(slow, 100, &result, &err), -1);
    assert_non_null(strstr(err.text, "did not end within 100 ms"));
    /* It closes both ends and goes on: nothing more is to be read, and it has not ended. */
    assert_int_equal(child_run(silent, 100, &result, &err), -1);
    assert_non_null(strstr(err.text, "did not end within 100 ms"));
    assert_int_equal(child_expect(missing, 5000, NULL, &err), -1);
    assert_non_null(strstr(err.text, "cannot execute no-such-program-here"));
}

/* What its user likes to see of Slurm is not what is read here. */
static void children_answer_plainly(void **state)
{
    static const char *const tastes[] = {"SQUEUE_PARTITION", "SINFO_FORMAT",      "SCONTROL_ALL",
                                         "SCANCEL_STATE",    "SLURM_TIME_FORMAT", "SLURM_CLUSTERS"};
    const char *show[] = {"env", NULL};
    char *out = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof(tastes) / sizeof(tastes[0]); i++)
        setenv(tastes[i], "relative", 1);
    setenv("SLURM_CONF", "/kept", 1);
    assert_int_equal(child_expect(show, 5000, &out, NULL), 0);
    for (size_t i = 0; i < sizeof(tastes) / sizeof(tastes[0]); i++) {
        assert_null(strstr(out, tastes[i]));
        assert_string_equal(getenv(tastes[i]), "relative");
        unsetenv(tastes[i]);
    }
    assert_non_null(strstr(out, "SLURM_CONF=/kept\n"));
    assert_non_null(strstr(out, "PATH="));
    unsetenv("SLURM_CONF");
    free(out);
}

/* Half a list must not be acted upon: who asks for the output gets all of it or an error. */
static void output_without_end(void **state)
{
    const char *endless[] = {"head", "-c", "40000000", "/dev/zero", NULL};
    const char *long_list[] = {"head", "-c", "3000000", "/dev/zero", NULL};
    struct child_result result;
    struct oom_error err = {""};
    char *out = NULL;

    (void)state;
    assert_int_equal(child_run(endless, 20000, &result, &err), 0);
    assert_true(result.cut);
    child_result_free(&result);
    assert_int_equal(child_expect(endless, 20000, &out, &err), -1);
    assert_null(out);
    assert_non_null(strstr(err.text, "says more than"));
    assert_int_equal(child_expect(endless, 20000, NULL, &err), 0);
    assert_int_equal(child_run(long_list, 20000, &result, &err), 0);
    assert_false(result.cut);
    assert_int_equal(result.out_length, 3000000);
    child_result_free(&result);
}

static bool among(const pid_t *pids, size_t count, pid_t pid)
{
    for (size_t i = 0; i < count; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

/* A child, its child, and an orphan that came to us. */
static void processes_below(void **state)
{
    int ends[2];
    pid_t told[2] = {0}, *pids = NULL;

    (void)state;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        pid_t inner = fork();
        if (inner == 0) {
            pid_t orphan = fork();
            if (orphan == 0) {
                pause();
                _exit(0);
            }
            if (write(ends[1], &orphan, sizeof(orphan)) != sizeof(orphan))
                _exit(1);
            _exit(0);
        }
        waitpid(inner, NULL, 0);
        inner = fork();
        if (inner == 0) {
            pause();
            _exit(0);
        }
        if (write(ends[1], &inner, sizeof(inner)) != sizeof(inner))
            _exit(1);
        pause();
        _exit(0);
    }
    assert_int_equal(read(ends[0], &told[0], sizeof(told[0])), sizeof(told[0]));
    assert_int_equal(read(ends[0], &told[1], sizeof(told[1])), sizeof(told[1]));
    size_t count = proctree_below(getpid(), &pids);
    assert_int_equal(count, 3);
    assert_true(among(pids, count, child));
    assert_true(among(pids, count, told[0]) && among(pids, count, told[1]));
    free(pids);
    pids = NULL;
    assert_int_equal(proctree_below(child, &pids), 1);
    assert_true(among(pids, 1, told[1]));
    free(pids);
    assert_int_equal(proctree_below(told[0], &pids), 0);
    assert_null(pids);
    kill(child, SIGKILL);
    kill(told[0], SIGKILL);
    kill(told[1], SIGKILL);
    for (int i = 0; i < 3; i++)
        assert_true(waitpid(-1, NULL, 0) > 0);
    close(ends[0]);
    close(ends[1]);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

static void text_of_any_bytes(void **state)
{
    static const struct {
        const char *bytes, *want;
    } cases[] = {
        {"", ""},
        {"plain", "plain"},
        {"caf\xc3\xa9", "caf\xc3\xa9"},
        {"caf\xe9", "caf?"},
        {"\xe9t\xe9 \xc3\xa9", "?t? \xc3\xa9"},
        {"cut \xe2\x82", "cut ??"}, /* in the middle of a character */
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        {"\xc0\xaf", "??"},                /* longer than need be */
        {"\xed\xa0\x80", "???"},           /* half of a pair */
        {"\xf4\x90\x80\x80\xff", "?????"}, /* beyond the last character */
        {"a\x01\nb", "a\x01\nb"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *json = oom_json_text(cases[i].bytes);
        assert_non_null(json);
        assert_string_equal(json_string_value(json), cases[i].want);
        json_decref(json);
    }
}

static int load_text(const char *text, struct config *config, struct oom_error *err)
{
    char path[] = "/tmp/oomretry-config-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    int rc = config_load(path, config, err);
    unlink(path);
    return rc;
}

#define TEN     "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static void configurations(void **state)
{
    static const struct {
        const char *text, *problem;
    } bad[] = {
        {"max_retrys: 3\n", ":1: unknown key \"max_retrys\""},
        {"role: both\nmax_retries: many\n", ":2: a number from 0 on is wanted for"},
        {"role: king\n", "role \"king\" is none of both, node, head"},
        {"admins: alice\n", ":1: a list is wanted for"},
        {"role: [both\n", ":"},
        {"role: both\nadmins: [a, b, c]\nadmins: []\n", ":3: a second \"admins\""},
        {"- a\n", "\"key: value\" are wanted"},
        {"slurm_bin: opt/slurm\n", "\"opt/slurm\" is no absolute path"},
        {"slurmrestd: head:6820\n", "\"head:6820\" is none of http://HOST:PORT"},
        /* As 0 it would be no bound at all. */
        {"attempts_per_user_day: 0.5\n", ":1: a whole number is wanted for"},
        /* Cut, it would be another socket. */
        {"munge_socket: /run/" HUNDRED "/munge.socket.2\n", "is too long for a socket"},
        {"node_socket: /run/" HUNDRED "/node.sock\n", "node_socket: "},
    };
    struct config config;
    struct oom_error err;

    (void)state;
    assert_int_equal(
        load_text("max_retries: 3\nadmins: [alice, bo]\nmax_mem_gib: 2\n", &config, &err), 0);
    assert_string_equal(config.slurmrestd, "");
    assert_int_equal(config.limits.max_retries, 3);
    assert_int_equal(config.limits.max_mem_mib, 2048);
    assert_int_equal(config.admin_count, 2);
    assert_string_equal(config.admins[1], "bo");
    assert_string_equal(config.role, "both");
    config_free(&config);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(load_text(bad[i].text, &config, &err), -1);
        assert_non_null(strstr(err.text, bad[i].problem));
    }
}

/* A service's PATH, or a job's, need not lead to Slurm's commands. */
static void commands_of_slurm(void **state)
{
    char directory[] = "/tmp/oomretry-bin-XXXXXX", path[64], text[96];
    const char *squeue[] = {"squeue", "-h", NULL};
    const char *plain[] = {"echo", "plain", NULL};
    struct config config;
    struct oom_error err;
    char *out = NULL;

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/squeue", directory);
    FILE *file = fopen(path, "w");
    fprintf(file, "#!/bin/sh\necho \"$0 $1\"\n");
    fclose(file);
    assert_int_equal(chmod(path, 0755), 0);
    snprintf(text, sizeof(text), "slurm_bin: %s\n", directory);
    assert_int_equal(load_text(text, &config, &err), 0);
    config_free(&config);
    assert_int_equal(child_expect(squeue, 5000, &out, &err), 0);
    snprintf(text, sizeof(text), "%s -h\n", path);
    assert_string_equal(out, text);
    free(out);
    assert_int_equal(child_expect(plain, 5000, &out, &err), 0);
    assert_string_equal(out, "plain\n");
    free(out);
    child_look_first_in("");
    unlink(path);
    rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_of_scontrol),
        cmocka_unit_test(memory_words),
        cmocka_unit_test(dependents_are_repointed),
        cmocka_unit_test(array_ids_are_plain),
        cmocka_unit_test(output_files_are_patterns_again),
        cmocka_unit_test(options_are_those_that_were_asked_for),
        cmocka_unit_test(each_component_has_its_own),
        cmocka_unit_test(the_component_that_ran_out),
        cmocka_unit_test(human_numbers),
        cmocka_unit_test(diffs),
        cmocka_unit_test(queries),
        cmocka_unit_test(options_are_repeated_as_they_are),
        cmocka_unit_test(children),
        cmocka_unit_test(children_answer_plainly),
        cmocka_unit_test(output_without_end),
        cmocka_unit_test(processes_below),
        cmocka_unit_test(text_of_any_bytes),
        cmocka_unit_test(configurations),
        cmocka_unit_test(commands_of_slurm),
    };
    return cmocka_run_group_tests_name("lib", tests, NULL, NULL);
}
