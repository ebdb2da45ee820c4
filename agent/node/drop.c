/* SPDX-License-Identifier: Apache-2.0
 *
 * Every set*id call is checked, and that root cannot be regained is tried (CVE-2019-19728 in Slurm
 * was a forgotten check). */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "agent/node/node.h"

static int become(uid_t uid, gid_t gid, const char *name, struct oom_error *err)
{
    int groups = name ? initgroups(name, gid) : setgroups(1, &gid);

    if (groups < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
        return oom_errorf(err, "cannot become uid %u: %s", (unsigned)uid, strerror(errno));
    if (uid != 0 && (setuid(0) == 0 || seteuid(0) == 0))
        return oom_errorf(err, "root could be regained after becoming uid %u", (unsigned)uid);
    return 0;
}

int drop_to_user(const char *name, struct oom_error *err)
{
    if (!name || !*name || geteuid() != 0)
        return 0;
    const struct passwd *pw = getpwnam(name);
    if (!pw)
        return oom_errorf(err, "head_user \"%s\" is no user of this machine", name);
    return become(pw->pw_uid, pw->pw_gid, name, err);
}

int drop_to_owner(uid_t uid, gid_t gid, struct oom_error *err)
{
    const struct passwd *pw = getpwuid(uid);

    if (geteuid() != 0)
        return uid == geteuid() ? 0
                                : oom_errorf(err, "only root can act for uid %u", (unsigned)uid);
    return become(uid, pw ? pw->pw_gid : gid, pw ? pw->pw_name : NULL, err);
}
