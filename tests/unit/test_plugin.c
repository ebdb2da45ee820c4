/* SPDX-License-Identifier: Apache-2.0
 *
 * What the plugin does without Slurm: settings, plugstack arguments, counters of both cgroup
 * versions from a tree of files, and taking the launcher's line out of a script. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/restore.h"
#include "plugin/spank_cgroup.c"
#include "plugin/spank_script.c"
#include "plugin/spank_settings.c"
#include "plugin/spank_site.c"
#include "plugin/spank_submitted.c"

static char dir[] = "/tmp/oomretry-unit-XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0700), 0);
}

static void assert_file(const char *path, const char *text)
{
    char got[4096];

    read_small(path, got, sizeof(got));
    assert_string_equal(got, text);
}

/* --- settings --- */

static void settings_survive_the_carrier(void **state)
{
    struct settings a, b;
    char text[160], why[160], again[160];

    (void)state;
    settings_init(&a);
    settings_format(&a, text, sizeof(text));
    assert_string_equal(text, "");
    assert_int_equal(settings_set(&a, "policy", NULL, why, sizeof(why)), 0);
    assert_int_equal(settings_set(&a, "mode", "requeue", why, sizeof(why)), 0);
    assert_int_equal(settings_set(&a, "max_retries", "0", why, sizeof(why)), 0);
    assert_int_equal(settings_set(&a, "dry_run", "no", why, sizeof(why)), 0);
    settings_format(&a, text, sizeof(text));
    assert_string_equal(text, "policy=auto mode=requeue max_retries=0 dry_run=0");
    settings_init(&b);
    settings_read(&b, text);
    settings_format(&b, again, sizeof(again));
    assert_string_equal(again, text);
}

static void settings_refuse_and_keep(void **state)
{
    static const char *const bad[][2] = {
        {"policy", ""},         {"policy", "Relax"},
        {"policy", "-x"},       {"policy", "a/b"},
        {"policy", "a\nb"},     {"mode", "inplac"},
        {"mode", NULL},         {"allow", "train"},
        {"max_retries", "101"}, {"max_retries", "1e3"},
        {"max_retries", " 1"},  {"max_retries", ""},
        {"max_retries", NULL},  {"dry_run", "maybe"},
        {"unknown", "1"},       {"max_retries", "99999999999999999999"},
    };
    struct settings settings, before;

    (void)state;
    settings_init(&settings);
    settings_read(&settings, "policy=relax mode=inplace");
    before = settings;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char why[160] = "";

        assert_int_equal(settings_set(&settings, bad[i][0], bad[i][1], why, sizeof(why)), -1);
        assert_true(strlen(why) > 5);
        assert_memory_equal(&settings, &before, sizeof(settings));
    }
}

static void settings_merge_fills_gaps_only(void **state)
{
    struct settings job, site;
    char text[160];

    (void)state;
    settings_init(&job);
    settings_init(&site);
    settings_read(&job, "policy=off max_retries=2");
    settings_read(&site, "policy=auto mode=resubmit max_retries=9");
    settings_merge(&job, &site);
    settings_format(&job, text, sizeof(text));
    assert_string_equal(text, "policy=off mode=resubmit max_retries=2");
    assert_false(settings_opted_in(&job));
    assert_true(settings_opted_in(&site));
}

static int complaints;
static void count_complaint(const char *text)
{
    assert_non_null(strstr(text, "ignored"));
    complaints++;
}

static void site_arguments(void **state)
{
    char *argv[] = {"default=auto",       "prefix=/opt/oom", "socket=/run/x y", "socket=rel",
                    "config=/etc/x.conf", "max_retries=2",   "nonsense",        "mode=sideways"};
    struct site site;

    (void)state;
    complaints = 0;
    site_read(&site, 8, argv, count_complaint);
    assert_int_equal(complaints, 4);
    assert_string_equal(site.prefix, "/opt/oom");
    assert_string_equal(site.socket, DEFAULT_SOCKET);
    assert_string_equal(site.config, "/etc/x.conf");
    assert_string_equal(site.defaults.policy, "auto");
    assert_int_equal(site.defaults.max_retries, 2);
}

/* --- cgroups --- */

static void group_of_each_version(void **state)
{
    static const struct {
        const char *text;
        const char *group;
        bool unified;
    } cases[] = {
        {"0::/system.slice/slurmstepd.scope/job_7/step_batch/user/task_0\n",
         "/system.slice/slurmstepd.scope/job_7/step_batch/user/task_0", true},
        {"9:cpu,memory:/slurm_n1/uid_5/job_7/step_0/task_3\n0::/x\n",
         "/slurm_n1/uid_5/job_7/step_0/task_3", false},
        {"0::/x\n4:memory:/slurm/job_1\n", "/slurm/job_1", false},
        {"4:memory_not:/no\n3:freezer:/f\n0::/yes:colon\n", "/yes:colon", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256], group[128];
        bool unified = !cases[i].unified;

        strcpy(text, cases[i].text);
        assert_true(find_group(text, group, sizeof(group), &unified));
        assert_string_equal(group, cases[i].group);
        assert_int_equal(unified, cases[i].unified);
    }
    char none[] = "3:freezer:/f\nrubbish\n", group[128];
    bool unified;
    assert_false(find_group(none, group, sizeof(group), &unified));
}

static void counters_of_v2(void **state)
{
    struct cgroup cgroup = {.unified = true};
    struct cgroup_counters counters;
    char path[256];

    (void)state;
    snprintf(path, sizeof(path), "%s/step", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(cgroup.path, sizeof(cgroup.path), "%s/step/task_0", dir);
    assert_int_equal(mkdir(cgroup.path, 0700), 0);
    write_file("step/task_0/memory.events", "low 0\nhigh 3\nmax 41\noom 2\noom_kill 2\n"
                                            "oom_group_kill 0\n");
    write_file("step/task_0/memory.peak", "104857600\n");
    write_file("step/task_0/memory.max", "max\n");
    write_file("step/memory.max", "209715200\n");
    write_file("memory.max", "314572800\n");
    cgroup_read(&cgroup, &counters);
    assert_int_equal(counters.oom_kill, 2);
    assert_int_equal(counters.peak_bytes, 104857600);
    assert_int_equal(counters.limit_bytes, 209715200);
}

static void counters_of_v1(void **state)
{
    struct cgroup cgroup = {.unified = false};
    struct cgroup_counters counters;

    (void)state;
    strcpy(cgroup.path, dir);
    write_file("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
    write_file("memory.max_usage_in_bytes", "5000\n");
    write_file("memory.stat", "cache 0\nhierarchical_memory_limit 9223372036854771712\n");
    cgroup_read(&cgroup, &counters);
    assert_int_equal(counters.oom_kill, 1);
    assert_int_equal(counters.peak_bytes, 5000);
    assert_int_equal(counters.limit_bytes, -1);

    strcpy(cgroup.path, "/nonexistent");
    cgroup_read(&cgroup, &counters);
    assert_int_equal(counters.oom_kill, -1);
    assert_int_equal(counters.peak_bytes, -1);
}

/* --- the script --- */

static void scripts_are_restored(void **state)
{
    static const char *const cases[][2] = {
        {"#!/opt/x/libexec/oomretry/oomstart\n#!/bin/bash -x\necho 1\n",
         "#!/bin/bash -x\necho 1\n"},
        {"#!/opt/x/libexec/oomretry/oomstart\n", ""},
        {"#!/bin/bash\n#!/x/oomretry/oomstart\n", "#!/bin/bash\n#!/x/oomretry/oomstart\n"},
        {"#!/x/oomretry/oomstart", "#!/x/oomretry/oomstart"},
        {"", ""},
        {"\n", "\n"},
    };
    char path[256], copy[256];
    struct stat st;

    (void)state;
    snprintf(path, sizeof(path), "%s/script", dir);
    setenv("TMPDIR", dir, 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_file("script", cases[i][0]);
        assert_int_equal(restore_copy(path, copy, sizeof(copy)), 0);
        assert_file(copy, cases[i][1]);
        assert_int_equal(stat(copy, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0700);
        assert_int_equal(unlink(copy), 0);
        assert_file(path, cases[i][0]);
        assert_int_equal(restore_launcher_length(cases[i][0], strlen(cases[i][0])),
                         strlen(cases[i][0]) - strlen(cases[i][1]));
        assert_int_equal(restore_script(path), 0);
        assert_file(path, cases[i][1]);
        assert_int_equal(restore_script(path), 0);
        assert_file(path, cases[i][1]);
    }
    /* A directory for temporary files that is gone, as those of jobs are. */
    setenv("TMPDIR", "/nonexistent", 1);
    assert_int_equal(restore_copy(path, copy, sizeof(copy)), 0);
    assert_memory_equal(copy, "/tmp/", 5);
    assert_int_equal(unlink(copy), 0);
    setenv("TMPDIR", dir, 1);
    snprintf(copy, sizeof(copy), "%s/link", dir);
    assert_int_equal(symlink(path, copy), 0);
    assert_int_equal(restore_script(copy), -1);
    assert_int_equal(restore_script("/nonexistent/script"), -1);
    assert_int_equal(restore_script(dir), -1);
}

/* Half of it would be another script. */
static void what_cannot_be_restored_stays_as_it_is(void **state)
{
    char path[256], script[3000] = "#!/opt/x/libexec/oomretry/oomstart\n#!/bin/bash\n";
    struct rlimit before, small;

    (void)state;
    memset(script + strlen(script), ':', sizeof(script) - 1 - strlen(script));
    snprintf(path, sizeof(path), "%s/long", dir);
    write_file("long", script);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){1000, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = restore_script(path);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(rc, -1);
    assert_file(path, script);
    assert_int_equal(unlink(path), 0);
}

/* By this the agent knows that nothing of a script was executed. */
static void the_launchers_line_is_seen(void **state)
{
    static const char line[] = "#!/opt/x/libexec/oomretry/oomstart\n";
    char path[256], other[256];

    (void)state;
    snprintf(path, sizeof(path), "%s/marked", dir);
    write_file("marked", "#!/opt/x/libexec/oomretry/oomstart\n#!/bin/bash\necho 1\n");
    assert_true(script_begins_with(path, line));
    assert_int_equal(restore_script(path), 0);
    assert_false(script_begins_with(path, line));
    write_file("marked", "#!/opt/x/libexec/oomretry/oomstar");
    assert_false(script_begins_with(path, line));
    snprintf(other, sizeof(other), "%s/marked-link", dir);
    write_file("marked", line);
    assert_int_equal(symlink(path, other), 0);
    assert_false(script_begins_with(other, line));
    assert_false(script_begins_with("/nonexistent/script", line));
    assert_false(script_begins_with(dir, line));
    assert_int_equal(unlink(other), 0);
    assert_int_equal(unlink(path), 0);
}

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_directory(void **state)
{
    static const char *const files[] = {
        "step/task_0/memory.events",
        "step/task_0/memory.peak",
        "step/task_0/memory.max",
        "step/memory.max",
        "memory.max",
        "memory.oom_control",
        "memory.max_usage_in_bytes",
        "memory.stat",
        "script",
        "link",
        "step/task_0",
        "step",
        "",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[256];

        snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        (void)remove(path);
    }
    return access(dir, F_OK) == 0;
}

/* --- the command line of sbatch --- */

enum { MOST_WORDS = 12 };

static void submitted_as_given(void **state)
{
    static const struct {
        char *words[MOST_WORDS], *environment[4];
        const char *kept; /* NULL: not understood */
    } rows[] = {
        {{"sbatch", "job.sh", "--signal=KILL"}, {NULL}, ""},
        {{"/opt/slurm/bin/sbatch"}, {NULL}, ""},
        {{"scrontab", "table"}, {NULL}, NULL},
        {{NULL}, {NULL}, NULL},
        {{"sbatch", "--signal=B:USR1@60", "--exclusive", "job.sh", "--gpus=9"},
         {NULL},
         "--signal=B:USR1@60 --exclusive"},
        /* Values of their own words, letters, letters together, beginnings of names. */
        {{"sbatch", "--signal", "USR1", "-n", "4", "-c2", "-HOn8", "--exclusi", "x", "-N9"},
         {NULL},
         "--signal=USR1 --ntasks=4 --cpus-per-task=2 --overcommit --ntasks=8 --exclusive"},
        {{"sbatch", "--exclu", "x"}, {NULL}, NULL}, /* --exclude or --exclusive */
        {{"sbatch", "-k", "--no-kill=off", "--nice", "job.sh"}, {NULL}, "--no-kill --no-kill=off"},
        /* What the record tells, and what is nobody's business. */
        {{"sbatch", "--wrap", "secret -n 4", "--export=TOKEN=abc", "--mem=4G", "-pgpu", "-Jname"},
         {NULL},
         ""},
        {{"sbatch", "-o", "my run %j.out", "--comment=x", "-"},
         {NULL},
         "--output=my%20run%20%25j.out"},
        {{"sbatch", "--gres=gpu:1", ":", "--gres", "gpu:2", "job.sh"},
         {NULL},
         "--gres=gpu:1 : --gres=gpu:2"},
        {{"sbatch", "-d", "afterok:12,singleton", "job.sh"}, {NULL}, "--dependency=singleton"},
        {{"sbatch", "--dependency=afterok:12", "--", "--gpus=3"}, {NULL}, ""},
        /* Variables, which count less than the command line; of each component. */
        {{"sbatch", "-n1", ":", "x"},
         {"SBATCH_SIGNAL=USR2", "SBATCH_SPREAD_JOB=yes", "SBATCH_ACCOUNT=a"},
         "--signal=USR2 --spread-job --ntasks=1 : --signal=USR2 --spread-job"},
        {{"sbatch", "x"},
         {"SBATCH_EXCLUSIVE=", "SBATCH_REQ_SWITCH=1", "SBATCH_GRES="},
         "--exclusive --switches=1"},
        /* Options of other plugins, by what sbatch has read. */
        {{"sbatch", "--container-image", "a b.sqsh", "--flag", "job.sh", "--gpus=3"},
         {"_SLURM_SPANK_OPTION_pyxis_container_image=a b.sqsh", "_SLURM_SPANK_OPTION_other_flag="},
         "--container-image=a%20b.sqsh --flag"},
        {{"sbatch", "--unknown", "job.sh"}, {"_SLURM_SPANK_OPTION_pyxis_known=job.sh"}, NULL},
        {{"sbatch", "--newer-option=3", "job.sh"}, {NULL}, "--newer-option=3"},
        {{"sbatch", "-Z", "job.sh"}, {NULL}, NULL},
        {{"sbatch", "--ntasks"}, {NULL}, NULL},
        {{"sbatch", "-n"}, {NULL}, NULL},
    };
    char out[256];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int rc = submitted_options(rows[i].words, rows[i].environment, out, sizeof(out));
        assert_int_equal(rc, rows[i].kept ? 0 : -1);
        if (rows[i].kept)
            assert_string_equal(out, rows[i].kept);
    }
    /* Half of it would be another job. */
    char *words[] = {"sbatch", "--signal=USR1@60", "--exclusive", "x", NULL}, *none[] = {NULL};
    assert_int_equal(submitted_options(words, none, out, 20), -1);
    assert_int_equal(submitted_options(words, none, out, 31), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_survive_the_carrier),
        cmocka_unit_test(settings_refuse_and_keep),
        cmocka_unit_test(settings_merge_fills_gaps_only),
        cmocka_unit_test(site_arguments),
        cmocka_unit_test(group_of_each_version),
        cmocka_unit_test(counters_of_v2),
        cmocka_unit_test(counters_of_v1),
        cmocka_unit_test(scripts_are_restored),
        cmocka_unit_test(what_cannot_be_restored_stays_as_it_is),
        cmocka_unit_test(the_launchers_line_is_seen),
        cmocka_unit_test(submitted_as_given),
    };

    return cmocka_run_group_tests_name("plugin", tests, make_directory, remove_directory);
}
