/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_LIB_STANDARD_FDS_H
#define AGENT_LIB_STANDARD_FDS_H

#include <fcntl.h>

/* First thing in a program: whatever it opens would become its standard input, output or error,
 * where these were closed, and words for people would go into a database. Reading and writing fails
 * as it would, and what it executes finds them closed as they were. */
static inline void standard_fds_open(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", (fd == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC) < 0)
            return;
}

#endif
