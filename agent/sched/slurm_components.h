/* SPDX-License-Identifier: Apache-2.0
 *
 * The components of a heterogeneous job. `scontrol -o show job` prints a line for each, and so it
 * does for the one of every other job. */
#ifndef AGENT_SCHED_SLURM_COMPONENTS_H
#define AGENT_SCHED_SLURM_COMPONENTS_H

#include <stdbool.h>

#include "oomretry/values.h"

bool slurm_is_heterogeneous(const char *text);

/* The line of the component in which something went wrong: the one that the message names
 * ("StepId=17+1.0"), else the one that has the node, else the first. Either may be NULL. The line
 * is cut out of `text`, in place. */
char *slurm_component_of(char *text, const char *message, const char *node);

/* The edit that sets a knob to a value; NULL: there is none. */
const struct oom_edit *slurm_edit_of(const struct oom_edits *edits, const char *knob);

/* Whether a change of memory is for the component of this line: it had less than the change asks
 * for, and not less than what ran out. So one that has more is never given less, and a small one
 * beside it stays small. */
bool slurm_component_is_meant(const char *line, const struct oom_edit *memory);

#endif
