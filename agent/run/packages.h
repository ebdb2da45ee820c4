/* SPDX-License-Identifier: Apache-2.0
 *
 * Optional packages without which some settings do not start ("package.liger_kernel"). */
#ifndef AGENT_RUN_PACKAGES_H
#define AGENT_RUN_PACKAGES_H

#include <jansson.h>

#include "oomretry/values.h"

/* Looks beside the files that the log's tracebacks name (`windows`: oom_classifier_windows) and in
 * the environment that the job was started in. What cannot be seen from here, as within a
 * container, stays unknown. */
void packages_facts(const json_t *windows, struct oom_values *values);

#endif
