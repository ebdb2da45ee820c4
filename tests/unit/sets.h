/* SPDX-License-Identifier: Apache-2.0
 *
 * The shipped signatures, for tests that run from the top of the source tree. */
#ifndef TESTS_UNIT_SETS_H
#define TESTS_UNIT_SETS_H

#include "oomretry/classify.h"

/* Every document of policies/signatures, compiled. Fails the test when one cannot be used. */
struct oom_signatures *sets_shipped(void);

#endif
