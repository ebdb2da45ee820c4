/* SPDX-License-Identifier: Apache-2.0
 *
 * Acting for an owner: a child becomes him and executes oomrun. */
#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/lib/elapsed.h"
#include "agent/lib/log.h"
#include "agent/lib/paths.h"
#include "agent/node/node.h"

enum { LOOK_EVERY_MS = 50, MAX_STUCK = 16 };

/* The owner's program starts with an environment of its own: nothing of the job's, and of the
 * agent's only where this site has Slurm, MUNGE and the configuration. */
static void clean_environment(const struct passwd *pw, const char *head)
{
    static const char *const kept[] = {"SLURM_CONF", "OOMRETRY_CONFIG", "OOMRETRY_MUNGE_SOCKET"};
    char *copies[sizeof(kept) / sizeof(kept[0])];

    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        copies[i] = getenv(kept[i]) ? strdup(getenv(kept[i])) : NULL;
    clearenv();
    setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1);
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        if (copies[i])
            setenv(kept[i], copies[i], 1);
    setenv("OOMRETRY_HEAD", head, 1);
    setenv("HOME", pw ? pw->pw_dir : "/", 1);
    setenv("USER", pw ? pw->pw_name : "", 1);
}

/* Becomes the owner and executes oomrun. */
static void exec_oomrun(const struct config *config, uid_t uid, const char *const *argv,
                        const char *what)
{
    const struct passwd *pw = getpwuid(uid);
    struct oom_error err = {""};
    char oomrun[4096];

    clean_environment(pw, config->head_url && !config->head_is_local ? config->head_url
                                                                     : config->head_socket);
    if (paths_under_prefix("bin/oomrun", oomrun, sizeof(oomrun), &err) == 0 &&
        drop_to_owner(uid, pw ? pw->pw_gid : (gid_t)uid, &err) == 0) {
        execv(oomrun, (char *const *)argv);
        oom_errorf(&err, "cannot execute %s: %s", oomrun, strerror(errno));
    }
    log_line(LOG_ERROR, "%s: %s", what, err.text);
    _exit(1);
}

/* Whose processes would not end, as this process has seen: the others must not wait once more. */
static bool is_stuck(uid_t uid, bool from_now_on)
{
    static uid_t uids[MAX_STUCK];
    static size_t count;

    for (size_t i = 0; i < count; i++)
        if (uids[i] == uid)
            return true;
    if (from_now_on && count < MAX_STUCK)
        uids[count++] = uid;
    return false;
}

bool owner_run_oomrun(const struct config *config, uid_t uid, const char *const *argv,
                      const char *what, const struct owner_wait *wait)
{
    struct timespec nap = {0, LOOK_EVERY_MS * 1000 * 1000};
    int64_t start_ms = elapsed_ms(), called_ms = start_ms;
    pid_t pid = is_stuck(uid, false) ? -1 : fork();

    if (pid == 0)
        exec_oomrun(config, uid, argv, what);
    while (pid > 0 && waitpid(pid, NULL, WNOHANG) == 0) {
        int64_t now_ms = elapsed_ms();
        if (now_ms - start_ms > wait->limit_ms) {
            log_line(LOG_WARNING, "%s: oomrun of uid %u does not end and is killed", what,
                     (unsigned)uid);
            is_stuck(uid, true);
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
            return false;
        }
        if (wait->meanwhile && now_ms - called_ms >= wait->every_ms) {
            wait->meanwhile(wait->arg);
            called_ms = now_ms;
        }
        nanosleep(&nap, NULL);
    }
    return pid > 0;
}
