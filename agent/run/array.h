/* SPDX-License-Identifier: Apache-2.0
 *
 * A task of an array that is submitted again is the only one of its new array, and Slurm tells it
 * so; its script may share out work by the numbers of the whole one (SLURM_ARRAY_TASK_COUNT). */
#ifndef AGENT_RUN_ARRAY_H
#define AGENT_RUN_ARRAY_H

#include <stdio.h>

/* In the environment of a job that was submitted in the place of such a task. */
#define ARRAY_VARIABLE "OOMRETRY_ARRAY"

/* That variable with its final NUL, for this process's task; nothing where it is none. */
void array_put(FILE *out);

/* Gives this process, and so the command, the numbers that the variable holds. */
void array_restore(void);

#endif
