/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/head/scope.h"

#include <pwd.h>
#include <stdio.h>

#include "agent/lib/jsonget.h"

const char *scope_user_name(uid_t uid, char *buffer, size_t size)
{
    const struct passwd *pw = getpwuid(uid);

    if (pw)
        snprintf(buffer, size, "%s", pw->pw_name);
    else
        snprintf(buffer, size, "%u", (unsigned)uid);
    return buffer;
}

struct policy_scope scope_of(const struct service_request *request, const json_t *members,
                             char *user, size_t size)
{
    const char *named = json_get_string(members, "user", "");

    return (struct policy_scope){
        .partition = json_get_string(members, "partition", ""),
        .account = json_get_string(members, "account", ""),
        .user = *named ? named : scope_user_name(request->uid, user, size),
    };
}

struct policy_scope scope_of_lineage(const json_t *lineage)
{
    return (struct policy_scope){
        .partition = json_get_string(lineage, "partition", ""),
        .account = json_get_string(lineage, "account", ""),
        .user = json_get_string(lineage, "user", ""),
    };
}
