/* SPDX-License-Identifier: Apache-2.0
 *
 * Side files of a script that is looked at offline. The working directory of the job is not known:
 * names are tried beside the script, then here. */
#ifndef AGENT_CTL_OFFLINE_H
#define AGENT_CTL_OFFLINE_H

#include "oomretry/rewrite.h"

struct offline {
    const char *script;
    const char *copies; /* where changed copies of side files go; NULL: beside them */
    int count;          /* of copies so far */
};

/* An oom_read_side_f and an oom_place_copy_f; `arg` is a struct offline. Nothing is written. */
int offline_read_side(void *arg, const char *path, char **bytes, size_t *length);
char *offline_place_copy(void *arg, const char *path, bool beside);

#endif
