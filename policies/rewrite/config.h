/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that a training command takes from its configuration file. */
#ifndef POLICIES_REWRITE_CONFIG_H
#define POLICIES_REWRITE_CONFIG_H

#include "policies/rewrite/plan.h"

struct rw_config;

/* The file that the command names, read through the script's read_side; NULL when there is none
 * or it cannot be had. `file` is an entry of the policy's "files"; NULL: the command's own
 * configuration. */
struct rw_config *rw_config_open(struct rw *rw, const struct oom_policy *policy,
                                 const struct rw_cmd *cmd, const char *file);
void rw_config_close(struct rw_config *config);

/* What it sets a knob to (NULL: null) and where ("conf/grpo.yaml:22"), both in rw's arena. False
 * when it does not set it. References to settings that the command line has see those. */
bool rw_config_get(struct rw_config *config, struct rw *rw, const struct oom_policy *policy,
                   const struct rw_cmd *cmd, const char *knob, const char **value,
                   const char **where);

#endif
