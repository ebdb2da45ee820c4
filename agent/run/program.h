/* SPDX-License-Identifier: Apache-2.0
 *
 * Which program ran out. A script does more than train: it prepares data, merges what was trained,
 * evaluates it. The training's settings are no remedy for those. */
#ifndef AGENT_RUN_PROGRAM_H
#define AGENT_RUN_PROGRAM_H

#include <jansson.h>

#include "agent/run/seen.h"
#include "oomretry/incident.h"

/* True when the decisive line was written by a program that is none of the policy's: its traceback
 * begins in that program, or it began when the last of the policy's was gone, or ran alone before
 * any did. Then `out` has its name without its arguments, which are nobody's business:
 * "python3 export.py". `stream` (0, 1) is where the line stands; `windows` are what the classifier
 * kept of the log. */
bool program_elsewhere(const struct seen *seen, const struct oom_policy *policy,
                       const struct oom_line *cause, int stream, const json_t *windows, char *out,
                       size_t size);

/* The arguments of the policy's program that began last before this line of the log (0: before its
 * end); NULL: none was seen. */
const char *const *program_ran(const struct seen *seen, const struct oom_policy *policy,
                               int64_t line, int stream);

#endif
