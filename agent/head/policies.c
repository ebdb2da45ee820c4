/* SPDX-License-Identifier: Apache-2.0
 *
 * Policies over the service: everybody may read, administrators change. Versions never change;
 * what a running lineage began with stays with it. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/head/backtest.h"
#include "agent/head/service.h"
#include "agent/lib/jsonget.h"
#include "db/policies.h"
#include "db/policy_admin.h"
#include "oomretry/policy.h"

enum { MAX_MESSAGE = 400 };

static const char *author_of(const struct service_request *request, char *text, size_t size)
{
    const struct passwd *pw = getpwuid(request->uid);

    if (pw)
        snprintf(text, size, "%s", pw->pw_name);
    else
        snprintf(text, size, "uid %u", (unsigned)request->uid);
    return text;
}

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

int policies_show(struct service *service, const struct service_request *request,
                  const char *const *args, json_t **reply, struct oom_error *err)
{
    int64_t version = atoll(json_get_string(request->query, "version", "0"));

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

/* Validates and stores a document; both a wrong document and a stale base change nothing. */
static int add(struct service *service, const struct service_request *request, const char *name,
               int64_t base, const json_t *document, const char *message, json_t **reply,
               struct oom_error *err)
{
    char author[64];
    int64_t active = 0;
    struct oom_policy *policy = oom_policy_from_json(document, name, err);

    if (!policy)
        return 400;
    bool same_name = strcmp(oom_policy_name(policy), name) == 0;
    oom_policy_free(policy);
    if (!same_name)
        return service_refuse(400, err, "the document's name is not \"%s\"", name);
    int64_t version = policies_add(service->db, name, base, document,
                                   author_of(request, author, sizeof(author)), message, err);
    if (version < 0) {
        json_t *now = policy_admin_show(service->db, name, 0, NULL);
        active = json_get_int(now, "version", 0);
        json_decref(now);
        return active != base ? 409 : -1;
    }
    *reply = json_pack("{s:s, s:I}", "name", name, "version", (json_int_t)version);
    return 200;
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

/* args[0]: name, args[1]: enable, disable, rollback, backtest */
int policies_act(struct service *service, const struct service_request *request,
                 const char *const *args, json_t **reply, struct oom_error *err)
{
    char author[64];
    const char *verb = args[1];

    if (strcmp(verb, "backtest") == 0)
        return backtest_run(service, args[0], json_object_get(request->body, "document"), reply,
                            err);
    int status = may_edit(request, err);
    if (status)
        return status;
    if (strcmp(verb, "rollback") == 0)
        return roll_back(service, request, args[0], reply, err);
    bool enable = strcmp(verb, "enable") == 0;
    if (!enable && strcmp(verb, "disable") != 0)
        return service_refuse(404, err, "\"%s\" is none of enable, disable, rollback, backtest",
                              verb);
    int rc = policy_admin_enable(service->db, args[0], enable,
                                 author_of(request, author, sizeof(author)), err);
    if (rc < 0)
        return -1;
    if (rc == 0)
        return service_refuse(404, err, "there is no policy \"%s\"", args[0]);
    *reply = json_pack("{s:s, s:b}", "name", args[0], "enabled", (int)enable);
    return 200;
}
