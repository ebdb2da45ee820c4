/* SPDX-License-Identifier: Apache-2.0
 *
 * One attempt: start the command, wait for it, pass signals on, keep an eye on the log and on the
 * arguments that the training program was given. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/evidence/cgroup.h"
#include "agent/evidence/otherlogs.h"
#include "agent/lib/elapsed.h"
#include "agent/lib/proctree.h"
#include "agent/run/body.h"
#include "agent/run/clear.h"
#include "agent/run/run.h"
#include "agent/run/seen.h"
#include "db/db.h"

enum {
    LOOK_FIRST_MS = 25,
    LOOK_SLOW_MS = 1000,
    LOOK_LATE_MS = 5000,
    LOOK_FAST_FOR_MS = 5000,
    LOOK_LATE_AFTER_MS = 30 * 60 * 1000, /* then it runs, and what may come is what follows it */
    LOOK_SHARE = 20,
    LOOK_FAST_SHARE = 4,
    GRACE_KILL_MS = 5000,
    PREFETCH_AFTER_MS = 300,
    ORPHANS_LOOK_MS = 10,
    ORPHANS_QUIET_MS = 500,
    ORPHANS_MAX_MS = 5000,
};

struct watch {
    struct run *run;
    struct attempt *attempt;
    pid_t pid;
    bool ended;
    bool prefetched;  /* tried, at least */
    sigset_t earlier; /* what was pending when there was no command yet: it has not got that */
    int signal_fd;
    struct event *signals, *timer;
    int64_t look_at_ms;     /* at the processes, next; on the clock of elapsed_ms */
    int64_t quiet_since_ms; /* the log has said nothing new since; 0: it speaks */
};

/* Slurm sends CONT and TERM of a cancellation to every process by itself, and CONT after other
 * signals too; what --batch and --signal=B: send reaches only this one. Seen on 22.05. */
static bool must_forward(struct watch *watch, const struct signalfd_siginfo *info)
{
    int signo = (int)info->ssi_signo;

    if (sigismember(&watch->earlier, signo) == 1) {
        sigdelset(&watch->earlier, signo);
        return true;
    }
    if (info->ssi_code == SI_KERNEL)
        return false;
    if (!watch->run->options.in_job)
        return true;
    return signo != SIGCONT && !witness_saw(signo);
}

int64_t attempt_now_ms(const struct attempt *attempt)
{
    return attempt->started_ms + elapsed_ms() - attempt->began_ms;
}

static void reap(struct watch *watch)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != watch->pid)
            continue; /* an orphan that came to us */
        watch->attempt->wait_status = status;
        watch->attempt->ended_ms = attempt_now_ms(watch->attempt);
        watch->ended = true;
        event_base_loopbreak(watch->run->base);
    }
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
    struct watch *watch = arg;
    struct signalfd_siginfo info;
    bool told = false;

    (void)what;
    while (read(fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGCHLD) {
            reap(watch);
            continue;
        }
        if (info.ssi_signo == SIGWINCH)
            output_resize(watch->run->output);
        if (cancel_is_signal((int)info.ssi_signo)) {
            told = told || watch->attempt->ended_by_signal == 0;
            watch->attempt->ended_by_signal = (int)info.ssi_signo;
        }
        if (must_forward(watch, &info) && !watch->ended)
            kill(watch->pid, (int)info.ssi_signo);
    }
    if (told && !watch->ended)
        cancel_tell(watch->run, watch->attempt);
}

static void end_early(struct attempt *attempt)
{
    attempt->ended_early = true;
    attempt->grace_ms = elapsed_ms();
    leftovers_signal(SIGTERM);
}

/* What the ranks that wait would have held for nothing, at most: up to the time limit. */
static void count_saved(struct run *run, struct attempt *attempt)
{
    struct oom_values facts = {NULL, 0};
    int64_t gpus = body_gpus(), left_s = 0;

    if (gpus > 0 && run->sched && run->sched->describe(run->job, &facts, NULL) == 0) {
        const char *text = oom_values_get(&facts, "slurm.time_left_s");
        left_s = text ? atoll(text) : 0;
    }
    oom_values_free(&facts);
    if (left_s <= 0)
        return;
    attempt->saved_gpu_s = gpus * left_s;
    say("  up to the time limit that saves %.1f GPU-hours", (double)attempt->saved_gpu_s / 3600.0);
}

/* One rank has run out and the others wait for it: nothing new in the log for the grace period,
 * and if it ended like this, memory would be the reason. */
static void look_for_hang(struct watch *watch, int64_t fresh_bytes)
{
    struct run *run = watch->run;
    struct attempt *attempt = watch->attempt;
    int64_t now = elapsed_ms();
    struct oom_incident incident;
    struct oom_exit as_if;

    if (attempt->ended_early) {
        if (now - attempt->grace_ms > GRACE_KILL_MS)
            leftovers_signal(SIGKILL);
        return;
    }
    if (fresh_bytes > 0 || watch->quiet_since_ms == 0) {
        watch->quiet_since_ms = now;
        return;
    }
    if (run->options.grace_s <= 0 ||
        now - watch->quiet_since_ms < (int64_t)run->options.grace_s * 1000)
        return;
    watch->quiet_since_ms = now; /* the next look is a grace period away */
    oom_incident_init(&incident);
    oom_exit_init(&as_if);
    as_if.exit_code = 1;
    if (oom_classifier_verdict(run->classifier, &as_if, &incident, NULL) == 0 && incident.oom &&
        incident.confidence >= 0.8) {
        say("%s; the log has been silent for %d s since, so the attempt is ended now",
            incident.summary, run->options.grace_s);
        count_saved(run, attempt);
        end_early(attempt);
    }
    oom_incident_free(&incident);
}

/* On a node with many processes a look takes long: at most a twentieth of a core, and a quarter in
 * the first seconds. */
static void look(struct watch *watch, int64_t now, int64_t age_ms, int64_t pause_ms)
{
    if (now < watch->look_at_ms)
        return;
    proof_look(watch->run, watch->attempt);
    int64_t took_ms = elapsed_ms() - now;
    int64_t share_ms = took_ms * (age_ms < LOOK_FAST_FOR_MS ? LOOK_FAST_SHARE : LOOK_SHARE);
    watch->look_at_ms = now + (pause_ms < share_ms ? share_ms : pause_ms);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct watch *watch = arg;
    struct output *output = watch->run->output;
    int64_t now = elapsed_ms(), age_ms = now - watch->attempt->began_ms;
    /* The training program starts soon, or is short-lived: look often at first. */
    int64_t wait_ms = age_ms < LOOK_FAST_FOR_MS ? LOOK_FIRST_MS : LOOK_SLOW_MS;

    (void)fd;
    (void)what;
    if (output_catch_up(output))
        seen_poll(watch->run->seen, proctree_now_ms(), output_lines(output, 0),
                  output_lines(output, 1));
    look_for_hang(watch, output_poll(output));
    look(watch, now, age_ms, age_ms < LOOK_LATE_AFTER_MS ? wait_ms : LOOK_LATE_MS);
    if (age_ms > PREFETCH_AFTER_MS && !watch->prefetched) {
        watch->prefetched = true;
        next_prefetch(watch->run, watch->attempt);
    }
    if (!watch->attempt->ended_early && own_restart_look(watch->run, watch->attempt))
        end_early(watch->attempt);
    struct timeval next = {wait_ms / 1000, (wait_ms % 1000) * 1000};
    reap(watch);
    if (!watch->ended)
        event_add(watch->timer, &next);
}

/* What ends a command ends it before it executes anything. Sent to a shell that has begun, it would
 * be lost: a shell that alone gets a Ctrl-C goes on when its command does. */
static void take_earlier(const sigset_t *earlier)
{
    for (int signo = 1; signo < NSIG; signo++)
        if (sigismember(earlier, signo) == 1 && cancel_is_signal(signo))
            raise(signo);
}

static void child(const struct run *run, const sigset_t *earlier, const sigset_t *mask)
{
    const struct launch *launch = &run->launch;
    char number[24];

    signals_give_back(run);
    take_earlier(earlier);
    sigprocmask(SIG_SETMASK, mask, NULL);
    output_child(run->output);
    launch_rewind(launch);
    if (launch->preload_file)
        preload_environment();
    snprintf(number, sizeof(number), "%lld", (long long)run->attempt_number);
    setenv("OOMRETRY_ATTEMPT", number, 1);
    execvp(launch->run_argv[0], launch->run_argv);
    int code = errno == ENOENT ? 127 : 126;
    dprintf(2, "oomrun: cannot execute %s: %s\n", launch->run_argv[0], strerror(errno));
    _exit(code);
}

static int start(struct watch *watch, struct oom_error *err)
{
    struct timeval first = {0, LOOK_FIRST_MS * 1000};
    sigset_t all;

    sigfillset(&all);
    /* Faults are this program's own; the rest is for the command. */
    static const int own[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGABRT, SIGTRAP,
                              SIGPIPE, SIGXFSZ, SIGTTIN, SIGTTOU, SIGTSTP};
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        sigdelset(&all, own[i]);
    sigprocmask(SIG_BLOCK, &all, NULL);
    watch->signal_fd = signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
    if (watch->signal_fd < 0)
        return oom_errorf(err, "cannot watch signals: %s", strerror(errno));
    watch->signals =
        event_new(watch->run->base, watch->signal_fd, EV_READ | EV_PERSIST, on_signal, watch);
    watch->timer = evtimer_new(watch->run->base, on_timer, watch);
    if (!watch->signals || !watch->timer || event_add(watch->signals, NULL) < 0 ||
        event_add(watch->timer, &first) < 0)
        return oom_errorf(err, "cannot set up the event loop");
    sigpending(&watch->earlier);
    watch->pid = fork();
    if (watch->pid < 0)
        return oom_errorf(err, "cannot fork: %s", strerror(errno));
    if (watch->pid == 0)
        child(watch->run, &watch->earlier, &watch->run->signal_mask);
    if (watch->run->options.in_job)
        witness_start();
    output_parent(watch->run->output);
    return 0;
}

static void stop(struct watch *watch)
{
    witness_stop();
    if (watch->signals)
        event_free(watch->signals);
    if (watch->timer)
        event_free(watch->timer);
    if (watch->signal_fd >= 0)
        close(watch->signal_fd);
}

/* True while there are orphans: all that the command has left came to us. */
static bool have_orphans(void)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        ;
    return pid == 0;
}

/* Behind `exec > >(tee log)` the last words may still be on their way through a process for which
 * the script did not wait. As long as something comes there may be more. */
static void hear_orphans_out(const struct watch *watch)
{
    struct timespec nap = {0, ORPHANS_LOOK_MS * 1000000L};
    int64_t began_ms = elapsed_ms(), heard_ms = began_ms;

    witness_stop(); /* a child of ours, and nobody is left to pass signals on to */
    while (have_orphans() && watch->attempt->ended_by_signal == 0) {
        event_base_loop(watch->run->base, EVLOOP_NONBLOCK);
        int64_t now = elapsed_ms();
        if (output_poll(watch->run->output) > 0)
            heard_ms = now;
        if (now - heard_ms > ORPHANS_QUIET_MS || now - began_ms > ORPHANS_MAX_MS)
            break;
        nanosleep(&nap, NULL);
    }
}

/* The script as the user wrote it: its logs are where the rewritten one's are. */
static void mark_logs(struct run *run)
{
    struct oom_script *script = launch_parse(&run->launch, NULL);

    if (run->marks)
        otherlogs_mark(run->marks, script);
    oom_script_free(script);
}

int attempt_run(struct run *run, struct attempt *attempt, struct oom_error *err)
{
    struct watch watch = {.run = run, .attempt = attempt, .signal_fd = -1};
    struct cgroup_counters before, after;

    attempt->applied = -1;
    run->launch.ran = NULL;
    seen_clear(run->seen);
    mark_logs(run);
    attempt->started_ms = db_now_ms();
    attempt->began_ms = elapsed_ms();
    run->attempt_number = attempt->number;
    cgroup_read_own(&before);
    int rc = start(&watch, err);
    /* A signal that came between two attempts is still pending and is read first. */
    while (rc == 0 && !watch.ended)
        event_base_loop(run->base, EVLOOP_ONCE);
    if (rc == 0) {
        /* The timer may have seen the end before the signal that caused it was read. */
        on_signal(watch.signal_fd, EV_READ, &watch);
        if (output_relayed(run->output) || !WIFEXITED(attempt->wait_status) ||
            WEXITSTATUS(attempt->wait_status) != 0)
            hear_orphans_out(&watch);
        output_end(run->output, attempt->ended_by_signal != 0);
        own_restart_count(run, attempt);
    }
    stop(&watch);
    if (rc < 0)
        return -1;
    cgroup_read_own(&after);
    oom_exit_init(&attempt->exit);
    attempt->exit.exit_code =
        WIFEXITED(attempt->wait_status) ? WEXITSTATUS(attempt->wait_status) : -1;
    attempt->exit.signal = WIFSIGNALED(attempt->wait_status) ? WTERMSIG(attempt->wait_status) : 0;
    if (before.oom_kills >= 0 && after.oom_kills >= before.oom_kills)
        attempt->exit.cgroup_oom_kills = after.oom_kills - before.oom_kills;
    attempt->exit.cgroup_peak_bytes = after.peak_bytes;
    attempt->exit.cgroup_limit_bytes = after.limit_bytes;
    return 0;
}
