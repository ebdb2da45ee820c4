/* SPDX-License-Identifier: Apache-2.0
 *
 * Policies over the service: everybody may read, administrators change. Versions never change;
 * what a running lineage began with stays with it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/head/backtest.h"
#include "agent/head/scope.h"
#include "agent/head/service.h"
#include "agent/lib/jsonget.h"
#include "db/policies.h"
#include "db/policy_admin.h"
#include "oomretry/policy.h"
#include "policies/policy_override.h"

enum { MAX_MESSAGE = 400 };

int policies_list(struct service *service, const struct service_request *request,
                  const char *const *args, json_t **reply, struct oom_error *err)
{
    json_t *list = policy_admin_list(service->db, err);

    (void)request;
    (void)args;
    if (!list)
        return -1;
    *reply = json_pack("{s:o}", "policies", list);
    return 200;
}

/* What a policy comes to for somebody: its document with the overrides that apply. */
static int show_resolved(struct service *service, const struct service_request *request,
                         const char *name, json_t **reply, struct oom_error *err)
{
    char user[SCOPE_USER_ROOM], applied[OOM_OVERRIDES_ROOM];
    struct policy_scope scope = scope_of(request, request->query, user, sizeof(user));
    json_t *left_out = json_array();
    bool used;

    scope.user = json_get_string(request->query, "user", "");
    json_t *versions = overrides_versions_of(service->db, name, &scope, NULL, &used, left_out, err);
    json_t *document = versions ? overrides_resolve(service->db, versions, name, NULL, applied,
                                                    sizeof(applied), err)
                                : NULL;
    if (document)
        *reply = json_pack("{s:s, s:O, s:b, s:s, s:O, s:O}", "name", name, "version",
                           json_object_get(versions, name), "enabled", (int)used, "overrides",
                           applied, "document", document, "left_out", left_out);
    int status = !versions ? 404 : document ? 200 : -1;
    json_decref(document);
    json_decref(versions);
    json_decref(left_out);
    return status;
}

int policies_show(struct service *service, const struct service_request *request,
                  const char *const *args, json_t **reply, struct oom_error *err)
{
    int64_t version = atoll(json_get_string(request->query, "version", "0"));

    for (const char *const *scope = policy_override_scopes; *scope; scope++)
        if (json_object_get(request->query, *scope))
            return show_resolved(service, request, args[0], reply, err);
    *reply = policy_admin_show(service->db, args[0], version, err);
    return *reply ? 200 : 404;
}

int policies_log(struct service *service, const struct service_request *request,
                 const char *const *args, json_t **reply, struct oom_error *err)
{
    json_t *log = policy_admin_log(service->db, args[0], err);

    (void)request;
    if (!log)
        return -1;
    if (json_array_size(log) == 0) {
        json_decref(log);
        return service_refuse(404, err, "there is no policy \"%s\"", args[0]);
    }
    *reply = json_pack("{s:s, s:o}", "name", args[0], "versions", log);
    return 200;
}

static int may_edit(const struct service_request *request, struct oom_error *err)
{
    if (request->admin)
        return 0;
    return service_refuse(403, err,
                          "policies are changed by administrators (\"admins\" in oomretry.conf); "
                          "everybody may read them");
}

/* A policy must be one, and still carry its overrides; an override must fit its policy. */
static int check(struct service *service, const char *name, const json_t *document,
                 struct oom_error *err)
{
    if (policy_override_is_name(name))
        return overrides_check(service->db, name, document, err) < 0 ? 400 : 0;
    struct oom_policy *policy = oom_policy_from_json(document, name, err);
    if (!policy)
        return 400;
    bool same_name = strcmp(oom_policy_name(policy), name) == 0;
    oom_policy_free(policy);
    if (!same_name)
        return service_refuse(400, err, "the document's name is not \"%s\"", name);
    return overrides_check_base(service->db, name, document, err) < 0 ? 409 : 0;
}

/* Both a wrong document and a stale base change nothing. */
static int check_and_add(struct service *service, const char *author, const char *name,
                         int64_t base, const json_t *document, const char *message, json_t **reply,
                         struct oom_error *err)
{
    int status = check(service, name, document, err);

    if (status)
        return status;
    int64_t version = policies_add(service->db, name, base, document, author, message, err);
    if (version < 0) {
        json_t *now = policy_admin_show(service->db, name, 0, NULL);
        int64_t active = json_get_int(now, "version", 0);
        json_decref(now);
        return active != base ? 409 : -1;
    }
    *reply = json_pack("{s:s, s:I}", "name", name, "version", (json_int_t)version);
    return 200;
}

/* In one transaction, so that what was checked against is what is stored beside. */
static int add(struct service *service, const struct service_request *request, const char *name,
               int64_t base, const json_t *document, const char *message, json_t **reply,
               struct oom_error *err)
{
    char author[SCOPE_USER_ROOM];

    if (db_begin(service->db, err) < 0)
        return -1;
    int status = check_and_add(service, scope_user_name(request->uid, author, sizeof(author)), name,
                               base, document, message, reply, err);
    return db_end(service->db, status == 200, status == 200 ? err : NULL) < 0 ? -1 : status;
}

int policies_store(struct service *service, const struct service_request *request,
                   const char *const *args, json_t **reply, struct oom_error *err)
{
    const json_t *document = json_object_get(request->body, "document");
    const char *message = json_get_string(request->body, "message", "");
    int status = may_edit(request, err);

    if (status)
        return status;
    if (!json_is_object(document))
        return service_refuse(400, err, "the body needs \"document\", \"base\" and \"message\"");
    if (strlen(message) > MAX_MESSAGE)
        return service_refuse(400, err, "a message has at most %d characters", MAX_MESSAGE);
    return add(service, request, args[0], json_get_int(request->body, "base", 0), document, message,
               reply, err);
}

static int roll_back(struct service *service, const struct service_request *request,
                     const char *name, json_t **reply, struct oom_error *err)
{
    char message[64];
    json_t *now = policy_admin_show(service->db, name, 0, err);
    int64_t active = json_get_int(now, "version", 0);
    int64_t wanted = json_get_int(request->body, "version", 0);

    json_decref(now);
    if (!now)
        return 404;
    if (!wanted)
        wanted = active - 1;
    json_t *old = policy_admin_show(service->db, name, wanted, err);
    if (!old)
        return 404;
    snprintf(message, sizeof(message), "rollback to version %lld", (long long)wanted);
    int status =
        add(service, request, name, active, json_object_get(old, "document"), message, reply, err);
    json_decref(old);
    return status;
}

/* args[0]: name, args[1]: enable, disable, rollback, backtest, check */
int policies_act(struct service *service, const struct service_request *request,
                 const char *const *args, json_t **reply, struct oom_error *err)
{
    char author[SCOPE_USER_ROOM];
    const char *verb = args[1];

    if (strcmp(verb, "backtest") == 0)
        return backtest_run(service, request, args[0], reply, err);
    int status = strcmp(verb, "check") == 0 ? 0 : may_edit(request, err);
    if (status)
        return status;
    if (strcmp(verb, "check") == 0) {
        status = check(service, args[0], json_object_get(request->body, "document"), err);
        return status ? status : 200;
    }
    if (strcmp(verb, "rollback") == 0)
        return roll_back(service, request, args[0], reply, err);
    if (policy_override_is_name(args[0]))
        return service_refuse(400, err, "an override says \"use\": true or false in its document");
    bool enable = strcmp(verb, "enable") == 0;
    if (!enable && strcmp(verb, "disable") != 0)
        return service_refuse(404, err,
                              "\"%s\" is none of enable, disable, rollback, backtest, check", verb);
    int rc = policy_admin_enable(service->db, args[0], enable,
                                 scope_user_name(request->uid, author, sizeof(author)), err);
    if (rc < 0)
        return -1;
    if (rc == 0)
        return service_refuse(404, err, "there is no policy \"%s\"", args[0]);
    *reply = json_pack("{s:s, s:b}", "name", args[0], "enabled", (int)enable);
    return 200;
}
