/* SPDX-License-Identifier: Apache-2.0
 *
 * A new job in the place of an old one, for jobs that may not be queued again (--no-requeue, or
 * the user's wish). What cannot be asked from Slurm later was captured when the batch step started
 * (capture.c); options in the script stay there. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/files.h"
#include "agent/run/capture.h"
#include "agent/run/run.h"
#include "agent/sched/slurm_fields.h"
#include "agent/sched/slurm_job.h"
#include "agent/sched/slurm_marked.h"
#include "agent/sched/slurm_options.h"

/* Of what the job was submitted with, without the script's arguments; false: from no file. */
static bool directory_of_script(const struct run *run, char *const *args, char *out, size_t size)
{
    struct oom_error err = {""};
    struct slurm_job job;
    bool found = slurm_job_read(&job, run->job, false, &err) == 0 && job.text &&
                 slurm_field(job.text, "Command", out, size) && out[0] == '/';
    size_t used = found ? strlen(out) : 0, words = 0;

    for (; args && *args; args++)
        words += 1 + strlen(*args);
    slurm_job_free(&job);
    if (words >= used || (words > 0 && out[used - words] != ' '))
        return false;
    out[used - words] = '\0';
    *strrchr(out, '/') = '\0';
    return true;
}

/* Beside the one that it replaces, as scripts look for their own directory in the job's record
 * (Command); where that cannot be written, in /tmp. */
static int write_script(const struct run *run, char *const *args, char *path, size_t size,
                        struct oom_error *err)
{
    static const char name[] = "/.oomrun-submit-XXXXXX";
    const char *bytes = run->launch.script_bytes;
    size_t length = run->launch.script_length;

    if (directory_of_script(run, args, path, size - sizeof(name))) {
        strcat(path, name);
        if (file_write_temporary(path, bytes, length, 0600, NULL) == 0)
            return 0;
    }
    return file_write_in_tmp("oomrun-submit", bytes, length, 0600, path, size, err);
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
    char script[4096], environment[4096];
    char *args_bytes, *dir_bytes, *asked_bytes;
    char **args = capture_read(run, "args", &args_bytes);
    char **directory = capture_read(run, "dir", &dir_bytes);
    char **asked = capture_read(run, "options", &asked_bytes);
    struct slurm_options options = {0};
    struct oom_error notice = {""};
    int rc = -1;

    if (capture_path(run, "env", environment, sizeof(environment)) < 0 || !args || !directory) {
        oom_errorf(err, "the environment and the arguments of the job were not kept: neither its "
                        "owner's home nor /var/tmp could be written when it began, or it began on "
                        "another node");
    } else if (opt_in_again(run, &options, err) == 0 &&
               slurm_options_of(run->job, asked ? asked[0] : NULL, resources, mark, &options,
                                err) == 0 &&
               write_script(run, args, script, sizeof(script), err) == 0) {
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
    free(asked);
    free(asked_bytes);
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
    capture_hand_over(run, new_job);
    return run->sched->release(new_job, err) < 0 ? -1 : 0;
}
