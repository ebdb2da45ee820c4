/* SPDX-License-Identifier: Apache-2.0
 *
 * A changed attempt that ended in words about the change itself: this version of the program does
 * not take it. The problem is then still the one that the change was to solve. */
#ifndef AGENT_HEAD_REJECTION_H
#define AGENT_HEAD_REJECTION_H

#include <jansson.h>
#include <stdbool.h>

/* Does the cause of this failure name a knob that was changed for attempt `number`, in a lineage
 * that ran out of memory before? */
bool rejection_found(const json_t *attempts, int64_t number, const json_t *incident);

/* The newest out-of-memory incident before attempt `number`; NULL: none. Borrowed. */
const json_t *rejection_problem(const json_t *attempts, int64_t number);

#endif
