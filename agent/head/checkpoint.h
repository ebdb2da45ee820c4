/* SPDX-License-Identifier: Apache-2.0
 *
 * What a complete checkpoint asks of the next attempt. `resume` is what oomrun found:
 * {"checkpoint": path, "edits": [...], "frozen": [knob, ...]}, or NULL when there is none. */
#ifndef AGENT_HEAD_CHECKPOINT_H
#define AGENT_HEAD_CHECKPOINT_H

#include <jansson.h>

#include "oomretry/decide.h"

/* A knob among the decision's edits with which the checkpoint would not load; NULL: none. */
const char *checkpoint_frozen_knob(const json_t *resume, const struct oom_decision *decision);

/* Adds the edits that make the next attempt go on from the checkpoint. 0, or -1 with err. */
int checkpoint_add_edits(const json_t *resume, struct oom_decision *decision,
                         struct oom_error *err);

#endif
