/* SPDX-License-Identifier: Apache-2.0
 *
 * Slurm through its own programs, run by argument vector with the caller's rights: that is
 * policy-true (job_submit, limits, SPANK) and links nothing of Slurm. Facts were tried on 22.05. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/lib/child.h"
#include "agent/lib/config.h"
#include "agent/lib/elapsed.h"
#include "agent/sched/sched.h"
#include "agent/sched/slurm_accepts.h"
#include "agent/sched/slurm_components.h"
#include "agent/sched/slurm_dependents.h"
#include "agent/sched/slurm_fields.h"
#include "agent/sched/slurm_marked.h"
#include "agent/sched/slurm_memory.h"
#include "agent/sched/slurm_nodes.h"
#include "agent/sched/slurm_requeue.h"
#include "agent/sched/slurm_rest.h"

enum { CALL_MS = 10000, MAX_WORDS = 1024 };

/* A task of an array is named ARRAY_TASK: the raw id of its last task is the array's own, and a
 * requeue by that id would queue the whole array again. */
static bool inside(char *job, size_t job_size, char *cluster, size_t cluster_size, int *restart)
{
    const char *id = getenv("SLURM_JOB_ID"), *name = getenv("SLURM_CLUSTER_NAME");
    const char *count = getenv("SLURM_RESTART_COUNT");
    const char *array = getenv("SLURM_ARRAY_JOB_ID"), *task = getenv("SLURM_ARRAY_TASK_ID");

    if (!id || !*id)
        return false;
    if (array && *array && task && *task)
        snprintf(job, job_size, "%s_%s", array, task);
    else
        snprintf(job, job_size, "%s", id);
    snprintf(cluster, cluster_size, "%s", name ? name : "");
    *restart = count ? atoi(count) : 0;
    return true;
}

static void share(const char **partition, const char **account)
{
    const char *p = getenv("SLURM_JOB_PARTITION"), *a = getenv("SLURM_JOB_ACCOUNT");

    *partition = p ? p : "";
    *account = a ? a : "";
}

static void set_fact(struct oom_values *facts, const char *name, int64_t value)
{
    char text[32];

    snprintf(text, sizeof(text), "%lld", (long long)value);
    oom_values_set(facts, name, text, OOM_SOURCE_SCHEDULER, NULL);
}

/* The most memory that any node of the partition has, bounded by MaxMemPerNode. */
static int64_t partition_max_mib(const char *partition)
{
    const char *show[] = {"scontrol", "-a", "-o", "show", "partition", partition, NULL};
    /* Exact: without -e nodes of different memory are one line, "300+". */
    const char *nodes[] = {"sinfo", "-h", "-a", "-e", "-p", partition, "-o", "%m", NULL};
    char *text = NULL, word[64];
    int64_t most = -1;

    if (child_expect(nodes, CALL_MS, &text, NULL) == 0) {
        for (char *save = NULL, *line = strtok_r(text, "\n", &save); line;
             line = strtok_r(NULL, "\n", &save))
            if (atoll(line) > most)
                most = atoll(line);
    }
    free(text);
    text = NULL;
    if (child_expect(show, CALL_MS, &text, NULL) == 0 &&
        slurm_field(text, "MaxMemPerNode", word, sizeof(word)) && word[0] != 'U') {
        int64_t limit = atoll(word);
        if (limit > 0 && (most < 0 || limit < most))
            most = limit;
    }
    free(text);
    return most;
}

/* Of all components together; 0 where the site does not account for GPUs
 * (AccountingStorageTRES=gres/gpu). */
static int64_t gpus_of_all(const char *text)
{
    int64_t count = 0;
    char word[256];

    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line != '\0') {
        char *own = strndup(line, strcspn(line, "\n"));
        const char *gpus = own && (slurm_field(own, "AllocTRES", word, sizeof(word)) ||
                                   slurm_field(own, "TRES", word, sizeof(word)))
                               ? strstr(word, "gres/gpu=")
                               : NULL;
        if (gpus)
            count += atoll(gpus + strlen("gres/gpu="));
        free(own);
    }
    return count;
}

static int describe(const char *job, struct oom_values *facts, struct oom_error *err)
{
    const char *show[] = {"scontrol", "-o", "show", "job", job, NULL};
    char *all = NULL, word[256];

    if (child_expect(show, CALL_MS, &all, err) < 0)
        return -1;
    int64_t gpus = gpus_of_all(all);
    char *text = slurm_component_of(all, oom_values_get(facts, "failed.message"),
                                    oom_values_get(facts, "failed.node"));
    if (slurm_field(text, "JobState", word, sizeof(word)))
        oom_values_set(facts, "sched.state", word, OOM_SOURCE_SCHEDULER, NULL);
    if (slurm_field(text, "Requeue", word, sizeof(word)))
        oom_values_set(facts, "requeue_allowed", word[0] == '1' ? "true" : "false",
                       OOM_SOURCE_SCHEDULER, NULL);
    if (slurm_field(text, "NumNodes", word, sizeof(word)))
        set_fact(facts, "slurm.nodes", atoll(word));
    if (slurm_field(text, "EndTime", word, sizeof(word))) {
        struct tm end = {.tm_isdst = -1};
        if (strptime(word, "%Y-%m-%dT%H:%M:%S", &end))
            set_fact(facts, "slurm.time_left_s", (int64_t)(mktime(&end) - time(NULL)));
    }
    if (gpus > 0)
        set_fact(facts, "slurm.gpus", gpus);
    if (slurm_field(text, "ExcNodeList", word, sizeof(word)) && strcmp(word, "(null)") != 0)
        oom_values_set(facts, "slurm.excluded", word, OOM_SOURCE_SCHEDULER, NULL);
    slurm_memory_facts(text, facts);
    if (slurm_field(text, "Partition", word, sizeof(word))) {
        word[strcspn(word, ",")] = '\0';
        oom_values_set(facts, "slurm.partition", word, OOM_SOURCE_SCHEDULER, NULL);
    }
    free(all);
    return 0;
}

static int limits(struct oom_values *facts, struct oom_error *err)
{
    const char *partition = oom_values_get(facts, "slurm.partition");
    int64_t most = partition ? partition_max_mib(partition) : -1;

    if (most <= 0)
        return oom_errorf(err, "the most memory of a node is not known");
    set_fact(facts, "slurm.mem_max_mib", most);
    return 0;
}

/* The one task that is submitted again keeps its index. */
static const char *task_of(const char *const *options)
{
    for (; options && *options; options++)
        if (strncmp(*options, "--array=", 8) == 0)
            return *options + 8;
    return NULL;
}

/* sbatch reads them as options. Here they belong to the job's environment: those that it was
 * submitted with are among its options already, and SBATCH_WAIT would have sbatch wait for ever. */
static bool is_input(const char *variable)
{
    return strncmp(variable, "SBATCH_", 7) == 0;
}

static int submit_by_sbatch(const struct sched_submission *submission, char *new_job, size_t size,
                            struct oom_error *err)
{
    const char *argv[MAX_WORDS] = {"sbatch", "--parsable"};
    char directory[4096], environment[4096];
    int n = 2;
    char *out = NULL;

    if (submission->hold)
        argv[n++] = "--hold";
    if (submission->directory) {
        if ((size_t)snprintf(directory, sizeof(directory), "--chdir=%s", submission->directory) >=
            sizeof(directory))
            return oom_errorf(err, "the job's directory has too long a name");
        argv[n++] = directory;
    }
    if (submission->environment_file) {
        snprintf(environment, sizeof(environment), "--export-file=%s",
                 submission->environment_file);
        argv[n++] = environment;
    }
    /* A line of the script may name a time, or jobs, that this one has waited for already. */
    argv[n++] = "--begin=now";
    for (int i = 0; submission->options && submission->options[i]; i++) {
        if (n == MAX_WORDS - 4)
            return oom_errorf(err, "the job has too many options to be submitted again");
        argv[n++] = submission->options[i];
        if (submission->hold && strcmp(submission->options[i], ":") == 0)
            argv[n++] = "--hold";
    }
    argv[n++] = submission->script;
    for (int i = 0; submission->args && submission->args[i]; i++) {
        if (n == MAX_WORDS - 2)
            return oom_errorf(err, "the script has too many arguments to be submitted again");
        argv[n++] = submission->args[i];
    }
    argv[n] = NULL;
    if (child_expect_without(argv, is_input, CALL_MS, &out, err) < 0)
        return -1;
    out[strcspn(out, ";\n")] = '\0';
    snprintf(new_job, size, "%s", out);
    free(out);
    return *new_job ? 0 : oom_errorf(err, "sbatch gave no job id");
}

/* Where the site prefers slurmrestd. 1: it does not, or it could not be done that way; then no job
 * carries the mark, so that sbatch may submit it. -1: whether one does is not known. */
static int submit_by_rest(const struct sched_submission *submission, char *new_job, size_t size,
                          struct oom_error *err)
{
    struct config config;
    struct oom_error why = {""};
    int rc = 1;

    if (config_load(NULL, &config, NULL) < 0)
        return 1;
    if (*config.slurmrestd &&
        slurm_rest_submit(config.slurmrestd, submission, new_job, size, &why) == 0) {
        rc = 0;
    } else if (*config.slurmrestd) {
        /* The answer may have been lost after the job was taken. */
        int found = submission->mark ? slurm_find_marked(submission->mark, submission->except,
                                                         new_job, size, err)
                                     : 0;
        rc = found > 0 ? 0 : found < 0 ? -1 : 1;
        if (rc > 0)
            oom_errorf(submission->notice, "submitted by sbatch, as slurmrestd could not: %s",
                       why.text);
    }
    config_free(&config);
    return rc;
}

static int submit(const struct sched_submission *submission, char *new_job, size_t size,
                  struct oom_error *err)
{
    const char *task = task_of(submission->options);
    int rc = submit_by_rest(submission, new_job, size, err);

    if (rc > 0)
        rc = submit_by_sbatch(submission, new_job, size, err);
    if (rc == 0 && task && !strchr(new_job, '_'))
        snprintf(new_job + strlen(new_job), size - strlen(new_job), "_%s", task);
    return rc;
}

static int cancel(const char *job, struct oom_error *err)
{
    const char *argv[] = {"scancel", job, NULL};

    return child_expect(argv, CALL_MS, NULL, err);
}

static int end_steps(const char *job, struct oom_error *err)
{
    const char *list[] = {"squeue", "-h", "-a", "-s", "-j", job, "-o", "%i", NULL};
    struct timespec nap = {0, 100 * 1000 * 1000};
    int64_t deadline_ms = elapsed_ms() + 30000;

    for (;;) {
        char *text = NULL;
        int left = 0;
        if (child_expect(list, CALL_MS, &text, err) < 0)
            return -1;
        for (char *save = NULL, *step = strtok_r(text, "\n", &save); step;
             step = strtok_r(NULL, "\n", &save)) {
            const char *dot = strchr(step, '.');
            if (!dot || dot[1] < '0' || dot[1] > '9')
                continue; /* batch and extern are not the job's own steps */
            const char *argv[] = {"scancel", "--signal=KILL", step, NULL};
            child_expect(argv, CALL_MS, NULL, NULL);
            left++;
        }
        free(text);
        if (!left)
            return 0;
        if (elapsed_ms() > deadline_ms)
            return oom_errorf(err, "%d steps of job %s would not end", left, job);
        nanosleep(&nap, NULL);
    }
}

const struct sched sched_slurm = {
    .name = "slurm",
    .inside = inside,
    .share = share,
    .describe = describe,
    .limits = limits,
    .accepts = slurm_accepts,
    .requeue = slurm_requeue,
    .submit = submit,
    .release = slurm_release,
    .cancel = cancel,
    .repoint = slurm_dependents_repoint,
    .is_away = slurm_is_away,
    .end_steps = end_steps,
    .on_nodes = slurm_on_nodes,
};
