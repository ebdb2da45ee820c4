/* SPDX-License-Identifier: Apache-2.0
 *
 * Nothing of the old attempt survives into the next one in the same allocation. */
#ifndef AGENT_RUN_CLEAR_H
#define AGENT_RUN_CLEAR_H

#include "agent/run/run.h"

/* --- leftovers.c -------------------------------------------------------------------------------
 */

/* Ends every process below this one; true when nothing is left within the time. */
bool leftovers_end(int patience_ms);

/* Sends a signal to every process below this one. */
void leftovers_signal(int signal_number);

/* Removes the shared memory that libraries of the ended attempt left in /dev/shm; returns how many
 * files. One that a live process uses, that is older or that has another name stays. */
int leftovers_shm(int64_t since_ms);

/* --- gpumem.c ----------------------------------------------------------------------------------
 */

/* Waits, for a bounded time, until the ended attempt's GPU memory is free, and kills what it left
 * there. False: somebody else holds memory of the job's cards; `who` is a few words about that. */
bool gpumem_wait(const struct run *run, char *who, size_t size);

/* --- othernodes.c ------------------------------------------------------------------------------
 */

/* A process of somebody else that holds memory of the job's cards. */
struct holder_place {
    char node[256], who[256];
};

/* Nothing of the ended attempt is left on the job's other nodes; gpumem_wait there too. False:
 * somebody else holds memory of the job's cards. Nodes that cannot be asked count as clear. */
bool othernodes_clear(const struct run *run, int64_t since_ms, struct holder_place *holder);

/* What that starts on each of them. */
int othernodes_look(const struct run *run, int64_t since_ms);

/* --- clear.c -----------------------------------------------------------------------------------
 */

/* Ends the steps and processes of the attempt that began at since_ms. A scheduler that does not
 * answer is waited for, ten minutes at most. -1: something is left, or it still does not answer. */
int clear_allocation(const struct run *run, int64_t since_ms, struct oom_error *err);

/* False: somebody else holds memory of the job's cards. */
bool clear_cards(const struct run *run, int64_t since_ms, struct holder_place *holder);

#endif
