/* SPDX-License-Identifier: Apache-2.0
 *
 * What a training program prints of its own settings when it starts: Megatron's table of
 * arguments, the configuration of verl, vLLM's "non-default args". These are the values that it
 * really runs with, whatever the script says.
 *
 * Which shapes a framework prints is in its policy ("dump"). A log is hostile: values are compared,
 * or must fit the knob's type and bounds; no text of a log goes anywhere else. Pure. */
#ifndef OOMRETRY_DUMP_H
#define OOMRETRY_DUMP_H

#include "oomretry/policy.h"
#include "oomretry/values.h"

/* Programs print this early; more of a log need not be handed over. */
#define OOM_DUMP_BYTES (2U << 20)

/* The policy's knobs that the beginning of a log shows, with OOM_SOURCE_LOG. What two dumps show
 * differently is left out. -1 when out of memory. */
int oom_dump_values(const struct oom_policy *policy, const char *log, size_t length,
                    struct oom_values *out);

/* Did the changes arrive? 1: all are shown; 0: one is shown as it was before, or the program lists
 * all that it knows and the knob is not among them (err says which); -1: not to be seen. */
int oom_dump_verify(const struct oom_policy *policy, const char *log, size_t length,
                    const struct oom_edits *edits, struct oom_error *err);

#endif
