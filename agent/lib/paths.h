/* SPDX-License-Identifier: Apache-2.0
 *
 * Where an installed (or built) tree keeps its parts: everything is found relative to the running
 * program, so that `make install PREFIX=DIR` gives a tree that can be moved. */
#ifndef AGENT_LIB_PATHS_H
#define AGENT_LIB_PATHS_H

#include <stdbool.h>
#include <stddef.h>

#include "oomretry/error.h"

/* PREFIX/<below>, such as "share/oomretry/signatures" or "libexec/oomretry/oomstart". PREFIX is the
 * directory above bin/ or sbin/ of the running program, or what OOMRETRY_PREFIX names. */
int paths_under_prefix(const char *below, char *out, size_t size, struct oom_error *err);

/* The user's state directory, $XDG_STATE_HOME/oomretry or ~/.local/state/oomretry; made with mode
 * 0700 when it does not exist. Without a home, or where that directory is somebody else's or cannot
 * be written to: /var/tmp/oomretry-UID. */
int paths_state_dir(char *out, size_t size, struct oom_error *err);

/* The same without regard to the environment: what a job keeps there is also looked for by who has
 * not got the job's. */
int paths_owner_dir(char *out, size_t size, struct oom_error *err);

/* /var/tmp/oomretry-UID, which is made if `make`; -1 when it is not there or is somebody else's. */
int paths_spare_dir(bool make, char *out, size_t size, struct oom_error *err);

#endif
