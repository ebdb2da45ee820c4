/* SPDX-License-Identifier: Apache-2.0
 *
 * After the fact: the supervisor of an attempt was killed (with its step, by the kernel, with its
 * node), or died between the decision and acting on it. The node's agent has become the job's
 * owner and runs this in the supervisor's place; the claim at the head has made sure that nobody
 * else does. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/lib/acted.h"
#include "agent/lib/jsonget.h"
#include "agent/run/after.h"
#include "agent/run/capture.h"
#include "agent/run/verdict.h"
#include "agent/sched/slurm_fields.h"
#include "db/db.h"

enum { TOO_LATE_S = 3600 };

static void fill_exit(struct run *run, struct attempt *attempt, const struct slurm_job *job,
                      const struct after_options *options)
{
    char word[128];
    int code = 0, signal_number = 0;

    oom_exit_init(&attempt->exit);
    if (options->batch_status >= 0) {
        attempt->wait_status = options->batch_status;
        code = (options->batch_status >> 8) & 0xff;
        signal_number = options->batch_status & 0x7f;
    } else if (slurm_field(job->text, "ExitCode", word, sizeof(word))) {
        sscanf(word, "%d:%d", &code, &signal_number);
        attempt->wait_status = code << 8 | (signal_number & 0x7f);
    }
    attempt->exit.exit_code = signal_number ? -1 : code;
    attempt->exit.signal = signal_number == 125 ? 9 : signal_number; /* 0:125 is Slurm's OOM */
    snprintf(attempt->exit.state, sizeof(attempt->exit.state), "%.*s",
             (int)sizeof(attempt->exit.state) - 1, job->state);
    if (slurm_field(job->text, "DerivedExitCode", word, sizeof(word)) &&
        sscanf(word, "%d:%d", &code, &signal_number) == 2 && signal_number == 125)
        attempt->exit.derived_exit_code = 253;
    attempt->exit.cgroup_oom_kills = verdict_reported_kills(run, attempt);
    attempt->ended_ago_ms = slurm_job_ended_s_ago(job) * 1000;
    attempt->ended_ms = db_now_ms() - attempt->ended_ago_ms;
    if (attempt->ended_ms < attempt->started_ms)
        attempt->ended_ms = attempt->started_ms;
}

/* `former` is the attempt before, NULL where there is none. */
static int load_lineage(struct run *run, struct attempt *attempt, json_t **row,
                        json_t **lineage_row, json_t **former, struct oom_error *err)
{
    char path[64];
    json_t *reply = NULL;

    snprintf(path, sizeof(path), "/v1/history/L%lld", (long long)attempt->lineage);
    if (api_call(run->api, "GET", path, NULL, &reply, err) != 200) {
        json_decref(reply);
        return -1;
    }
    const json_t *lineage = json_object_get(reply, "lineage");
    const json_t *options = json_object_get(lineage, "options");
    /* What the supervisor captured at the start is kept under this name. */
    snprintf(run->cluster, sizeof(run->cluster), "%s", json_get_string(lineage, "cluster", ""));
    run->options.policy = strdup(json_get_string(options, "policy", "auto"));
    run->options.mode = strdup(json_get_string(options, "mode", "auto"));
    run->options.allow = strdup(json_get_string(options, "allow", ""));
    run->options.max_retries = (int)json_get_int(options, "max_retries", -1);
    const json_t *attempts = json_object_get(reply, "attempts");
    *row = json_incref(json_array_get(attempts, (size_t)attempt->number - 1));
    /* How often the job had been restarted when the attempt that failed ran. */
    bool intended = strcmp(json_get_string(*row, "state", ""), "intended") == 0;
    run->restart = (int)json_get_int(intended && attempt->number > 1
                                         ? json_array_get(attempts, (size_t)attempt->number - 2)
                                         : *row,
                                     "restart", 0);
    if (attempt->number > 1)
        *former = json_incref(json_array_get(attempts, (size_t)attempt->number - 2));
    int64_t created_ms = json_get_int(lineage, "created_ms", 0);
    *lineage_row = json_incref(json_object_get(reply, "lineage"));
    json_decref(reply);
    if (!*row)
        return oom_errorf(err, "lineage %lld has no attempt %lld", (long long)attempt->lineage,
                          (long long)attempt->number);
    attempt->started_ms = json_get_int(*row, "started_ms", 0);
    attempt->lineage_ms = created_ms;
    return oom_edits_from_json(json_object_get(*row, "total_edits"), &attempt->edits);
}

/* The lineage is over for a reason that no attempt of it reported. */
static void stop_lineage(struct run *run, const struct attempt *attempt, const char *why)
{
    next_note(run, attempt->lineage, attempt->number, "stopped", why);
    capture_forget(run);
}

/* How the attempt came out, from what is left of it. */
static void close_attempt(struct run *run, struct attempt *attempt, const char *reason)
{
    next_tell_end(run, attempt, NULL, reason);
    capture_forget(run);
}

/* There is no job any more whose end could be looked at. */
static void job_is_gone(struct run *run, struct attempt *attempt, bool intended, bool another)
{
    char why[200];

    oom_exit_init(&attempt->exit);
    snprintf(attempt->exit.state, sizeof(attempt->exit.state), "UNKNOWN");
    snprintf(why, sizeof(why),
             another ? "the scheduler lost job %s and gave its id to another one"
                     : "the scheduler does not know job %s any more, so how it ended is not known",
             run->job);
    if (intended)
        stop_lineage(run, attempt, why);
    else
        close_attempt(run, attempt, why);
}

/* The decision was stored, the deed was not done, or has to be done once more. */
int after_carry_out(struct run *run, struct attempt *attempt, const json_t *row,
                    struct oom_error *err)
{
    struct oom_decision decision;

    if (after_open_script(run, err) < 0)
        return -1;
    oom_decision_init(&decision);
    int rc = oom_decision_from_json(json_object_get(row, "decision"), &decision, err);
    if (rc == 0) {
        struct oom_edits total = attempt->edits;
        attempt->edits = (struct oom_edits){NULL, 0};
        next_start(run, attempt, &decision, &total, attempt->number);
        oom_edits_free(&total);
    }
    oom_decision_free(&decision);
    return rc;
}

/* Whether the job is launched once more: its launch failed, and no second one has been tried. */
static bool may_launch_again(const struct slurm_job *job, const json_t *row, bool unbegun)
{
    return slurm_job_never_launched(job, unbegun) &&
           !acted_once_more(json_get_string(row, "acted", ""));
}

static int finish_intended(struct run *run, struct attempt *attempt, const json_t *row,
                           const struct slurm_job *job, const struct after_options *options,
                           struct oom_error *err)
{
    const char *acted = json_get_string(row, "acted", "");

    /* By somebody who did not want it started once more, whatever had been decided. */
    if (slurm_job_is_cancelled(job)) {
        stop_lineage(run, attempt, "the job was cancelled before its next attempt began");
        return 0;
    }
    bool over = job->over || (options->batch_status >= 0 && !options->orphan);
    bool done = acted_is_done(acted);
    char why[200];

    /* A controller that is killed forgets what it has not saved: this one has not started the job
     * since. */
    if (done && acted_is_queued(acted) && (job->over || options->orphan) &&
        job->restarts <= run->restart)
        done = false;
    if (done && slurm_job_is_held_again(job))
        done = false;
    /* It was queued again, and nobody could say so any more. */
    if (!done && job->restarts > run->restart && strcmp(job->state, "PENDING") != 0 &&
        strcmp(json_get_string(row, "mode", ""), "resubmit") != 0)
        done = true;
    if (!done) {
        /* Pending already with its change: the start time is what may be missing. */
        if (over || options->orphan || strcmp(job->state, "PENDING") == 0)
            return after_carry_out(run, attempt, row, err);
        return 0;
    }
    if (!over)
        return 0;
    if (may_launch_again(job, row, options->unbegun)) {
        run->once_more = ACTED_ONCE_MORE;
        run->restart = job->restarts;
        return after_carry_out(run, attempt, row, err);
    }
    snprintf(why, sizeof(why), "job %s is %s without the attempt having begun under oomrun",
             run->job, job->state);
    stop_lineage(run, attempt, why);
    return 0;
}

/* A decided attempt that had been announced, and whose supervisor died before its command. */
static bool died_before_its_command(const struct attempt *attempt, const json_t *row,
                                    const struct slurm_job *job,
                                    const struct after_options *options)
{
    const char *mode = json_get_string(row, "mode", "");

    return options->unbegun && !slurm_job_is_cancelled(job) && attempt->number > 1 &&
           (strcmp(mode, "requeue") == 0 || strcmp(mode, "resubmit") == 0) &&
           may_launch_again(job, row, true);
}

static int finish_running(struct run *run, struct attempt *attempt, const json_t *row,
                          const struct slurm_job *job, const struct after_options *options,
                          struct oom_error *err)
{
    const json_t *logs = json_object_get(json_object_get(row, "evidence"), "log");

    /* The controller has forgotten that it had started it; a requeuehold of its owner would have
     * raised the count. */
    if (slurm_job_is_held_again(job) && job->restarts <= run->restart)
        return run->sched->release(run->job, err);
    if (job->restarts > run->restart || (!job->over && options->batch_status < 0))
        return 0; /* its next supervisor takes over, or it is running */
    if (died_before_its_command(attempt, row, job, options)) {
        run->once_more = ACTED_ONCE_MORE;
        return after_carry_out(run, attempt, row, err);
    }
    if (slurm_job_ended_s_ago(job) > TOO_LATE_S) {
        oom_exit_init(&attempt->exit);
        attempt->ended_ago_ms = slurm_job_ended_s_ago(job) * 1000;
        close_attempt(run, attempt,
                      "the job ended more than an hour before anybody could look at it; it is not "
                      "started again unasked");
        return 0;
    }
    if (new_classifier_for(run, err) < 0 || after_open_script(run, err) < 0)
        return -1;
    fill_exit(run, attempt, job, options);
    if (*run->log_path)
        after_feed_log(run, run->log_path, logs);
    if (*run->error_path)
        after_feed_log(run, run->error_path, logs);
    if (*run->log_path)
        after_speak_into(run->log_path);
    /* While the job is COMPLETING its state does not tell; its supervisor has, if it was told. */
    int told = (int)json_integer_value(json_object_get(json_object_get(row, "evidence"), "told"));
    if (told > 0 || slurm_job_ended_by_others(job))
        attempt->ended_by_signal = told > 0 && told < NSIG ? told : SIGTERM;
    next_after(run, attempt);
    return 0;
}

static void find_logs(struct run *run, const struct slurm_job *job)
{
    slurm_field(job->text, "StdOut", run->log_path, sizeof(run->log_path));
    if (slurm_field(job->text, "StdErr", run->error_path, sizeof(run->error_path)) &&
        strcmp(run->log_path, run->error_path) == 0)
        run->error_path[0] = '\0';
}

int after_main(struct run *run, const struct after_options *options)
{
    struct attempt attempt = {
        .lineage = options->lineage, .number = options->attempt, .known = true, .applied = -1};
    struct oom_error err = {""};
    json_t *row = NULL, *lineage = NULL;
    struct slurm_job job = {0};
    json_t *former = NULL;
    char directory[4096];
    int rc = -1;

    snprintf(run->job, sizeof(run->job), "%s", options->job);
    snprintf(run->handle, sizeof(run->handle), "%s", options->job);
    run->after = true;
    run->orphan = options->orphan;
    run->in_job_allocation = true;
    run->sched = &sched_slurm;
    /* A supervisor that is only being launched is no more than killed by a cancellation. */
    bool settle =
        options->batch_status < 0 || (options->unbegun && WIFSIGNALED(options->batch_status) &&
                                      WTERMSIG(options->batch_status) == SIGTERM);
    if (slurm_job_read(&job, run->job, settle, &err) < 0 ||
        load_lineage(run, &attempt, &row, &lineage, &former, &err) < 0)
        goto out;
    bool intended = strcmp(json_get_string(row, "state", ""), "intended") == 0;
    bool another =
        !job.unknown && slurm_job_is_another(&job, lineage, attempt.started_ms, run->restart);
    rc = 0;
    enum after_lost lost = intended && job.unknown
                               ? after_new_job_lost(lineage, row, former, &run->orphan, &err)
                               : AFTER_NOT_LOST;
    if (lost == AFTER_LOST_PERHAPS)
        goto out;
    if (lost == AFTER_LOST) {
        rc = after_submit_once_more(run, &attempt, row, former, &err);
        goto out;
    }
    if (job.unknown || another) {
        job_is_gone(run, &attempt, intended, another);
        goto out;
    }
    if (slurm_field(job.text, "WorkDir", directory, sizeof(directory)) && chdir(directory) < 0)
        fprintf(stderr, "oomrun: cannot enter %s: %s\n", directory, strerror(errno));
    find_logs(run, &job);
    if (intended && former && after_waits_for_release(&job, &attempt))
        rc = after_let_go(run, &attempt, json_get_string(former, "job", ""), &err);
    else if (intended)
        rc = finish_intended(run, &attempt, row, &job, options, &err);
    else
        rc = finish_running(run, &attempt, row, &job, options, &err);
out:
    if (rc < 0)
        fprintf(stderr, "oomrun: job %s: %s\n", run->job, err.text);
    json_decref(row);
    json_decref(former);
    json_decref(lineage);
    slurm_job_free(&job);
    oom_edits_free(&attempt.edits);
    return rc < 0;
}
