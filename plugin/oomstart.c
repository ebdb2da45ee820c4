/* SPDX-License-Identifier: Apache-2.0
 *
 * oomstart SCRIPT [ARG...]: the interpreter that the plugin names in an opted-in batch script.
 *
 * It becomes `oomrun --slurm SCRIPT ARG...`, after seeing that oomrun starts at all: oomrun needs
 * shared libraries and a file system that may be broken on this node, and a job must not fail for
 * that. When it does not start, the script is restored and runs as it would without us. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "restore.h"

/* Milliseconds on a healthy node; a second and more where the libraries come cold from a loaded
 * file server. A job that is not watched is the greater loss, and only a broken node waits for so
 * long. */
#define PROBE_DEADLINE_MS 5000

/* What a kill ended, by a person or for memory, is seen to start the next time. */
#define PROBES 3

/* PREFIX/bin/oomrun, from PREFIX/libexec/oomretry/oomstart. */
static int find_oomrun(char *path, size_t size)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (length < 0)
        return -1;
    self[length] = '\0';
    for (int level = 0; level < 3; level++) {
        char *slash = strrchr(self, '/');

        if (!slash)
            return -1;
        *slash = '\0';
    }
    return (size_t)snprintf(path, size, "%s/bin/oomrun", self) < size ? 0 : -1;
}

static void exec_probe(const char *oomrun)
{
    char *argv[] = {(char *)(unsigned long)oomrun, (char *)(unsigned long)"--version", NULL};
    int null = open("/dev/null", O_RDWR);

    if (null >= 0 && dup2(null, 0) >= 0 && dup2(null, 1) >= 0 && dup2(null, 2) >= 0)
        execv(oomrun, argv);
    _exit(127);
}

/* The status of `oomrun --version`, -1 when it does not end in time. The child holds the writing
 * end of a pipe, so its end is something that poll can wait for. */
static int probe(const char *oomrun)
{
    int ends[2], status = -1;
    struct pollfd ended;
    pid_t child;

    if (pipe(ends) != 0)
        return -1;
    child = fork();
    if (child == 0) {
        close(ends[0]);
        exec_probe(oomrun);
    }
    close(ends[1]);
    ended = (struct pollfd){.fd = ends[0], .events = POLLIN};
    if (child > 0) {
        if (poll(&ended, 1, PROBE_DEADLINE_MS) == 1) {
            if (waitpid(child, &status, 0) != child)
                status = -1;
        } else {
            kill(child, SIGKILL);
            /* Not waited for: a process stuck in the kernel would take us with it. */
            (void)waitpid(child, NULL, WNOHANG);
        }
    }
    close(ends[0]);
    return status;
}

static int oomrun_starts(const char *oomrun)
{
    void (*before)(int);
    int status = -1;

    if (access(oomrun, X_OK) != 0)
        return 0;
    before = signal(SIGCHLD, SIG_DFL); /* who ignores it is told of no end */
    for (int i = 0; i < PROBES; i++) {
        status = probe(oomrun);
        if (status == -1 || !WIFSIGNALED(status))
            break;
    }
    (void)signal(SIGCHLD, before);
    return status == 0;
}

static int run_plain(char **argv)
{
    int code;

    restore_and_exec(argv);
    /* Slurm itself reports a script that cannot be executed in the same way. */
    code = errno;
    fprintf(stderr, "oomstart: %s: %s\n", argv[0], strerror(code));
    return code;
}

int main(int argc, char **argv)
{
    char oomrun[PATH_MAX];

    if (argc < 2) {
        fprintf(stderr, "usage: oomstart SCRIPT [ARG...]\n"
                        "The oomretry plugin names it in the first line of a batch script.\n");
        return 2;
    }
    if (find_oomrun(oomrun, sizeof(oomrun)) == 0 && oomrun_starts(oomrun)) {
        char **args = calloc((size_t)argc + 2, sizeof(*args));

        if (args) {
            args[0] = oomrun;
            args[1] = (char *)(unsigned long)"--slurm";
            memcpy(args + 2, argv + 1, sizeof(*args) * (size_t)argc);
            execv(oomrun, args);
            free(args);
        }
    }
    return run_plain(argv + 1);
}
