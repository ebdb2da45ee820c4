/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes of a Ray session on this machine name it in their arguments. They tell where its
 * directory is, and whether the cluster lives inside a Slurm job: by Slurm's cgroup, or by the
 * environment when that may be read. */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/lib/files.h"
#include "agent/node/ray_watch.h"

enum { MAX_PROC_BYTES = 256 * 1024 };

static char *read_proc(const char *pid, const char *what, size_t *length)
{
    char path[300], *bytes = NULL;

    snprintf(path, sizeof(path), "/proc/%s/%s", pid, what);
    return file_read(path, MAX_PROC_BYTES, &bytes, length, NULL) < 0 ? NULL : bytes;
}

static void add_session_dir(struct ray_place *out, const char *path, size_t length)
{
    char *slot = out->session_dirs[out->session_dir_count];
    struct stat st;

    if (out->session_dir_count == RAY_MAX_SESSION_DIRS || length >= sizeof(out->session_dirs[0]))
        return;
    memcpy(slot, path, length);
    slot[length] = '\0';
    for (int i = 0; i < out->session_dir_count; i++)
        if (strcmp(out->session_dirs[i], slot) == 0)
            return;
    if (stat(slot, &st) == 0 && S_ISDIR(st.st_mode))
        out->session_dir_count++;
}

/* "--log_dir=/tmp/ray/session_…/logs" holds the directory. */
static bool find_session(const char *bytes, size_t length, const char *session,
                         struct ray_place *out)
{
    bool named = false;

    for (const char *word = bytes; word < bytes + length; word += strlen(word) + 1) {
        const char *at = strstr(word, session), *slash = strchr(word, '/');
        named |= at != NULL;
        if (at && slash && slash < at && at[-1] == '/')
            add_session_dir(out, slash, (size_t)(at - slash) + strlen(session));
    }
    return named;
}

static void copy_digits(char *out, size_t size, const char *from)
{
    size_t n = strspn(from, "0123456789");

    snprintf(out, size, "%.*s", (int)(n < size ? n : size - 1), from);
}

static void find_slurm(const char *pid, struct ray_place *out)
{
    size_t length;
    char *text = read_proc(pid, "cgroup", &length);
    const char *job = text && strstr(text, "slurm") ? strstr(text, "/job_") : NULL;

    if (job && isdigit((unsigned char)job[5]))
        copy_digits(out->slurm_job, sizeof(out->slurm_job), job + 5);
    free(text);
    if (out->slurm_job[0])
        return;
    text = read_proc(pid, "environ", &length);
    for (const char *word = text; word && word < text + length; word += strlen(word) + 1)
        if (strncmp(word, "SLURM_JOB_ID=", 13) == 0)
            copy_digits(out->slurm_job, sizeof(out->slurm_job), word + 13);
    free(text);
}

void ray_place_find(const char *session, const char *temp, struct ray_place *out)
{
    DIR *proc = opendir("/proc");

    memset(out, 0, sizeof(*out));
    for (struct dirent *entry; proc && (entry = readdir(proc));) {
        size_t length;
        char *words = isdigit((unsigned char)entry->d_name[0])
                          ? read_proc(entry->d_name, "cmdline", &length)
                          : NULL;
        if (words && find_session(words, length, session, out) && !out->slurm_job[0])
            find_slurm(entry->d_name, out);
        free(words);
    }
    if (proc)
        closedir(proc);
    char usual[1024];
    int n = snprintf(usual, sizeof(usual), "%s/%s", temp, session);
    if (n > 0 && (size_t)n < sizeof(usual))
        add_session_dir(out, usual, (size_t)n);
}

bool ray_place_working_dir(const struct ray_place *place, const char *uri, char *out, size_t size)
{
    const char *slash = strrchr(uri, '/'), *name = slash ? slash + 1 : uri;
    size_t length = strlen(name);
    struct stat st;

    out[0] = '\0';
    if (strncmp(uri, "gcs://", 6) != 0 || length < 5 || strcmp(name + length - 4, ".zip") != 0 ||
        name[0] == '.')
        return false;
    for (int i = 0; i < place->session_dir_count; i++) {
        snprintf(out, size, "%s/runtime_resources/working_dir_files/%.*s", place->session_dirs[i],
                 (int)length - 4, name);
        if (stat(out, &st) == 0 && S_ISDIR(st.st_mode))
            return true;
    }
    out[0] = '\0';
    return false;
}
