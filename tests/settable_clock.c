/* SPDX-License-Identifier: Apache-2.0
 *
 * A library to be loaded first: the date is that of the machine and as many seconds more as the
 * file CLOCK_SET_BY says at the moment. What measures time is left alone. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static time_t set_by(void)
{
    const char *path = getenv("CLOCK_SET_BY");
    char text[32] = "";
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd >= 0 && read(fd, text, sizeof(text) - 1) < 0)
        text[0] = '\0';
    if (fd >= 0)
        close(fd);
    return (time_t)atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, now);

    if (clock == CLOCK_REALTIME)
        now->tv_sec += set_by();
    return rc;
}
