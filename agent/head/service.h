/* SPDX-License-Identifier: Apache-2.0
 *
 * The head's interface: requests and replies are JSON, routes are one table (service.c). It is
 * served over HTTP by oomagent (agent/head/http.c) and called in-process by oomrun and oomctl on a
 * local database: one protocol, two transports. */
#ifndef AGENT_HEAD_SERVICE_H
#define AGENT_HEAD_SERVICE_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "db/db.h"
#include "oomretry/error.h"

/* Who compares the open attempts of a cluster with its scheduler (open.c). Times are elapsed_ms. */
struct service_turn {
    char cluster[64];
    char by[256];
    int64_t until_ms;
    int64_t wanted_ms; /* when somebody else was refused it last; 0: never */
};

struct service {
    struct db *db;
    const char *cluster; /* "" when there is no scheduler */
    const struct service_limits *limits;
    struct service_turn turns[16];
};

/* Site bounds; 0 means no bound. */
struct service_limits {
    int max_retries; /* the most that a user may ask for */
    int default_retries;
    int attempts_per_user_day;
    double gpu_hours_per_user_day;
    int attempts_per_account_day;
    double gpu_hours_per_account_day;
    double max_lineage_hours; /* all failed attempts of one lineage together, by the clock */
    int cooldown_failures;    /* lineages of one policy version that failed alike in a row */
    int cooldown_s;
    int64_t max_mem_mib; /* site maximum for raised memory */
};

extern const struct service_limits service_default_limits;

/* Opens the database and stores the shipped policies in it. */
int service_open(struct service *service, const char *db_path, struct oom_error *err);
void service_close(struct service *service);

struct service_request {
    const char *method;  /* "GET", "POST" */
    const char *path;    /* "/v1/attempts/begin"; without the query */
    const json_t *query; /* object of strings, from the URL's query; may be NULL */
    const json_t *body;  /* may be NULL */
    uid_t uid;           /* whose request it is: from SO_PEERCRED or MUNGE, never from the body */
    bool admin;          /* root, SlurmUser or a configured administrator */
};

/* Returns the HTTP status; *reply is a new reference (an object; {"error":"…"} from 400 on). */
int service_handle(struct service *service, const struct service_request *request, json_t **reply);

/* A route's function; `args` are what the '*' segments of its pattern matched. */
typedef int service_route_f(struct service *service, const struct service_request *request,
                            const char *const *args, json_t **reply, struct oom_error *err);

/* Routes return a status; a negative return is 500 with err's text. For refusals: */
int service_refuse(int status, struct oom_error *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* agent/head/attempts_begin.c, attempts_end.c, attempts.c */
service_route_f attempts_begin, attempts_end, attempts_note, attempts_policies;
/* agent/head/open.c */
service_route_f attempts_open, attempts_claim;
/* agent/head/plan.c */
service_route_f plan_make, plan_policies;
/* agent/head/policies.c */
service_route_f policies_list, policies_show, policies_log, policies_store, policies_act;
/* agent/head/budget.c, steer.c, stats.c */
service_route_f budget_show, lineage_steer, report_show, stats_show;
/* agent/head/reports.c */
service_route_f reports_add, reports_of_job;
/* agent/head/history.c */
service_route_f history_list, history_show;

#endif
