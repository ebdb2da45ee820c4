/* SPDX-License-Identifier: Apache-2.0
 *
 * Acting for an owner: a child becomes him and executes oomrun. */
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/log.h"
#include "agent/lib/paths.h"
#include "agent/node/node.h"

static void set_or_unset(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/* The owner's program starts with an environment of its own: nothing of the agent's, nothing of
 * the job's. */
static void clean_environment(const struct passwd *pw, const char *head)
{
    const char *conf = getenv("SLURM_CONF"), *config = getenv("OOMRETRY_CONFIG");
    char *conf_copy = conf ? strdup(conf) : NULL, *config_copy = config ? strdup(config) : NULL;

    clearenv();
    setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1);
    set_or_unset("SLURM_CONF", conf_copy);
    set_or_unset("OOMRETRY_CONFIG", config_copy);
    setenv("OOMRETRY_HEAD", head, 1);
    setenv("HOME", pw ? pw->pw_dir : "/", 1);
    setenv("USER", pw ? pw->pw_name : "", 1);
}

void owner_exec_oomrun(const struct config *config, uid_t uid, const char *const *argv,
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
