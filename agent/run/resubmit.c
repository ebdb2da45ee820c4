/* SPDX-License-Identifier: Apache-2.0
 *
 * A new job in the place of an old one, for jobs that may not be queued again (--no-requeue, or
 * the user's wish). What cannot be asked from Slurm later (environment, arguments, directory) was
 * captured when the batch step started; options in the script stay there; the rest of the old job
 * is given again (agent/sched/slurm_options.c). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/lib/files.h"
#include "agent/lib/paths.h"
#include "agent/run/run.h"
#include "agent/sched/slurm_marked.h"
#include "agent/sched/slurm_options.h"

extern char **environ;

enum { MAX_CAPTURE_BYTES = 4 * 1024 * 1024 };

static const char *const kinds[] = {"env", "args", "dir"};

static int capture_path_of(const struct run *run, const char *job, const char *kind, char *out,
                           size_t size)
{
    char directory[3000];

    if (paths_state_dir(directory, sizeof(directory), NULL) < 0)
        return -1;
    int n = snprintf(out, size, "%s/%s-%s.%s", directory, *run->cluster ? run->cluster : "slurm",
                     job, kind);
    return n > 0 && (size_t)n < size ? 0 : -1;
}

static int capture_path(const struct run *run, const char *kind, char *out, size_t size)
{
    return capture_path_of(run, run->job, kind, out, size);
}

/* The old job's own variables would steer the new submission, and describe another allocation;
 * those that sbatch itself puts into the environment are not made anew from a file. */
static bool belongs_to_job(const char *variable)
{
    static const char *const kept[] = {
        "SLURM_JOB_NAME=",     "SLURM_SUBMIT_DIR=", "SLURM_SUBMIT_HOST=",
        "SLURM_PRIO_PROCESS=", "SLURM_UMASK=",      "SLURM_RLIMIT_"};
    static const char *const prefixes[] = {"SLURM_",
                                           "SBATCH_",
                                           "SLURMD_",
                                           "OOMRETRY_",
                                           "SPANK_",
                                           "_SLURM_",
                                           "SRUN_",
                                           "CUDA_VISIBLE_DEVICES=",
                                           "ROCR_VISIBLE_DEVICES=",
                                           "GPU_DEVICE_ORDINAL=",
                                           "ENVIRONMENT=BATCH",
                                           "HOSTNAME="};

    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        if (strncmp(variable, kept[i], strlen(kept[i])) == 0)
            return false;
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static void put_list(FILE *out, char *const *list, bool environment)
{
    static const char continues[] = CONTINUES_VARIABLE "=1";

    for (size_t i = 0; list && list[i]; i++)
        if (!environment || !belongs_to_job(list[i]))
            fwrite(list[i], 1, strlen(list[i]) + 1, out);
    if (environment)
        fwrite(continues, 1, sizeof(continues), out);
}

static void write_list(const struct run *run, const char *kind, char *const *list, bool environment)
{
    char path[4096], *bytes = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&bytes, &length);

    if (!out)
        return;
    put_list(out, list, environment);
    fclose(out);
    if (capture_path(run, kind, path, sizeof(path)) == 0)
        file_replace(path, bytes, length, 0600, NULL);
    free(bytes);
}

void resubmit_capture(const struct run *run)
{
    char directory[4096];
    char *where[] = {getcwd(directory, sizeof(directory)) ? directory : NULL, NULL};

    write_list(run, "env", environ, true);
    write_list(run, "args", run->launch.argv + 1, false);
    write_list(run, "dir", where, false);
}

bool resubmit_captured(const struct run *run)
{
    char path[4096];

    return capture_path(run, "env", path, sizeof(path)) == 0 && access(path, F_OK) == 0;
}

void resubmit_forget(const struct run *run)
{
    char path[4096];

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (capture_path(run, kinds[i], path, sizeof(path)) == 0)
            unlink(path);
}

/* The new job captures its own when it starts; until then it has this one's, should it fail to. */
static void hand_over(const struct run *run, const char *new_job)
{
    char from[4096], to[4096];

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (capture_path(run, kinds[i], from, sizeof(from)) == 0 &&
            capture_path_of(run, new_job, kinds[i], to, sizeof(to)) == 0)
            rename(from, to);
}

/* NUL-separated strings back into a list inside `bytes`. */
static char **read_list(const struct run *run, const char *kind, char **bytes)
{
    char path[4096];
    size_t length = 0, count = 0;

    *bytes = NULL;
    if (capture_path(run, kind, path, sizeof(path)) < 0 ||
        file_read(path, MAX_CAPTURE_BYTES, bytes, &length, NULL) != 0)
        return NULL;
    char **list = calloc(length + 1, sizeof(char *));
    for (size_t at = 0; list && at < length; at += strlen(*bytes + at) + 1)
        list[count++] = *bytes + at;
    return list;
}

static int write_script(const struct run *run, char *path, struct oom_error *err)
{
    return file_write_temporary(path, run->launch.script_bytes, run->launch.script_length, 0600,
                                err);
}

/* The plugin's own options came by command line or environment, or stand in the script; said again
 * they hold in any case. */
static int opt_in_again(const struct run *run, struct slurm_options *options, struct oom_error *err)
{
    const struct run_options *o = &run->options;
    char retries[16];
    int rc = slurm_options_add(options, "oom-retry", o->policy);

    if (rc == 0 && o->max_retries >= 0) {
        snprintf(retries, sizeof(retries), "%d", o->max_retries);
        rc = slurm_options_add(options, "oom-max-retries", retries);
    }
    if (rc == 0)
        rc = slurm_options_add(options, "oom-mode", o->mode);
    if (rc == 0 && *o->allow)
        rc = slurm_options_add(options, "oom-allow", o->allow);
    return rc == 0 ? 0 : oom_errorf(err, "out of memory");
}

static int submit(struct run *run, const struct oom_edits *resources, const char *mark,
                  char *new_job, size_t size, struct oom_error *err)
{
    char script[] = "/tmp/oomrun-submit-XXXXXX", environment[4096];
    char *args_bytes, *dir_bytes, **args = read_list(run, "args", &args_bytes);
    char **directory = read_list(run, "dir", &dir_bytes);
    struct slurm_options options = {0};
    struct oom_error notice = {""};
    int rc = -1;

    if (capture_path(run, "env", environment, sizeof(environment)) < 0 ||
        access(environment, R_OK) < 0) {
        oom_errorf(err, "the environment of the job was not kept");
    } else if (slurm_options_of(run->job, resources, mark, &options, err) == 0 &&
               opt_in_again(run, &options, err) == 0 && write_script(run, script, err) == 0) {
        struct sched_submission submission = {
            .script = script,
            .args = (const char *const *)args,
            .options = (const char *const *)options.items,
            .directory = directory ? directory[0] : NULL,
            .environment_file = environment,
            .hold = true,
            .mark = mark,
            .except = run->job,
            .notice = &notice,
        };
        rc = run->sched->submit(&submission, new_job, size, err);
        if (rc == 0 && notice.text[0])
            say("%s", notice.text);
        unlink(script);
    }
    slurm_options_free(&options);
    free(args);
    free(args_bytes);
    free(directory);
    free(dir_bytes);
    return rc;
}

int resubmit(struct run *run, const struct attempt *attempt, const struct oom_edits *resources,
             int64_t number, char *new_job, size_t size, struct oom_error *err)
{
    char mark[64], held[80];

    slurm_mark(attempt->lineage, number, mark, sizeof(mark));
    snprintf(held, sizeof(held), "%s" SLURM_MARK_HELD, mark);
    if (!run->launch.script_bytes)
        return oom_errorf(err, "there is no batch script to submit again");
    int found = slurm_find_marked(mark, run->job, new_job, size, err);
    if (found < 0 || (found == 0 && submit(run, resources, held, new_job, size, err) < 0))
        return -1;
    return resubmit_let_go(run, attempt, number, new_job, err);
}

int resubmit_let_go(struct run *run, const struct attempt *attempt, int64_t number,
                    const char *new_job, struct oom_error *err)
{
    /* Held until the head knows it and every dependent waits for it: nobody sees a gap. */
    json_t *body = json_pack("{s:I, s:I, s:s}", "lineage", (json_int_t)attempt->lineage, "attempt",
                             (json_int_t)number, "job", new_job);
    json_t *reply = NULL;
    int status = api_call(run->api, "POST", "/v1/attempts/note", body, &reply, err);
    json_decref(body);
    json_decref(reply);
    if (status != 200)
        return -1;
    if (run->sched->repoint(run->job, new_job, err) < 0)
        return -1;
    hand_over(run, new_job);
    return run->sched->release(new_job, err) < 0 ? -1 : 0;
}
