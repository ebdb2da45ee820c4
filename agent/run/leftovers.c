/* SPDX-License-Identifier: Apache-2.0
 *
 * Before the next attempt in the same allocation nothing of the last one may be left: processes
 * that went to the background, daemons (they all are orphans of this child subreaper), and the
 * shared memory that their libraries left behind. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/lib/elapsed.h"
#include "agent/lib/proctree.h"
#include "agent/run/clear.h"
#include "agent/run/run.h"

void leftovers_signal(int signal_number)
{
    pid_t *pids = NULL;
    size_t count = proctree_below(getpid(), &pids);

    for (size_t i = 0; i < count; i++)
        kill(pids[i], signal_number);
    free(pids);
}

/* True when there is no child any more. */
static bool reaped_all(void)
{
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        ;
    return pid < 0 && errno == ECHILD;
}

bool leftovers_end(int patience_ms)
{
    int64_t start = elapsed_ms();
    struct timespec nap = {0, 5 * 1000 * 1000};

    if (reaped_all())
        return true;
    leftovers_signal(SIGTERM);
    while (elapsed_ms() - start < patience_ms) {
        if (reaped_all())
            return true;
        /* A tenth of the time for a clean end; then, again and again since they may fork. */
        if (elapsed_ms() - start > patience_ms / 10)
            leftovers_signal(SIGKILL);
        nanosleep(&nap, NULL);
    }
    return reaped_all();
}

/* Named by a library for its own use. A file of any other name may be data that somebody has put
 * there, also another job of this user: it is never touched. */
static bool is_of_library(const char *name)
{
    static const char *const prefixes[] = {
        "torch_",         /* PyTorch, c10 and torch.multiprocessing: torch_<pid>_<random>_<n> */
        "psm_",           /* Python, multiprocessing.shared_memory */
        "sem.mp-",        /* Python, multiprocessing's semaphores */
        "sem.loky-",      /* joblib */
        "nccl-",          /* NCCL and RCCL: nccl-XXXXXX */
        "cuda.shm.",      /* the CUDA driver: cuda.shm.<uid>.<pid>.<n> */
        "ucx_shm_posix_", /* UCX */
        "vader_segment.", /* Open MPI up to 4 */
        "sm_segment.",    /* Open MPI from 5 on */
        "psm2_shm.",      /* Omni-Path */
        "psm3_shm.",      "__KMP_REGISTERED_LIB_", /* OpenMP of LLVM and Intel */
    };

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

int leftovers_shm(int64_t since_ms)
{
    DIR *shm = opendir("/dev/shm");
    int removed = 0;

    if (!shm)
        return 0;
    for (struct dirent *entry; (entry = readdir(shm));) {
        struct stat st;
        char path[512];
        if (!is_of_library(entry->d_name) ||
            fstatat(dirfd(shm), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
            (int64_t)st.st_ctim.tv_sec * 1000 < since_ms - 1000)
            continue;
        snprintf(path, sizeof(path), "/dev/shm/%s", entry->d_name);
        /* What a live process of this user maps or has open is not a leftover. */
        if (!proctree_uses_file(path) && unlinkat(dirfd(shm), entry->d_name, 0) == 0)
            removed++;
    }
    closedir(shm);
    return removed;
}
