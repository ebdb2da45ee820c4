/* SPDX-License-Identifier: Apache-2.0
 *
 * A policy's document as administrators change it: one value by its path, and the text that
 * editors and differences see. */
#ifndef POLICIES_POLICY_EDIT_H
#define POLICIES_POLICY_EDIT_H

#include <jansson.h>

#include "oomretry/error.h"

/* Sets one value. Paths:
 *
 *   forward.fewer-tokens.scale        a rung's number on the GPU ladder of one phase
 *   host.any.more-memory.factor       the same with the domain in front
 *   rungs.fewer-tokens.enabled        on all ladders
 *   knobs.--max-tokens-per-gpu.floor  a knob's bound, step or default
 *   max_retries                       a value of the policy as a whole
 *
 * A phase that only refers to another ("backward": "forward") gets its own ladder first, so that
 * the other one stays. The result is not validated. `value` is borrowed. */
int policy_edit_put(json_t *document, const char *path, json_t *value, struct oom_error *err);

/* What is written on a command line: JSON, or text when it is none. New reference. */
json_t *policy_edit_value(const char *text);

/* Indented; what fits into a line stays on one. Ends with a newline. NULL when out of memory. */
char *policy_edit_text(const json_t *document);

#endif
