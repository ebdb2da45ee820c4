/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes of a Ray session on this machine name it in their arguments. They tell where its
 * directory is, and whether the cluster lives inside a Slurm job or under oomrun: by Slurm's
 * cgroup, by their ancestors (oomrun adopts what daemonizes below it), or by the environment when
 * that may be read. */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    struct stat st;

    if (out->session_dir_count == RAY_MAX_SESSION_DIRS || length >= sizeof(out->session_dirs[0]))
        return;
    char *slot = out->session_dirs[out->session_dir_count];
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

static void set_slurm(struct ray_place *out, const char *digits)
{
    size_t n = strspn(digits, "0123456789");

    snprintf(out->supervisor, sizeof(out->supervisor), "the Slurm job %.*s", n < 20 ? (int)n : 20,
             digits);
}

static bool find_cgroup(const char *pid, struct ray_place *out)
{
    size_t length;
    char *text = read_proc(pid, "cgroup", &length);
    const char *job = text && strstr(text, "slurm") ? strstr(text, "/job_") : NULL;
    bool found = job && isdigit((unsigned char)job[5]);

    if (found)
        set_slurm(out, job + 5);
    free(text);
    return found;
}

static bool find_variable(const char *pid, struct ray_place *out)
{
    size_t length;
    char *text = read_proc(pid, "environ", &length);
    bool found = false;

    for (const char *word = text; word && word < text + length; word += strlen(word) + 1)
        if (strncmp(word, "SLURM_JOB_ID=", 13) == 0) {
            set_slurm(out, word + 13);
            found = true;
        }
    free(text);
    return found;
}

enum chain { CHAIN_WHOLE, CHAIN_BROKE, CHAIN_FOUND };

static enum chain climb(const char *pid, struct ray_place *out)
{
    static const char step[] = "slurmstepd: [";
    char at[24];
    enum chain chain = CHAIN_WHOLE;

    snprintf(at, sizeof(at), "%s", pid);
    for (int depth = 0; depth < 32 && atoi(at) > 1 && chain != CHAIN_BROKE; depth++) {
        size_t length;
        char *stat_text = read_proc(at, "stat", &length),
             *words = read_proc(at, "cmdline", &length);
        char *name = stat_text ? strchr(stat_text, '(') : NULL;
        char *rest = stat_text ? strrchr(stat_text, ')') : NULL;
        int parent = 0;
        if (words && strncmp(words, step, sizeof(step) - 1) == 0)
            set_slurm(out, words + sizeof(step) - 1);
        else if (name && strncmp(name, "(oomrun)", 8) == 0)
            strcpy(out->supervisor, "oomrun");
        if (!rest || sscanf(rest, ") %*c %d", &parent) != 1)
            chain = CHAIN_BROKE;
        snprintf(at, sizeof(at), "%d", parent);
        free(stat_text);
        free(words);
        /* Above oomrun there may be the Slurm job that says more. */
        if (strncmp(out->supervisor, "the ", 4) == 0)
            break;
    }
    return out->supervisor[0] ? CHAIN_FOUND : chain;
}

/* `ray start` ends soon after its daemons have begun: between two looks the parent of one may be
 * gone, and another one have adopted it. */
static bool find_ancestor(const char *pid, struct ray_place *out)
{
    enum chain chain = CHAIN_BROKE;

    for (int tries = 0; tries < 3 && chain == CHAIN_BROKE; tries++)
        chain = climb(pid, out);
    return chain == CHAIN_FOUND;
}

/* proc(5), hidepid: processes of other users cannot be looked at, not even init. */
static bool processes_are_hidden(void)
{
    return access("/proc/1/stat", R_OK) < 0;
}

void ray_place_find(const char *session, const char *temp, struct ray_place *out)
{
    DIR *proc = opendir("/proc");
    bool named = false;

    memset(out, 0, sizeof(*out));
    for (struct dirent *entry; proc && (entry = readdir(proc));) {
        size_t length;
        char *words = isdigit((unsigned char)entry->d_name[0])
                          ? read_proc(entry->d_name, "cmdline", &length)
                          : NULL;
        if (words && find_session(words, length, session, out)) {
            named = true;
            if (!out->supervisor[0] && !find_cgroup(entry->d_name, out) &&
                !find_ancestor(entry->d_name, out))
                find_variable(entry->d_name, out);
        }
        free(words);
    }
    if (proc)
        closedir(proc);
    char usual[1024];
    int n = snprintf(usual, sizeof(usual), "%s/%s", temp, session);
    if (n > 0 && (size_t)n < sizeof(usual))
        add_session_dir(out, usual, (size_t)n);
    out->hidden = !named && out->session_dir_count > 0 && processes_are_hidden();
}

bool ray_place_working_dir(const struct ray_place *place, const char *uri, char *out, size_t size)
{
    char package[128];

    out[0] = '\0';
    if (!ray_package_name(uri, package, sizeof(package)))
        return false;
    for (int i = 0; i < place->session_dir_count; i++) {
        snprintf(out, size, "%s/runtime_resources/working_dir_files/%s", place->session_dirs[i],
                 package);
        if (access(out, R_OK | X_OK) == 0)
            return true;
    }
    out[0] = '\0';
    return false;
}
