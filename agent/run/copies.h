/* SPDX-License-Identifier: Apache-2.0
 *
 * Changed copies of files that the script names (a DeepSpeed JSON, a sourced script), for the next
 * attempt: beside the user's file, where relative names and every node of the job find the same
 * things; else where there is room. A job that is queued again makes them anew on its new node. */
#ifndef AGENT_RUN_COPIES_H
#define AGENT_RUN_COPIES_H

#include <stdbool.h>
#include <stddef.h>

#include "oomretry/rewrite.h"

struct copies {
    char **paths;
    size_t count;
};

/* An oom_place_copy_f; `arg` is a struct copies. The file is made at once, so that the name is
 * ours. */
char *copies_place(void *arg, const char *path, bool beside);
int copies_write(const struct oom_rewrite *rewrite, struct oom_error *err);
void copies_remove(struct copies *copies);

#endif
