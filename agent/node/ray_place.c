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

/* "--log_dir=/tmp/ray/session_…/logs" holds the directory. */
static bool find_session(const char *bytes, size_t length, const char *session,
                         struct ray_place *out)
{
    bool named = false;

    for (const char *word = bytes; word < bytes + length; word += strlen(word) + 1) {
        const char *at = strstr(word, session);
        if (!at)
            continue;
        named = true;
        const char *slash = strchr(word, '/');
        size_t size = slash && slash < at ? (size_t)(at - slash) + strlen(session) : 0;
        if (!out->session_dir[0] && size && size < sizeof(out->session_dir) && at[-1] == '/')
            snprintf(out->session_dir, sizeof(out->session_dir), "%.*s", (int)size, slash);
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
    struct stat st;

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
    if (!out->session_dir[0])
        snprintf(out->session_dir, sizeof(out->session_dir), "%.700s/%.300s", temp, session);
    if (stat(out->session_dir, &st) < 0 || !S_ISDIR(st.st_mode))
        out->session_dir[0] = '\0';
}

bool ray_place_working_dir(const struct ray_place *place, const char *uri, char *out, size_t size)
{
    const char *slash = strrchr(uri, '/'), *name = slash ? slash + 1 : uri;
    size_t length = strlen(name);
    struct stat st;

    out[0] = '\0';
    if (!place->session_dir[0] || strncmp(uri, "gcs://", 6) != 0 || length < 5 ||
        strcmp(name + length - 4, ".zip") != 0 || name[0] == '.')
        return false;
    snprintf(out, size, "%s/runtime_resources/working_dir_files/%.*s", place->session_dir,
             (int)length - 4, name);
    if (stat(out, &st) == 0 && S_ISDIR(st.st_mode))
        return true;
    out[0] = '\0';
    return false;
}
