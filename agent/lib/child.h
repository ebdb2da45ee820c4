/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs another program: argument vector, no shell, standard input from /dev/null, a time limit,
 * bounded output. */
#ifndef AGENT_LIB_CHILD_H
#define AGENT_LIB_CHILD_H

#include <stdbool.h>
#include <stddef.h>

#include "oomretry/error.h"

/* Where programs that are named without a slash are looked for before PATH: a job's PATH, or that
 * of a service, need not lead to the scheduler's commands. "": PATH only. */
void child_look_first_in(const char *directory);

struct child_result {
    int status;   /* of wait(2) */
    char *out;    /* standard output, NUL-terminated, at most 16 MiB */
    char *errors; /* standard error likewise */
    size_t out_length;
    bool cut; /* there was more */
};

/* Runs argv[0] (looked up there, then in PATH) with the caller's environment, but for what would
 * have Slurm's programs answer in another form (SQUEUE_FORMAT, SLURM_TIME_FORMAT and the like). 0
 * when it ran to its end within the time, whatever its status; -1 and err otherwise (then it has
 * been killed). */
int child_run(const char *const *argv, int timeout_ms, struct child_result *result,
              struct oom_error *err);
void child_result_free(struct child_result *result);

/* child_run, and an exit status other than 0 is an error that quotes the program's own words. The
 * output is returned in *out when out is not NULL; one that does not fit is an error then: half a
 * list of jobs, or half a script, must not be acted upon. */
int child_expect(const char *const *argv, int timeout_ms, char **out, struct oom_error *err);

/* The same in an environment without the variables ("NAME=VALUE") of which drops() says so. */
int child_expect_without(const char *const *argv, bool (*drops)(const char *variable),
                         int timeout_ms, char **out, struct oom_error *err);

#endif
