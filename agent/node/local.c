/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/local.h"

#include <ctype.h>
#include <dirent.h>
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

static bool is_called(const char *pid, const char *name)
{
    char path[64], comm[32] = "";
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
    file = fopen(path, "re");
    if (!file)
        return false;
    if (!fgets(comm, sizeof(comm), file))
        comm[0] = '\0';
    fclose(file);
    comm[strcspn(comm, "\n")] = '\0';
    return strcmp(comm, name) == 0;
}

static const char *variable(const char *bytes, size_t length, const char *name)
{
    size_t n = strlen(name);

    for (size_t at = 0; at < length; at += strlen(bytes + at) + 1)
        if (strncmp(bytes + at, name, n) == 0 && bytes[at + n] == '=')
            return bytes + at + n + 1;
    return "";
}

/* The job that a supervisor was started for, by the name that it uses itself. */
static void add_job(json_t *jobs, const char *pid)
{
    char path[64], job[80];
    char *bytes = malloc(MAX_ENVIRON_BYTES + 1);
    size_t length = 0;
    ssize_t got;

    snprintf(path, sizeof(path), "/proc/%.20s/environ", pid);
    int fd = bytes ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    while (fd >= 0 && length < MAX_ENVIRON_BYTES &&
           (got = read(fd, bytes + length, MAX_ENVIRON_BYTES - length)) > 0)
        length += (size_t)got;
    if (fd >= 0) {
        close(fd);
        bytes[length] = '\0';
        const char *array = variable(bytes, length, "SLURM_ARRAY_JOB_ID");
        const char *task = variable(bytes, length, "SLURM_ARRAY_TASK_ID");
        if (*array && *task)
            snprintf(job, sizeof(job), "%.30s_%.30s", array, task);
        else
            snprintf(job, sizeof(job), "%.30s", variable(bytes, length, "SLURM_JOB_ID"));
        add(jobs, job);
    }
    free(bytes);
}

/* slurmd calls the node by its short host name, or as its -N says. An agent that does not see the
 * slurmd (in a container with processes of its own) does not see supervisors either, and must not
 * take them for gone. */
static void add_node(json_t *nodes, const char *pid)
{
    char **argv = proctree_argv((pid_t)atoi(pid));
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
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        if (is_called(entry->d_name, "oomrun"))
            add_job(local->jobs, entry->d_name);
        else if (is_called(entry->d_name, "slurmd"))
            add_node(local->nodes, entry->d_name);
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

bool local_is_orphan(const struct local *local, const char *node, const char *job)
{
    return *job && json_object_get(local->nodes, node) && !json_object_get(local->jobs, job);
}
