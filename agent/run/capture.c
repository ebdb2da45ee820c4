/* SPDX-License-Identifier: Apache-2.0
 *
 * What a new job in the place of this one needs and Slurm cannot be asked for later: environment,
 * limits, arguments, directory and options, each in a file of the owner's. */
#include "agent/run/capture.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/lib/files.h"
#include "agent/lib/paths.h"
#include "agent/run/array.h"

extern char **environ;

enum {
    MAX_CAPTURE_BYTES = 4 * 1024 * 1024,
    MAX_LOOKED_AT = 10000,    /* files of the directory, before a job starts */
    KEPT_S = 180 * 24 * 3600, /* no job runs or waits for longer */
};

/* "options" is what the plugin has kept of sbatch's command line. The environment comes last: where
 * it is, all is. Without its arguments a job would be another one. */
static const char *const kinds[] = {"args", "dir", "options", "script", "env"};

/* The agent, who comes after a supervisor that was lost, has not got the job's environment. A home
 * may be full. */
enum place { HOME, SPARE, PLACES };

static int directory_of(enum place place, bool make, char *out, size_t size)
{
    return place == HOME ? paths_owner_dir(out, size, NULL)
                         : paths_spare_dir(make, out, size, NULL);
}

static int path_of(enum place place, bool make, const struct run *run, const char *job,
                   const char *kind, char *out, size_t size)
{
    char directory[3000];

    if (directory_of(place, make, directory, sizeof(directory)) < 0)
        return -1;
    int n = snprintf(out, size, "%s/%s-%s.%s", directory, *run->cluster ? run->cluster : "slurm",
                     job, kind);
    return n > 0 && (size_t)n < size ? 0 : -1;
}

int capture_path(const struct run *run, const char *kind, char *out, size_t size)
{
    for (enum place place = HOME; place < PLACES; place++)
        if (path_of(place, false, run, run->job, kind, out, size) == 0 && access(out, F_OK) == 0)
            return 0;
    return -1;
}

/* Of the many variables that Slurm sets in a job, those that a user sets for srun and sbatch: they
 * are the job's own environment, also for the jobs that its script submits. */
static bool is_users(const char *variable)
{
    static const char *const names[] = {
        "SLURM_ACCTG_FREQ", "SLURM_BCAST", "SLURM_BCAST_EXCLUDE", "SLURM_CLUSTERS",
        "SLURM_COMPRESS", "SLURM_CONTAINER", "SLURM_CPU_BIND", "SLURM_CPU_FREQ_REQ", "SLURM_DEBUG",
        "SLURM_DISABLE_STATUS", "SLURM_EPILOG", "SLURM_EXACT", "SLURM_EXIT_ERROR",
        "SLURM_EXIT_IMMEDIATE", "SLURM_EXPORT_ENV", "SLURM_GET_USER_ENV", "SLURM_GRES_FLAGS",
        "SLURM_KILL_BAD_EXIT", "SLURM_LABELIO", "SLURM_MEM_BIND", "SLURM_MPI_TYPE", "SLURM_NETWORK",
        "SLURM_NO_KILL", "SLURM_OPEN_MODE", "SLURM_OVERLAP", "SLURM_PROLOG", "SLURM_RESV_PORTS",
        "SLURM_SRUN_REDUCE_TASK_EXIT_MSG", "SLURM_STDERRMODE", "SLURM_STDINMODE",
        "SLURM_STDOUTMODE", "SLURM_TASK_EPILOG", "SLURM_TASK_PROLOG", "SLURM_THREADS",
        "SLURM_TIME_FORMAT", "SLURM_UNBUFFEREDIO", "SLURM_WAIT", "SLURM_WHOLE", "SRUN_CONTAINER",
        "SRUN_CPUS_PER_TASK",
        /* Put in by sbatch itself; they are not made anew from a file. */
        "SLURM_JOB_NAME", "SLURM_SUBMIT_DIR", "SLURM_SUBMIT_HOST", "SLURM_PRIO_PROCESS",
        /* oomrun's own, which the user sets. */
        "OOMRETRY_MEMORY", "OOMRETRY_STEP_BACK"};
    size_t length = strcspn(variable, "=");

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i]) == length && memcmp(names[i], variable, length) == 0)
            return true;
    return false;
}

/* It describes the old job and its allocation. */
static bool belongs_to_job(const char *variable)
{
    static const char *const prefixes[] = {"SLURM_",
                                           "SBATCH_CPU_BIND",
                                           "SBATCH_MEM_BIND",
                                           "SLURMD_",
                                           "OOMRETRY_",
                                           "SPANK_",
                                           "_SLURM_",
                                           "SRUN_",
                                           "CUDA_VISIBLE_DEVICES=",
                                           "ROCR_VISIBLE_DEVICES=",
                                           "GPU_DEVICE_ORDINAL=",
                                           "ENVIRONMENT=BATCH",
                                           "HOSTNAME="};

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0)
            return !is_users(variable);
    return false;
}

/* sbatch would add these from its own process; slurmd obeys them as slurm.conf says. */
static void put_limits(FILE *out)
{
    static const struct {
        const char *name;
        int number;
    } limits[] = {{"CPU", RLIMIT_CPU},     {"FSIZE", RLIMIT_FSIZE},   {"DATA", RLIMIT_DATA},
                  {"STACK", RLIMIT_STACK}, {"CORE", RLIMIT_CORE},     {"RSS", RLIMIT_RSS},
                  {"NPROC", RLIMIT_NPROC}, {"NOFILE", RLIMIT_NOFILE}, {"MEMLOCK", RLIMIT_MEMLOCK},
                  {"AS", RLIMIT_AS}};
    mode_t mask = umask(0);

    umask(mask);
    fprintf(out, "SLURM_UMASK=%04o%c", (unsigned)mask, '\0');
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct rlimit limit;
        if (getrlimit(limits[i].number, &limit) == 0)
            fprintf(out, "SLURM_RLIMIT_%s=%lu%c", limits[i].name, (unsigned long)limit.rlim_cur,
                    '\0');
    }
}

/* Options of other plugins: the job sees them under one name, and its first step takes them under
 * another one, which sbatch leaves out when it reads a file (22.05), and slurmrestd never writes.
 */
static void put_plugin_option(FILE *out, const char *variable)
{
    static const char seen[] = "SLURM_SPANK__SLURM_SPANK_OPTION_", own[] = "oomretry_";
    static const char flag[] = "=(null)";
    const char *option = variable + sizeof(seen) - 1;

    if (strncmp(variable, seen, sizeof(seen) - 1) != 0 ||
        strncmp(option, own, sizeof(own) - 1) == 0)
        return;
    size_t length = strlen(option), tail = sizeof(flag) - 1;
    if (length > tail && strcmp(option + length - tail, flag) == 0)
        length -= tail - 1;
    fprintf(out, "_SLURM_SPANK_OPTION_%.*s%c", (int)length, option, 0);
}

static void put(FILE *out, const char *text)
{
    fwrite(text, 1, strlen(text) + 1, out);
}

/* What the job was started with beside its environment: oomrun keeps it from the command, and
 * slurmrestd runs no plugin that would send it again. */
static void put_own(const struct run *run, FILE *out)
{
    put_limits(out);
    fprintf(out, "OOMRETRY_GRACE_S=%d%c", run->options.grace_s, 0);
    if (run->options.submitted)
        fprintf(out, "SLURM_SPANK_OOMRETRY_SUBMITTED=%s%c", run->options.submitted, 0);
    array_put(out);
    put(out, CONTINUES_VARIABLE "=1");
}

static bool write_bytes(const struct run *run, enum place place, const char *kind,
                        const char *bytes, size_t length)
{
    char path[4096];

    return path_of(place, true, run, run->job, kind, path, sizeof(path)) == 0 &&
           file_replace(path, bytes, length, 0600, NULL) == 0;
}

static bool write_list(const struct run *run, enum place place, const char *kind, char *const *list,
                       bool environment)
{
    char *bytes = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&bytes, &length);

    if (!out)
        return false;
    for (size_t i = 0; list && list[i]; i++) {
        if (!environment || !belongs_to_job(list[i]))
            put(out, list[i]);
        if (environment)
            put_plugin_option(out, list[i]);
    }
    if (environment)
        put_own(run, out);
    bool written = fclose(out) == 0 && write_bytes(run, place, kind, bytes, length);
    free(bytes);
    return written;
}

static bool is_capture(const char *name)
{
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; dot && strchr(name, '-') && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(dot + 1, kinds[i]) == 0)
            return true;
    return false;
}

/* Of jobs whose end nobody saw, as their node was lost. */
static void forget_old(enum place place)
{
    char path[3000];
    DIR *directory = directory_of(place, false, path, sizeof(path)) < 0 ? NULL : opendir(path);
    int left = MAX_LOOKED_AT;
    struct stat info;

    for (struct dirent *entry; directory && left-- > 0 && (entry = readdir(directory));)
        if (is_capture(entry->d_name) &&
            fstatat(dirfd(directory), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(info.st_mode) && info.st_mtime < time(NULL) - KEPT_S)
            unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory)
        closedir(directory);
}

/* All of it, or false. */
static bool write_all(const struct run *run, enum place place)
{
    const struct launch *launch = &run->launch;
    char directory[4096];
    char *where[] = {getcwd(directory, sizeof(directory)) ? directory : NULL, NULL};
    char *options[] = {(char *)run->options.submitted, NULL};

    return write_list(run, place, "args", launch->argv + 1, false) &&
           write_list(run, place, "dir", where, false) &&
           write_list(run, place, "options", options, false) &&
           (!launch->script_bytes ||
            write_bytes(run, place, "script", launch->script_bytes, launch->script_length)) &&
           write_list(run, place, "env", environ, true);
}

static void forget(const struct run *run, enum place place)
{
    char path[4096];

    for (size_t i = sizeof(kinds) / sizeof(kinds[0]); i-- > 0;)
        if (path_of(place, false, run, run->job, kinds[i], path, sizeof(path)) == 0)
            unlink(path);
}

void capture_job(const struct run *run)
{
    for (enum place place = HOME; place < PLACES; place++)
        forget_old(place);
    for (enum place place = HOME; place < PLACES && !write_all(run, place); place++)
        forget(run, place);
}

int capture_script(const struct run *run, char **bytes, size_t *length)
{
    char path[4096];

    *bytes = NULL;
    if (capture_path(run, "script", path, sizeof(path)) == 0 &&
        file_read(path, MAX_CAPTURE_BYTES, bytes, length, NULL) == 0 && *length > 0)
        return 0;
    free(*bytes);
    *bytes = NULL;
    return -1;
}

bool capture_captured(const struct run *run)
{
    char path[4096];

    return capture_path(run, "env", path, sizeof(path)) == 0;
}

void capture_forget(const struct run *run)
{
    for (enum place place = HOME; place < PLACES; place++)
        forget(run, place);
}

/* The new job captures its own when it starts; until then it has this one's, should it fail to. */
void capture_hand_over(const struct run *run, const char *new_job)
{
    char from[4096], to[4096];

    for (enum place place = HOME; place < PLACES; place++)
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
            if (path_of(place, false, run, run->job, kinds[i], from, sizeof(from)) == 0 &&
                path_of(place, false, run, new_job, kinds[i], to, sizeof(to)) == 0)
                rename(from, to);
}

/* NUL-separated strings back into a list inside `bytes`. */
char **capture_read(const struct run *run, const char *kind, char **bytes)
{
    char path[4096];
    size_t length = 0, count = 0;

    *bytes = NULL;
    if (capture_path(run, kind, path, sizeof(path)) < 0 ||
        file_read(path, MAX_CAPTURE_BYTES, bytes, &length, NULL) != 0)
        return NULL;
    char **list = calloc(length + 1, sizeof(char *));
    for (size_t at = 0; list && at < length; at += strlen(*bytes + at) + 1)
        list[count++] = *bytes + at;
    return list;
}
