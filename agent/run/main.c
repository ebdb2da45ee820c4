/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/evidence/sigset.h"
#include "agent/lib/standard_fds.h"
#include "agent/run/after.h"
#include "agent/run/capture.h"
#include "agent/run/clear.h"
#include "agent/run/options.h"
#include "agent/run/run.h"
#include "agent/run/seen.h"
#include "db/db.h"
#include "plugin/restore.h"

enum { HEAD_TIMEOUT_MS = 10000, HEAD_START_TIMEOUT_MS = 1500, HEAD_AWAY_S = 120 };

static void make_token(char *out, size_t size)
{
    unsigned char bytes[16] = {0};

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        snprintf((char *)bytes, sizeof(bytes), "%lld", (long long)db_now_ms());
    for (size_t i = 0; i < sizeof(bytes) && 2 * i + 2 < size; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static void close_parts(struct run *run)
{
    launch_close(&run->launch);
    output_close(run->output);
    seen_free(run->seen);
    logmarks_free(run->marks);
    policy_set_free(&run->prefetched);
    json_decref(run->places);
    oom_policy_free(run->proof_policy);
    oom_classifier_free(run->classifier);
    oom_signatures_free(run->signatures);
    api_close(run->api);
    if (run->base)
        event_base_free(run->base);
}

/* Ends as the command ended: the same exit code, or the same signal. */
static int end_like(int wait_status)
{
    if (WIFEXITED(wait_status))
        return WEXITSTATUS(wait_status);
    if (WIFSIGNALED(wait_status)) {
        struct rlimit no_core = {0, 0};
        sigset_t all;
        setrlimit(RLIMIT_CORE, &no_core); /* the command has left one if any */
        signal(WTERMSIG(wait_status), SIG_DFL);
        sigfillset(&all);
        sigprocmask(SIG_UNBLOCK, &all, NULL);
        raise(WTERMSIG(wait_status));
        return 128 + WTERMSIG(wait_status);
    }
    return 1;
}

/* Whatever is wrong here, the job runs as it would without oomrun. */
static int run_plain(struct run *run, const struct oom_error *err)
{
    say("%s; the command runs unsupervised", err->text);
    prctl(PR_SET_CHILD_SUBREAPER, 0); /* exec would keep both */
    signals_give_back(run);
    sigprocmask(SIG_SETMASK, &run->signal_mask, NULL);
    if (run->options.in_job)
        restore_and_exec(run->launch.argv);
    else
        execvp(run->launch.run_argv[0], run->launch.run_argv);
    int code = errno == ENOENT ? 127 : 126;
    say("cannot execute %s: %s", run->launch.run_argv[0], strerror(errno));
    return code;
}

static int open_parts(struct run *run, struct oom_error *err)
{
    int timeout_ms = run->options.in_job ? HEAD_START_TIMEOUT_MS : HEAD_TIMEOUT_MS;

    run->base = event_base_new();
    run->seen = seen_new();
    run->marks = logmarks_new();
    run->signatures = sigset_load(err);
    if (!run->base || !run->seen || !run->marks)
        return oom_errorf(err, "cannot make an event loop");
    if (!run->signatures)
        return -1;
    run->output = output_open(run->base, err);
    if (!run->output)
        return -1;
    run->api = run->options.in_job && !run->options.db_path
                   ? api_open_cluster(timeout_ms, err)
                   : api_open_default(run->options.db_path, timeout_ms, err);
    return run->api ? 0 : -1;
}

int new_classifier_for(struct run *run, struct oom_error *err)
{
    oom_classifier_free(run->classifier);
    run->classifier = oom_classifier_new(run->signatures);
    if (!run->classifier)
        return oom_errorf(err, "out of memory");
    return run->output ? output_begin(run->output, run->classifier, err) : 0;
}

/* A job that was queued or submitted again may have changes that only the head knows: without them
 * it would fail as before, so a head that is away is waited for; and so it is before the next
 * attempt in this allocation, which would be started a second time if nobody knew of it. A first
 * start is never held up. */
static int begin(struct run *run, struct attempt *attempt, struct oom_error *err)
{
    struct timespec nap = {1, 0};
    int rc = attempt_begin(run, attempt, err);

    bool waits = run->continues || attempt->edits.count > 0;
    for (int left_s = waits ? HEAD_AWAY_S : 0;
         rc < 0 && run->head_away && left_s > 0 && !cancel_pending(); left_s--) {
        nanosleep(&nap, NULL);
        rc = attempt_begin(run, attempt, err);
    }
    return rc;
}

/* How the command ended, as wait(2) says it. */
static int supervise(struct run *run)
{
    /* In a job that was queued again with a change that cannot be made, nothing will have run. */
    struct attempt attempt = {.number = 1, .wait_status = W_EXITCODE(1, 0)};
    struct oom_error err = {""};

    for (;;) {
        struct oom_error away = {""};
        attempt.ended_by_signal = 0;
        attempt.ended_early = false;
        attempt.own_restarts = 0;
        attempt.saved_gpu_s = 0;
        attempt.started_ms = 0;
        json_decref(run->places);
        run->places = output_places(run->output);
        attempt.proof[0] = '\0';
        if (run->options.in_job && attempt.number == 1 && !attempt.known)
            capture_job(run);
        if (begin(run, &attempt, &away) < 0 && attempt.known && attempt.edits.count > 0) {
            say("the next attempt cannot begin with its change: %s", away.text);
            break;
        }
        if (!attempt.known && run->options.in_job && !run->continues)
            run->late = late_leave(run, &attempt);
        if (launch_reveal(&run->launch, &err) < 0 || new_classifier_for(run, &err) < 0 ||
            attempt_run(run, &attempt, &err) < 0) {
            if (attempt.edits.count == 0)
                return W_EXITCODE(run_plain(run, &err), 0);
            say("%s", err.text);
            break;
        }
        enum next next = next_after(run, &attempt);
        if (next == NEXT_STOP && run->options.in_job && !run->untold)
            capture_forget(run);
        if (next != NEXT_INPLACE)
            break;
    }
    oom_edits_free(&attempt.edits);
    return attempt.wait_status;
}

int main(int argc, char **argv)
{
    struct arguments arguments;
    struct run run = {0};
    struct oom_error err = {""};
    bool submitted_again = getenv(CONTINUES_VARIABLE) != NULL;

    standard_fds_open();
    if (options_read(argc, argv, &arguments) < 0)
        return 2;
    run.options = arguments.options;
    if (arguments.look_since_ms > 0)
        return othernodes_look(&run, arguments.look_since_ms);
    sigprocmask(SIG_SETMASK, NULL, &run.signal_mask);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signals_take(&run);
    make_token(run.token, sizeof(run.token));
    if (arguments.after.job || arguments.hand_in) {
        run.signatures = sigset_load(&err);
        run.api = run.signatures ? api_open_cluster(HEAD_TIMEOUT_MS, &err) : NULL;
        int status = 1;
        if (!run.api)
            say("%s", err.text);
        else if (arguments.hand_in)
            status = late_hand_in(&run, arguments.hand_in);
        else
            status = after_main(&run, &arguments.after);
        launch_close(&run.launch);
        return status;
    }
    run.sched = sched_detect();
    if (run.sched)
        run.in_job_allocation = run.sched->inside(run.job, sizeof(run.job), run.cluster,
                                                  sizeof(run.cluster), &run.restart);
    /* The last sign is there when the controller has forgotten that it started this job before. */
    run.continues =
        run.options.in_job && (run.restart > 0 || submitted_again || capture_captured(&run));
    /* By hand inside an allocation: the job is not ours to queue again. */
    if (!run.options.in_job) {
        run.sched = NULL;
        /* In containers many have the same pid in the same second. */
        snprintf(run.job, sizeof(run.job), "%s", run.token);
    }
    if (!run.options.name) {
        const char *name = getenv("SLURM_JOB_NAME");
        const char *last = arguments.command[0];
        for (int i = 0; arguments.command[i] && arguments.command[i][0] != '-' && i < 2; i++)
            last = arguments.command[i];
        const char *base = strrchr(last, '/');
        run.options.name = name && run.options.in_job ? name : base ? base + 1 : last;
    }
    if (launch_open(&run.launch, arguments.command, run.options.in_job, &err) < 0 ||
        (!run.options.in_job && launch_take_stdin(&run.launch, &err) < 0) ||
        open_parts(&run, &err) < 0)
        return run_plain(&run, &err);
    int status = supervise(&run);
    close_parts(&run);
    return end_like(status);
}
