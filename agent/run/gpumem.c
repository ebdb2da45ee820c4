/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver gives a process's GPU memory back a while after the process has ended, and a card may
 * hold somebody else: an attempt that begins on such a card runs out again. nvidia-smi, where there
 * is one that only root can have put there, says which processes hold memory of the job's cards. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/lib/child.h"
#include "agent/lib/config.h"
#include "agent/lib/elapsed.h"
#include "agent/run/clear.h"
#include "agent/run/run.h"

enum { CALL_MS = 5000, NAP_MS = 250, FOREIGN_FOR_MS = 2000, MAX_CARDS_BYTES = 1024 };

enum holder { HOLDER_GONE, HOLDER_OWN, HOLDER_FOREIGN };

/* A program of the administrator's, in a directory of his. */
static bool is_trusted(const char *path)
{
    char directory[4096];
    struct stat st;
    const char *slash = strrchr(path, '/');

    if (path[0] != '/' || stat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != 0 ||
        (st.st_mode & (S_IWGRP | S_IWOTH)))
        return false;
    snprintf(directory, sizeof(directory), "%.*s", slash == path ? 1 : (int)(slash - path), path);
    return stat(directory, &st) == 0 && st.st_uid == 0 && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* "0,1" or UUIDs: the job's cards. "" where all are; NULL where there is nothing to look at. */
static const char *cards(const struct run *run)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");

    /* Cards that are meant to be shared. */
    if (getenv("SLURM_SHARDS_ON_NODE") || getenv("CUDA_MPS_PIPE_DIRECTORY") ||
        getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"))
        return NULL;
    if (!list)
        list = getenv("SLURM_JOB_GPUS");
    if (!list)
        return run->options.in_job ? NULL : "";
    if (!*list || strlen(list) >= MAX_CARDS_BYTES)
        return NULL;
    for (const char *p = list; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != ',' && (*p != '-' || p == list))
            return NULL;
    return list;
}

/* Whose is it? Steps of this job that are still ending are its own. */
static enum holder holder_of(pid_t pid)
{
    const char *job = getenv("SLURM_JOB_ID");
    char path[64], wanted[64], *bytes = NULL;
    size_t room = 0, wanted_length;
    struct stat st;
    bool own = false;

    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    /* Where /proc is mounted with hidepid, other users' processes have no directory: proc(5). */
    if (stat(path, &st) < 0)
        return kill(pid, 0) < 0 && errno == ESRCH ? HOLDER_GONE : HOLDER_FOREIGN;
    if (!job || st.st_uid != geteuid())
        return HOLDER_FOREIGN;
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    snprintf(wanted, sizeof(wanted), "SLURM_JOB_ID=%s", job);
    wanted_length = strlen(wanted) + 1;
    FILE *file = fopen(path, "re");
    for (ssize_t n; file && !own && (n = getdelim(&bytes, &room, '\0', file)) > 0;)
        own = (size_t)n == wanted_length && memcmp(bytes, wanted, wanted_length) == 0;
    if (file)
        fclose(file);
    free(bytes);
    return own ? HOLDER_OWN : HOLDER_FOREIGN;
}

static void name_holder(pid_t pid, char *out, size_t size)
{
    char path[64], name[64] = "";
    struct stat st;

    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    const struct passwd *pw = stat(path, &st) == 0 ? getpwuid(st.st_uid) : NULL;
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    FILE *file = fopen(path, "re");
    if (file && fgets(name, sizeof(name), file))
        name[strcspn(name, "\n")] = '\0';
    if (file)
        fclose(file);
    snprintf(out, size, "process %d%s%s%s%s%s", (int)pid, *name ? " (" : "", name, *name ? ")" : "",
             pw ? " of " : "", pw ? pw->pw_name : "");
}

/* One look. -1: it cannot be read; else how many processes hold memory, and *foreign is one of
 * somebody else (0: none). What this job left is killed. */
static int look(const char *program, const char *list, pid_t *foreign)
{
    const char *argv[6] = {program, "--query-compute-apps=pid,used_memory",
                           "--format=csv,noheader,nounits"};
    struct child_result result;
    int count = 0;

    if (*list) {
        argv[3] = "-i";
        argv[4] = list;
    }
    *foreign = 0;
    if (child_run(argv, CALL_MS, &result, NULL) < 0)
        return -1;
    if (!WIFEXITED(result.status) || WEXITSTATUS(result.status) != 0)
        count = -1;
    for (char *save = NULL, *line = count < 0 ? NULL : strtok_r(result.out, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        int pid = atoi(line);
        if (pid <= 1 || pid == (int)getpid())
            continue;
        enum holder holder = holder_of(pid);
        if (holder == HOLDER_OWN)
            kill(pid, SIGKILL);
        if (holder == HOLDER_FOREIGN)
            *foreign = pid;
        count++;
    }
    child_result_free(&result);
    return count;
}

bool gpumem_wait(const struct run *run, char *who, size_t size)
{
    struct timespec nap = {0, NAP_MS * 1000L * 1000L};
    const char *list = cards(run);
    int64_t start = elapsed_ms();
    struct config config;
    bool clear = true;

    if (!list || config_load(NULL, &config, NULL) < 0)
        return true;
    while (is_trusted(config.nvidia_smi) && !cancel_pending()) {
        pid_t foreign;
        int held = look(config.nvidia_smi, list, &foreign);
        int64_t waited_ms = elapsed_ms() - start;
        if (held <= 0)
            break;
        if (foreign && waited_ms >= FOREIGN_FOR_MS) {
            name_holder(foreign, who, size);
            clear = false;
            break;
        }
        if (waited_ms >= (int64_t)config.gpu_wait_s * 1000)
            break;
        nanosleep(&nap, NULL);
    }
    config_free(&config);
    return clear;
}
