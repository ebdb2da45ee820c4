/* SPDX-License-Identifier: Apache-2.0
 *
 * The policies that the head names, and which of them knows a script. */
#ifndef AGENT_LIB_POLICY_SET_H
#define AGENT_LIB_POLICY_SET_H

#include "agent/lib/api.h"
#include "oomretry/policy.h"
#include "oomretry/rewrite.h"

struct policy_set {
    struct oom_policy **items;
    size_t count;
};

/* `path` answers {"policies":[{"name","version","document"}]}. */
int policy_set_fetch(struct api *api, const char *path, struct policy_set *set,
                     struct oom_error *err);
void policy_set_free(struct policy_set *set);

/* What the user named (unless "auto", or no policy's name), else what recognises a command of the
 * script (the framework that the log names first), else what the log names, else the general one.
 * -1: none. */
int policy_set_choose(const struct policy_set *set, const struct oom_script *script,
                      const char *named, const char *log_framework);

/* NULL, or "; did you mean X?" in `text` or "" when the name is no policy's. */
const char *policy_set_misses(const struct policy_set *set, const char *named, char *text,
                              size_t size);

#endif
