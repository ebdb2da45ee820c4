/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/local.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/proctree.h"

enum { MAX_ENVIRON_BYTES = 512 * 1024 };

static void add(json_t *set, const char *name)
{
    if (*name)
        json_object_set_new(set, name, json_true());
}

static const char *variable(const char *bytes, size_t length, const char *name)
{
    size_t n = strlen(name);

    for (size_t at = 0; at < length; at += strlen(bytes + at) + 1)
        if (strncmp(bytes + at, name, n) == 0 && bytes[at + n] == '=')
            return bytes + at + n + 1;
    return "";
}

/* A whole file of /proc/PID, NUL-terminated; what is over the bound is left out. NULL: it cannot
 * be read, and errno says why. */
static char *read_file(int process, const char *name, size_t bound, size_t *length)
{
    int fd = openat(process, name, O_RDONLY | O_CLOEXEC);
    char *bytes = fd >= 0 ? malloc(bound + 1) : NULL;
    ssize_t got = 0;

    *length = 0;
    while (bytes && *length < bound && (got = read(fd, bytes + *length, bound - *length)) > 0)
        *length += (size_t)got;
    if (bytes && got < 0) {
        int why = errno;
        free(bytes);
        bytes = NULL;
        errno = why;
    }
    if (bytes)
        bytes[*length] = '\0';
    if (fd >= 0) {
        int why = errno;
        close(fd);
        errno = why;
    }
    return bytes;
}

/* What it is called, and as whom it runs. Anybody may call his process anything. */
static bool identify(int process, char *name, size_t size, uid_t *uid)
{
    size_t length;
    char *text = read_file(process, "status", 4096, &length);
    const char *ids = text ? strstr(text, "\nUid:\t") : NULL;
    unsigned real, effective;
    bool known = ids && strncmp(text, "Name:\t", 6) == 0 &&
                 sscanf(ids, "\nUid:\t%u\t%u", &real, &effective) == 2;

    if (known) {
        snprintf(name, size, "%.*s", (int)strcspn(text + 6, "\n"), text + 6);
        *uid = effective;
    }
    free(text);
    return known;
}

/* The job that a supervisor was started for, by the name that it uses itself. One whose job cannot
 * be seen may be that of any of its user's jobs: none of them is taken for an orphan then. */
static void add_job(json_t *jobs, int process, uid_t uid)
{
    size_t length;
    char job[96], *bytes = read_file(process, "environ", MAX_ENVIRON_BYTES, &length);

    if (bytes) {
        const char *array = variable(bytes, length, "SLURM_ARRAY_JOB_ID");
        const char *task = variable(bytes, length, "SLURM_ARRAY_TASK_ID");
        const char *id = variable(bytes, length, "SLURM_JOB_ID");
        if (length == MAX_ENVIRON_BYTES && !*id)
            snprintf(job, sizeof(job), "%u/*", (unsigned)uid);
        else if (*array && *task)
            snprintf(job, sizeof(job), "%u/%.30s_%.30s", (unsigned)uid, array, task);
        else
            snprintf(job, sizeof(job), "%u/%.30s", (unsigned)uid, id);
        add(jobs, job);
    } else if (errno == EACCES || errno == EPERM) {
        snprintf(job, sizeof(job), "%u/*", (unsigned)uid);
        add(jobs, job);
    }
    free(bytes);
}

/* slurmd calls the node by its short host name, or as its -N says. An agent that does not see the
 * slurmd (in a container with processes of its own) does not see supervisors either, and must not
 * take them for gone. */
static void add_node(json_t *nodes, pid_t pid)
{
    char **argv = proctree_argv(pid);
    char name[256] = "";

    if (!argv)
        return;
    gethostname(name, sizeof(name) - 1);
    name[strcspn(name, ".")] = '\0';
    for (char **arg = argv; *arg; arg++)
        if (strncmp(*arg, "-N", 2) == 0)
            snprintf(name, sizeof(name), "%s", (*arg)[2] ? *arg + 2 : arg[1] ? arg[1] : "");
    add(nodes, name);
    free(argv);
}

int local_look(struct local *local)
{
    DIR *proc = opendir("/proc");

    *local = (struct local){json_object(), json_object()};
    if (!proc || !local->nodes || !local->jobs) {
        if (proc)
            closedir(proc);
        local_free(local);
        return -1;
    }
    for (struct dirent *entry; (entry = readdir(proc));) {
        int process = isdigit((unsigned char)entry->d_name[0])
                          ? openat(dirfd(proc), entry->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC)
                          : -1;
        char name[32];
        uid_t uid;

        if (process < 0)
            continue;
        if (identify(process, name, sizeof(name), &uid)) {
            if (strcmp(name, "oomrun") == 0)
                add_job(local->jobs, process, uid);
            else if (strcmp(name, "slurmd") == 0 && uid == geteuid())
                add_node(local->nodes, (pid_t)atoi(entry->d_name));
        }
        close(process);
    }
    closedir(proc);
    return 0;
}

void local_free(struct local *local)
{
    json_decref(local->nodes);
    json_decref(local->jobs);
    *local = (struct local){NULL, NULL};
}

bool local_has_node(const struct local *local, const char *node)
{
    return json_object_get(local->nodes, node) != NULL;
}

bool local_has_supervisor(const struct local *local, uid_t uid, const char *job)
{
    char any[32], one[128];

    snprintf(any, sizeof(any), "%u/*", (unsigned)uid);
    snprintf(one, sizeof(one), "%u/%s", (unsigned)uid, job);
    return json_object_get(local->jobs, any) || json_object_get(local->jobs, one);
}

void local_list_nodes(const struct local *local, char *out, size_t size)
{
    size_t used = 0;
    const char *name;
    json_t *here;

    out[0] = '\0';
    json_object_foreach(local->nodes, name, here)
    {
        int n = snprintf(out + used, size - used, "%s%s", used ? "," : "", name);
        if (n < 0 || (size_t)n >= size - used) {
            out[used] = '\0';
            return;
        }
        used += (size_t)n;
    }
}
