/* SPDX-License-Identifier: Apache-2.0
 *
 * A Ray cluster through the HTTP interface of its dashboard (the Jobs API and its neighbours), by
 * libcurl. One request at a time, every one bounded in time and size. Seen on Ray 2.60; what older
 * ones do differently is said where it is handled.
 *
 *   ray_options.c  a line of `ray_clusters`      ray_record.c   a job's record, and making the next
 *   ray_http.c     one request                   ray_package.c  the working directory, packed again
 *   ray_api.c      the calls                     ray_words.c    the words of an entrypoint
 *   ray_logs.c     logs, incrementally           ray_raylet.c   what a raylet's log tells of a job
 *   ray.c          struct sched */
#ifndef AGENT_SCHED_RAY_H
#define AGENT_SCHED_RAY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oomretry/error.h"
#include "oomretry/values.h"

/* --- ray_options.c ------------------------------------------------------------------------------
 */

/* "http://host:8265 token=/etc/oomretry/ray.token ca=/etc/ssl/ray.pem retry=auto owner=alice" */
struct ray_options {
    char url[256];         /* without a slash at its end */
    char token_file[1024]; /* holds the token of Ray's token authentication; "" none */
    char ca_file[1024];    /* whom to trust for https; "" the system's */
    char cert_file[1024];  /* our own certificate and key, where the site asks for one */
    char key_file[1024];
    bool insecure;   /* tls=insecure: certificates are not verified */
    char retry[64];  /* for jobs that say nothing themselves; "" leaves them alone */
    char owner[64];  /* the user whose lineages they are; "" the agent's */
    char temp[1024]; /* Ray's temporary directory, when the cluster's head is this machine */
    int grace_s;     /* of jobs that say nothing themselves */
    int agents_port; /* where the nodes' agents listen (node_listen); 0: they are not asked */
};

int ray_options_parse(const char *line, struct ray_options *out, struct oom_error *err);

/* --- ray_http.c ---------------------------------------------------------------------------------
 */

struct ray_client;

/* No traffic yet. */
struct ray_client *ray_open(const struct ray_options *options, struct oom_error *err);
void ray_close(struct ray_client *client);
const struct ray_options *ray_client_options(const struct ray_client *client);

/* Gets the bytes of a good answer, in portions; not 0 ends the transfer. */
typedef int ray_sink_f(void *arg, const char *bytes, size_t length);

struct ray_request {
    const char *method;
    const char *url; /* a path of the dashboard, or a whole URL */
    const void *body;
    size_t body_length;
    const char *content_type;
    int64_t from; /* first byte wanted (HTTP range); 0: all */
    ray_sink_f *sink;
    void *arg;
};

/* The HTTP status, or -1 without an answer. From 400 on err has the answer's words. A sink that
 * ended the transfer is no error. */
long ray_http(struct ray_client *client, const struct ray_request *request, struct oom_error *err);

/* --- ray_api.c ----------------------------------------------------------------------------------
 */

/* What tells a cluster from any other one, also from its successor at the same address. */
int ray_identify(struct ray_client *client, char *session, size_t size, struct oom_error *err);

/* The name of the directory that its nodes keep their files in: "session_2026-…". Part of what
 * ray_identify gives, but for old releases, which tell it among many other things. */
int ray_session_name(struct ray_client *client, const char *identity, char *name, size_t size,
                     struct oom_error *err);

/* Every job; a new array of records as ray_jobs_normalise gives them. */
int ray_list(struct ray_client *client, json_t **jobs, struct oom_error *err);

/* One job: 0, 1 there is none, -1. */
int ray_job(struct ray_client *client, const char *id, json_t **job, struct oom_error *err);

/* What the entrypoint asked for, which the job's record does not tell: {"CPU":1.0,"memory":…} and
 * the labels that it selects nodes by. 0, 1 not known, -1. */
int ray_entrypoint_resources(struct ray_client *client, const char *id, json_t **resources,
                             json_t **labels, struct oom_error *err);

/* A new submission. 0 it is there (also when an earlier call of ours had made it), -1. */
int ray_submit(struct ray_client *client, const json_t *request, struct oom_error *err);
int ray_stop(struct ray_client *client, const char *id, struct oom_error *err);

/* Nodes: an array of {"node_id","node_ip","state","end_time_ms","resources_total"}; the dead ones
 * too when they are wanted. */
int ray_nodes(struct ray_client *client, bool dead, json_t **nodes, struct oom_error *err);

/* Asks whether a package ("_ray_pkg_….zip") is there. Asking keeps it: Ray deletes a package when
 * the last job that uses it has ended and nobody has asked for ten minutes. 0, 1 gone, -1. */
int ray_package_keep(struct ray_client *client, const char *name, struct oom_error *err);

/* Uploads a package unless it is there already. */
int ray_package_put(struct ray_client *client, const char *name, const void *bytes, size_t length,
                    struct oom_error *err);

/* --- ray_logs.c ---------------------------------------------------------------------------------
 */

/* What the job's driver has written behind *offset, which moves on; at most `limit` bytes. From
 * the agent of the driver's node, which serves ranges; else all of it from the dashboard, from
 * which the known part is left out. 0, or -1 and err. */
int ray_driver_log(struct ray_client *client, const json_t *job, int64_t *offset, int64_t limit,
                   ray_sink_f *sink, void *arg, struct oom_error *err);

/* Names of a node's log files that match, such as "worker-*-02000000-*". New array of strings. */
int ray_log_names(struct ray_client *client, const char *node, const char *glob, json_t **names,
                  struct oom_error *err);
/* The last `lines` lines of one. */
int ray_log_tail(struct ray_client *client, const char *node, const char *name, int lines,
                 ray_sink_f *sink, void *arg, struct oom_error *err);

/* Takes the text out of {"logs":"…"} as it arrives. */
struct ray_unquote {
    int state;
    int digits;
    unsigned code, high;
    int64_t skip; /* decoded bytes to leave out */
    int64_t left; /* decoded bytes still wanted */
    int64_t given;
    ray_sink_f *sink;
    void *arg;
};
int ray_unquote_feed(void *unquote, const char *bytes, size_t length);

/* --- ray_record.c: pure -------------------------------------------------------------------------
 */

/* Old releases answer {"ID": {…}} instead of an array, without type and submission_id. A new
 * reference; records without a usable id are dropped. */
json_t *ray_jobs_normalise(const json_t *answer);

bool ray_status_is_final(const char *status);

struct ray_wish {
    bool wanted;
    char policy[64];
    char mode[16];
    char allow[64];
    int max_retries; /* -1: the site's default */
    int grace_s;     /* a silent job that has run out is stopped after this; 0 never, -1 as usual */
    bool dry_run;
    char problem[128]; /* a setting that cannot be read, in words; "" none */
};

/* What the job's metadata, else the site's rule, ask for. */
void ray_wish_read(const json_t *job, const char *site_rule, struct ray_wish *out);

/* Somebody else owns the retry: the job says that it belongs to a Slurm job, or its entrypoint is
 * oomrun. `why` in words. */
bool ray_owned_elsewhere(const json_t *job, char *why, size_t size);

/* "train-oom3" from "train" or "train-oom2". */
void ray_next_id(const json_t *job, int64_t attempt, char *out, size_t size);

struct ray_next {
    const char *id;                   /* of the new submission */
    const char *entrypoint;           /* rewritten */
    const char *package;              /* URI of the new working directory; NULL: as before */
    const json_t *resources, *labels; /* of ray_entrypoint_resources; may be NULL */
    const struct oom_edits *edits;    /* of resources and of environment variables */
    int64_t lineage, attempt;
};

/* The request that submits the same job again with these changes. New reference; NULL and err. */
json_t *ray_next_request(const json_t *job, const struct ray_next *next, struct oom_error *err);

/* It is our own submission of that attempt. */
bool ray_is_attempt(const json_t *job, int64_t lineage, int64_t attempt);

/* --- ray_raylet.c: pure -------------------------------------------------------------------------
 */

/* Of a raylet's log, the records in which the memory monitor chose a worker of the job
 * ("02000000"); a new string, "" when there is none. */
char *ray_raylet_kills(const char *bytes, size_t length, const char *job_id);

/* --- ray_words.c: pure --------------------------------------------------------------------------
 */

/* An entrypoint that only starts a script: [NAME=VALUE …] [bash|sh [-x …]] FILE [ARG …]. */
struct ray_start {
    char **words; /* without quotes; NULL-terminated */
    size_t count;
    size_t shell; /* index of bash or sh; == file when FILE is executed itself */
    size_t file;
};

/* False when it is anything else (operators, expansions, another program). */
bool ray_start_parse(const char *entrypoint, struct ray_start *out);
void ray_start_free(struct ray_start *start);

/* The entrypoint with the script's text instead of its file; "$0" stays FILE. malloc'd. */
char *ray_start_inline(const struct ray_start *start, const char *text);

/* --- ray_package.c ------------------------------------------------------------------------------
 */

/* "_ray_pkg_1234" from "gcs://_ray_pkg_1234.zip": the directory that it is unpacked to. False: the
 * working directory is no such package. */
bool ray_package_name(const char *uri, char *out, size_t size);

/* The directory as a zip, with one file's content replaced (NULL: none); the name is made from the
 * content. At most `limit` bytes of files. */
int ray_package_make(const char *directory, const char *replaced, const char *bytes, size_t length,
                     int64_t limit, char **zip, size_t *zip_length, char name[64],
                     struct oom_error *err);

/* --- ray.c --------------------------------------------------------------------------------------
 */

/* The cluster that sched_ray's functions mean; they are for one cluster at a time. */
void ray_use(struct ray_client *client);

#endif
