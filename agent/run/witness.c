/* SPDX-License-Identifier: Apache-2.0
 *
 * Was a signal meant for this process alone, or for its process group? The command is in the same
 * group: what went to the group it has already, what came here alone must be passed on. Nothing in
 * siginfo tells. So a small process in the group keeps all signals blocked: what is pending there
 * went to the group. (Slurm: `scancel --full` signals the group of the batch script; `--batch` and
 * `--signal=B:` only the script itself.) */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/run/run.h"

/* A group signal reaches all members within microseconds of the first. A cancellation is sent to
 * the job's processes one by one, which takes longer. */
enum { GROUP_PATIENCE_MS = 6, CANCEL_PATIENCE_MS = 300, LOOK_EVERY_MS = 2 };

static pid_t witness;

void witness_start(void)
{
    pid_t parent = getpid();

    witness = fork();
    if (witness != 0)
        return;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "oomrun-signals");
    /* It must not hold the command's pipes open. */
    if (syscall(SYS_close_range, 0U, ~0U, 0U) != 0)
        for (int fd = 0; fd < 1024; fd++)
            close(fd);
    if (getppid() != parent)
        _exit(0);
    for (;;)
        pause();
}

void witness_stop(void)
{
    if (witness > 0 && kill(witness, SIGKILL) == 0)
        while (waitpid(witness, NULL, 0) < 0 && errno == EINTR)
            ;
    witness = 0;
}

static bool pending(pid_t pid, int signo)
{
    char path[64], line[256];
    unsigned long long set = 0;

    snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
    FILE *status = fopen(path, "re");
    if (!status)
        return false;
    while (fgets(line, sizeof(line), status))
        if (strncmp(line, "SigPnd:", 7) == 0 || strncmp(line, "ShdPnd:", 7) == 0)
            set |= strtoull(line + 7, NULL, 16);
    fclose(status);
    return (set >> (signo - 1)) & 1;
}

bool witness_saw(int signo)
{
    struct timespec nap = {0, LOOK_EVERY_MS * 1000 * 1000};
    int left_ms = signo == SIGTERM ? CANCEL_PATIENCE_MS : GROUP_PATIENCE_MS;

    if (witness <= 0)
        return false;
    for (; !pending(witness, signo); left_ms -= LOOK_EVERY_MS) {
        if (left_ms <= 0)
            return false;
        nanosleep(&nap, NULL);
    }
    /* A fresh one has nothing pending. */
    witness_stop();
    witness_start();
    return true;
}
