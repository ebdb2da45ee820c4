/* SPDX-License-Identifier: Apache-2.0
 *
 * Instructions for the library in agent/preload, for launch commands that the script does not
 * show. */
#include <stdlib.h>
#include <string.h>

#include "agent/run/run.h"

int preload_write(const struct oom_policy *policy, const struct oom_edits *edits, char **path,
                  struct oom_error *err)
{
    (void)edits;
    *path = NULL;
    return oom_errorf(err, "the launch command of %s is not in sight of the script",
                      oom_policy_name(policy));
}

void preload_environment(const char *path)
{
    (void)path;
}
