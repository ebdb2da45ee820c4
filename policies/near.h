/* SPDX-License-Identifier: Apache-2.0
 *
 * "Did you mean": the nearest of several known names to one that is not known. */
#ifndef POLICIES_NEAR_H
#define POLICIES_NEAR_H

#include <stddef.h>

struct near {
    const char *wanted;
    const char *best; /* NULL: nothing is near enough to be worth saying */
    size_t best_distance;
};

void near_init(struct near *near, const char *wanted);
void near_offer(struct near *near, const char *candidate); /* must outlive `near` */

#endif
