/* SPDX-License-Identifier: Apache-2.0
 *
 * In the place of a supervisor that was lost.
 *
 * after.c: what is to be done.
 * after_new_job.c: about a job that was submitted in the place of another one.
 * after_script.c: with which script.
 * after_log.c: what the attempt wrote. */
#ifndef AGENT_RUN_AFTER_H
#define AGENT_RUN_AFTER_H

#include "agent/run/run.h"
#include "agent/sched/slurm_job.h"

struct after_options {
    int64_t lineage, attempt;
    const char *job;
    int batch_status; /* wait status of the batch script that has just ended; -1: not known */
    bool unbegun;     /* that script still began with the launcher's line: nothing of it ran */
    bool orphan;      /* the step is gone, and the scheduler calls the job running */
};

/* `oomrun --after`: finishes what a lost supervisor left. run->api and run->signatures are open.
 * Returns the exit status. */
int after_main(struct run *run, const struct after_options *options);

/* Does what was decided for the attempt of this row of the head. */
int after_carry_out(struct run *run, struct attempt *attempt, const json_t *row,
                    struct oom_error *err);

/* --- after_new_job.c: `row` is of the attempt that the new job is to run, `former` of the one
 * before, which may be NULL --- */

enum after_lost { AFTER_LOST, AFTER_LOST_PERHAPS, AFTER_NOT_LOST };

/* Has a controller that was killed forgotten the new job, which it does not know? *orphan: it takes
 * the former one for running. */
enum after_lost after_new_job_lost(const json_t *lineage, const json_t *row, const json_t *former,
                                   bool *orphan, struct oom_error *err);

/* As if it had not been submitted yet. */
int after_submit_once_more(struct run *run, struct attempt *attempt, const json_t *row,
                           const json_t *former, struct oom_error *err);

/* Is it still held, as it is until everything points to it? Who was to release it has died, or the
 * release was forgotten by a controller that was killed. */
bool after_waits_for_release(const struct slurm_job *job, const struct attempt *attempt);
int after_let_go(struct run *run, const struct attempt *attempt, const char *former,
                 struct oom_error *err);

/* --- after_script.c --- */

/* The batch step has left a copy beside the job's environment; Slurm's own needs no home that all
 * nodes see. */
int after_open_script(struct run *run, struct oom_error *err);

/* --- after_log.c --- */

/* Feeds what the attempt wrote to run->classifier. `logs` is what its supervisor said about them
 * when it began: [{"path", "offset"}], or NULL. */
void after_feed_log(struct run *run, const char *path, const json_t *logs);

/* What people read goes where the job's own words went. */
void after_speak_into(const char *path);

#endif
