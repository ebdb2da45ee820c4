/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of files that the script sources or calls. */
#ifndef POLICIES_REWRITE_CALLS_H
#define POLICIES_REWRITE_CALLS_H

#include "policies/rewrite/plan.h"

/* Names of copies that were asked for; they are asked for once. */
struct rw_copy {
    const struct rw_buf *buf;
    const char *new_path; /* NULL: there is no place for one */
    struct rw_copy *next;
};

struct rw_copies {
    struct rw_copy *first;
};

/* A file that the script sources or calls, and was read. */
bool rw_is_side_script(const struct rw_buf *buf);

/* Adds what makes the copies of the changed files be used, and puts them into the changes' overlay.
 * False when that cannot be done. */
bool rw_copies_follow(struct rw *rw, struct rw_copies *copies, struct rw_changes *all);

#endif
