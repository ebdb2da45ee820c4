/* SPDX-License-Identifier: Apache-2.0
 *
 * oomrun: runs the job's own command as the parent of everything that it starts, and when memory
 * runs out, changes the smallest thing that should help and runs it again.
 *
 * options.c: the command line.
 * main.c: from the first attempt to the last.
 * launch.c: which script, which arguments; the rewritten copy.
 * copies.c: changed copies of files that the script names.
 * attempt.c, attempt_begin.c: one attempt.
 * output.c, follow.c, relay.c: the log, followed or relayed, classified as it grows.
 * cancel.c: somebody wants it to end.
 * signals.c: those that are not only the command's.
 * proof.c, seen.c: what the programs were given; did the change arrive?
 * own_restart.c: a framework that begins again by itself.
 * verdict.c: how an attempt came out.
 * next.c, findings.c, body.c: what comes next.
 * change.c: the command with the edits in force.
 * program.c: which program of the script ran out.
 * start.c, resubmit.c: starting it.
 * capture.c: what a new job in this one's place would need.
 * late.c: for a head that was away from the start to the end.
 * clear.c, leftovers.c, gpumem.c, othernodes.c: nothing of the old attempt survives.
 * after.c, after_new_job.c, after_script.c, after_log.c: in the place of a supervisor that was
 * lost. say.c: the lines that people read. */
#ifndef AGENT_RUN_RUN_H
#define AGENT_RUN_RUN_H

#include <event2/event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "agent/evidence/logmarks.h"
#include "agent/lib/api.h"
#include "agent/lib/policy_set.h"
#include "agent/run/copies.h"
#include "agent/sched/sched.h"
#include "oomretry/classify.h"
#include "oomretry/decide.h"
#include "oomretry/dump.h"
#include "oomretry/rewrite.h"

enum { HEAD_DECIDES_MS = 15000 }; /* it answers, and may take its time */
enum { SIGNALS_TAKEN = 3 };

struct run_options {
    const char *policy; /* "auto" or a name */
    int max_retries;    /* -1: the head's default */
    const char *mode;
    const char *allow;
    bool dry_run;
    bool memory;         /* begin with what worked for the same script before */
    bool step_back;      /* but with one step less */
    const char *db_path; /* NULL: what api_open_default finds */
    const char *name;
    int grace_s;           /* a silent job that has run out is ended after this; 0: never */
    bool in_job;           /* started by the plugin: the script is the spooled one */
    const char *submitted; /* sbatch's options, as the plugin has kept them; NULL: not known */
};

/* --- launch.c ----------------------------------------------------------------------------------
 */

struct launch {
    char **argv;      /* what the user asked to run; NULL-terminated */
    int script_index; /* of the script among argv; -1: a plain command */
    char *script_bytes;
    size_t script_length;
    char *script_path;           /* NULL: none */
    char *directory;             /* of the script; NULL: unknown */
    bool starts_unseen;          /* for oom_script_source */
    const char *const *ran;      /* the same; of `seen`, until the next attempt begins */
    bool for_what_ran;           /* the same */
    bool rewrite_in_place;       /* the scheduler's own copy of the script: it is the user's */
    char **stdin_args;           /* the script comes by standard input; its arguments */
    off_t stdin_start;           /* where a file there stood at the start; -1: it is none */
    char *launcher_line;         /* that it begins with until launch_reveal; NULL: none */
    char copy_path[4096];        /* of the rewritten script; "" none */
    char **run_argv;             /* what to exec: argv, or with the rewritten parts */
    char *preload_file;          /* instructions for the preload library; NULL: not needed */
    char *diff;                  /* of the rewrite; NULL: none */
    struct oom_edits written;    /* with `where` */
    struct copies copies;        /* of files that the script names */
    struct oom_edits references; /* which of them a program must be given */
};

int launch_open(struct launch *launch, char **argv, bool in_job, struct oom_error *err);

bool launch_is_shell(const char *program); /* by its name */

/* stdin.c: each attempt reads it from its start; a shell without a script reads one there. */
int launch_take_stdin(struct launch *launch, struct oom_error *err);
int launch_feed(struct launch *launch, const char *bytes, size_t length, struct oom_error *err);
void launch_rewind(const struct launch *launch);
/* The scheduler's copy of the script becomes the user's own, or the rewritten one. Until then it
 * begins with the launcher's line, by which the plugin knows that nothing of it was executed. */
int launch_reveal(struct launch *launch, struct oom_error *err);

/* An oom_read_side_f: files as the job names them, up to a bound. */
int launch_read_side(void *arg, const char *path, char **bytes, size_t *length);

/* For policies and values: the script or the command as rewrite sees it. */
struct oom_script *launch_parse(const struct launch *launch, struct oom_error *err);

/* Prepares run_argv so that the edits hold. No edits: what the user wrote. */
int launch_rewrite(struct launch *launch, const struct oom_policy *policy,
                   const struct oom_edits *edits, struct oom_error *err);
void launch_close(struct launch *launch); /* removes the copies */

/* --- preload.c ---------------------------------------------------------------------------------
 */

/* Instructions for the preload library, which changes the arguments of the training program where
 * the script does not show its launch. *path is a new file, to be unlinked and freed. */
int preload_write(const struct oom_policy *policy, const struct oom_edits *edits, char **path,
                  struct oom_error *err);

/* In the child: the variables that make the library be loaded and find its instructions. */
void preload_environment(void);

/* --- output.c ----------------------------------------------------------------------------------
 */

struct output;

/* Looks at what standard output and error are: regular files are followed, anything else is
 * relayed byte for byte. */
struct output *output_open(struct event_base *base, struct oom_error *err);
void output_close(struct output *output);

/* A new attempt begins: later bytes go to this classifier. */
int output_begin(struct output *output, struct oom_classifier *classifier, struct oom_error *err);

/* In the child, after fork: the descriptors to write to. */
void output_child(const struct output *output);

/* After fork, in the parent. */
void output_parent(struct output *output);

/* Reads what has been written so far; returns the number of new bytes. */
int64_t output_poll(struct output *output);

/* Reads what has been written by now, without waiting; false when there may be more. It counts as
 * new for the next output_poll. */
bool output_catch_up(struct output *output);

/* Some of it passes through this process, and what comes after its end is lost. */
bool output_relayed(const struct output *output);

/* What stream `i` (0, 1) said at the beginning of the attempt; NULL: nothing. */
const char *output_beginning(const struct output *output, int i, size_t *length);

/* The command has ended: drains what is left (what its orphans still write is not waited for, and
 * after a cancellation neither is a slow reader). */
void output_end(struct output *output, bool cancelled);

/* The terminal has a new size, and so have those that stand for it. */
void output_resize(const struct output *output);

/* Where the next bytes of an attempt will be: [{"path", "offset"}] of the followed files. */
json_t *output_places(const struct output *output);

/* The stream that is called so in an incident; -1: none. And the lines of it that were read. */
int output_stream(const struct output *output, const char *name);
int64_t output_lines(const struct output *output, int i);

/* "slurm-4711.out" or "standard output", for messages; `output` may be NULL. */
const char *output_name(const struct output *output);

/* The same of the stream with that number: 1 is errors, where they go elsewhere; else "". */
const char *output_name_of(const struct output *output, int i);

/* --- attempt.c ---------------------------------------------------------------------------------
 */

struct attempt {
    int64_t lineage;
    int64_t number;
    int64_t lineage_ms;     /* when the lineage began */
    bool known;             /* the head knows it */
    struct oom_edits edits; /* in force, relative to what the user submitted */
    int wait_status;
    int64_t started_ms, ended_ms; /* by the date; how long it took is not (attempt_now_ms) */
    int64_t began_ms;             /* as started_ms, on the clock of elapsed_ms */
    int64_t ended_ago_ms;         /* its end is looked at that long after it */
    int ended_by_signal;  /* a signal that came from outside: cancellation, time limit; 0 none */
    int64_t grace_ms;     /* when oomrun began to end it; 0: it did not */
    bool ended_early;     /* oomrun ended a job that had run out: silent, or beginning again */
    int own_restarts;     /* of the framework, after it had run out */
    int64_t own_since_ms; /* the first of them */
    int64_t saved_gpu_s;  /* then: GPU-seconds up to the time limit; 0: not known */
    int applied;          /* 1 yes, 0 no, -1 unknown */
    char proof[512];
    struct oom_exit exit;
};

struct run {
    struct run_options options;
    struct launch launch;
    struct event_base *base;
    struct output *output;
    struct oom_signatures *signatures;
    struct oom_classifier *classifier;
    struct api *api;
    const struct sched *sched; /* NULL: no scheduler */
    char job[64];
    char cluster[64];
    int restart;
    bool continues;         /* queued or submitted again: only the head knows with which changes */
    bool in_job_allocation; /* a scheduler gave us this allocation */
    char handle[64]; /* what people use with oomctl: the job id, or "L7" without a scheduler */
    char token[40];
    sigset_t signal_mask; /* as it was when oomrun started: the command gets it back */
    void (*signals_before[SIGNALS_TAKEN])(int); /* likewise (signals.c) */
    int64_t attempt_number;                     /* of the running attempt */
    struct seen *seen;                          /* command lines of this attempt */
    struct logmarks *marks; /* of logs that are not its output, at its start; NULL: none */
    bool after;             /* in the place of a supervisor that was lost (after.c) */
    bool orphan;            /* then: the scheduler has not noticed that the job is dead */
    const char *once_more;  /* then: why the attempt is started a second time (acted.h); NULL */
    char log_path[4096];    /* then: the job's output; "" not known */
    char error_path[4096];  /* then: its errors, where they go elsewhere; else "" */
    json_t *places;         /* output_places of this attempt's start */
    bool late;              /* a report of the start was left for the agent */
    bool head_away;         /* it gave no answer when the attempt was to begin */
    bool untold; /* the head or the scheduler did not answer at the end: somebody acts later */
    struct policy_set prefetched;    /* for the next decision; empty: not yet */
    struct oom_policy *proof_policy; /* whose edits are in force; NULL on first attempts */
};

/* A fresh classifier in run->classifier; the output (if any) goes to it from now on. */
int new_classifier_for(struct run *run, struct oom_error *err);

/* Runs the command once; fills wait_status and the times. -1 only when it could not be started. */
int attempt_run(struct run *run, struct attempt *attempt, struct oom_error *err);

/* The date of its start and the time since then: a clock that is set meanwhile makes no attempt
 * long or short, and the time that a retry needs is judged by it. */
int64_t attempt_now_ms(const struct attempt *attempt);

/* --- signals.c ---------------------------------------------------------------------------------
 */

/* SIGPIPE, SIGXFSZ and SIGCHLD are as this program needs them, from now on until they are as they
 * were: what is executed keeps that. */
void signals_take(struct run *run);
void signals_give_back(const struct run *run);

/* --- cancel.c ----------------------------------------------------------------------------------
 */

/* One that asks for an end, rather than telling something. */
bool cancel_is_signal(int signo);

/* The signal of that kind that waits between two attempts (they are blocked from the first one on);
 * 0: none. */
int cancel_pending(void);

/* A job that does not heed attempt->ended_by_signal is killed soon, and this process with it: the
 * head hears of it now, so that whoever finds the attempt does not take its end for a failure. */
void cancel_tell(struct run *run, const struct attempt *attempt);

/* --- witness.c ---------------------------------------------------------------------------------
 */

/* Runs beside the command, in the same process group, between these two. */
void witness_start(void);
void witness_stop(void);

/* True when the signal that has just arrived went to the whole process group. */
bool witness_saw(int signo);

/* --- proof.c -----------------------------------------------------------------------------------
 */

/* Looks at the processes below this one: remembers their arguments, and compares those of the
 * training command with the edits in force. */
void proof_look(struct run *run, struct attempt *attempt);

/* The attempt has ended: what else tells whether its change arrived. The framework's dump in the
 * log says what the program really took; the preload library's report, what it was started with. */
void proof_end(const struct run *run, struct attempt *attempt);

/* Present values that neither the script nor anybody's arguments showed, from the dump. */
void proof_values(const struct run *run, const struct oom_policy *policy,
                  struct oom_values *values);

/* --- own_restart.c -----------------------------------------------------------------------------
 */

/* Notes how often the framework has begun again by itself after running out; true: again. */
bool own_restart_count(const struct run *run, struct attempt *attempt);

/* The same; true when the attempt is to be ended because of that, and then it has been said. */
bool own_restart_look(struct run *run, struct attempt *attempt);

/* --- attempt_begin.c ---------------------------------------------------------------------------
 */

/* The head hears of the attempt, and says which changes are in force. Those of a job that was
 * queued again are made here. -1 and err; run->head_away: it did not answer. */
int attempt_begin(struct run *run, struct attempt *attempt, struct oom_error *err);

/* --- change.c ----------------------------------------------------------------------------------
 */

/* Makes the next command. `policy` NULL: none knows it, and no edit can be written. */
int change_make(struct run *run, const struct oom_policy *policy, const struct oom_edits *edits,
                struct oom_error *err);

/* Whether the change arrives is judged by this policy, which is taken out of the set. */
void change_prove_by(struct run *run, struct policy_set *set, int index);

/* --- next.c ------------------------------------------------------------------------------------
 */

enum next { NEXT_STOP, NEXT_INPLACE, NEXT_GONE /* requeued or resubmitted */ };

/* Gets the lineage's policies while the command still runs: not when every moment counts. */
void next_prefetch(struct run *run, const struct attempt *attempt);
enum next next_after(struct run *run, struct attempt *attempt);

/* Reports an end after which nothing comes. `incident` and `reason` may be NULL. */
void next_tell_end(struct run *run, const struct attempt *attempt,
                   const struct oom_incident *incident, const char *reason);

/* --- start.c -----------------------------------------------------------------------------------
 */

/* The edits of resources ("slurm:mem"), or those of everything else. */
int next_edits(const struct oom_edits *all, bool resources, struct oom_edits *out);

/* Tells the head something about an attempt: "diff", "applied", "proof", "acted", "stopped". */
int next_note(struct run *run, int64_t lineage, int64_t number, const char *key, const char *text);

/* 0: what the decision changes of the job's resources can be had; -1 and err: it cannot. */
int next_resources(const struct run *run, const struct oom_decision *decision,
                   const struct oom_edits *total, struct oom_error *err);

/* Does what was decided: `total` are all edits in force (taken over when the next attempt starts
 * in this allocation), `number` is the next attempt's. */
enum next next_start(struct run *run, struct attempt *attempt, const struct oom_decision *decision,
                     struct oom_edits *total, int64_t number);

/* --- late.c ------------------------------------------------------------------------------------
 */

/* The head is away at the start: leaves for the node's agent what would have been told it; false
 * when that is not possible. Taken back when the head has been told after all. */
bool late_leave(const struct run *run, const struct attempt *attempt);
void late_take_back(const struct run *run);

/* `oomrun --hand-in FILE`, started by the agent as the file's owner. Returns the exit status. */
int late_hand_in(struct run *run, const char *path);

/* --- resubmit.c --------------------------------------------------------------------------------
 */

/* Submits the same job again, held, with the lineage's mark; points the dependents of the old job
 * to it, releases it. Safe to repeat: a job that carries the mark already is taken. */
int resubmit(struct run *run, const struct attempt *attempt, const struct oom_edits *resources,
             int64_t number, char *new_job, size_t size, struct oom_error *err);

/* What remains of it once the new job is in the queue, held: the head and the dependents are told,
 * and it is released. Can be repeated. run->job is the old job. */
int resubmit_let_go(struct run *run, const struct attempt *attempt, int64_t number,
                    const char *new_job, struct oom_error *err);

/* --- say.c -------------------------------------------------------------------------------------
 */

void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void say_incident(const struct attempt *attempt, const struct oom_incident *incident);
void say_decision(const struct run *run, const struct oom_incident *incident,
                  const struct oom_decision *decision, const struct oom_edits *written,
                  int64_t next_number, int max_attempts);
void say_stop(const struct run *run, const struct attempt *attempt,
              const struct oom_incident *incident, const char *reason, const char *advice);

#endif
