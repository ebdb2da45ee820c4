/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_LIB_ELAPSED_H
#define AGENT_LIB_ELAPSED_H

#include <stdint.h>
#include <time.h>

/* For durations and deadlines: a clock that nobody sets. */
static inline int64_t elapsed_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#endif
