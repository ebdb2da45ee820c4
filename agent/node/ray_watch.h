/* SPDX-License-Identifier: Apache-2.0
 *
 * The Ray role of oomagent: a child that has dropped to the head's user, watches the dashboards of
 * `ray_clusters` and acts for the jobs that opted in. All that must not be lost is kept by the
 * head (over its socket) and by Ray; what this process remembers only saves requests. It may end
 * anywhere: every step is found done, or is done again with the same result.
 *
 *   ray_watch.c    the process and its pace         ray_script.c  the entrypoint, rewritten
 *   ray_cluster.c  one cluster: which jobs, which   ray_again.c   deciding, submitting again
 *                  cluster is it                    ray_place.c   what is on this machine
 *   ray_follow.c   one job: begin, log, end         ray_other.c   logs of workers and raylets
 *   ray_ask.c      asking other machines' agents    ray_fetch.c   a working directory from there */
#ifndef AGENT_NODE_RAY_WATCH_H
#define AGENT_NODE_RAY_WATCH_H

#include <sys/types.h>

#include "agent/lib/api.h"
#include "agent/lib/config.h"
#include "agent/sched/ray.h"
#include "oomretry/classify.h"
#include "oomretry/rewrite.h"

/* --- ray_place.c --------------------------------------------------------------------------------
 */

enum { RAY_MAX_SESSION_DIRS = 4 };

struct ray_place {
    char session_dirs[RAY_MAX_SESSION_DIRS][1024]; /* where Ray keeps its files, here */
    int session_dir_count; /* several when nodes share the machine, with directories of their own */
    /* What the cluster lives inside of: "the Slurm job 7", "oomrun"; "" nothing of that kind. */
    char supervisor[48];
    bool hidden; /* its processes are here and cannot be seen, so `supervisor` is not known */
};

void ray_place_find(const char *session, const char *temp, struct ray_place *out);

/* Where Ray has unpacked a working directory ("gcs://_ray_pkg_….zip"); false: not here. */
bool ray_place_working_dir(const struct ray_place *place, const char *uri, char *out, size_t size);

/* --- ray_follow.c -------------------------------------------------------------------------------
 */

struct ray_cluster;

struct ray_follow {
    struct ray_follow *next;
    char id[256];
    int64_t lineage, attempt;
    struct ray_wish wish;
    struct oom_edits edits; /* in force, relative to what the user submitted */
    struct oom_classifier *classifier;
    int stream;
    int64_t offset;                      /* of the driver's log */
    int64_t grew_ms, looked_ms, kept_ms; /* these and the next are elapsed_ms */
    int64_t unread_ms; /* since when the log of a job that has ended cannot be read; 0 */
    int tries;         /* to submit again */
    bool listed;       /* in the newest list */
    bool ours;         /* its end: it was silent after it had run out, and the head knows */
    bool asked;        /* Ray has been asked to stop it */
};

/* The head knows the attempt from now on. NULL and err without an answer; *over is true when its
 * end is known and nothing is left to be done. */
struct ray_follow *ray_follow_begin(struct ray_cluster *cluster, const json_t *job,
                                    const struct ray_wish *wish, bool *over, struct oom_error *err);
void ray_follow_free(struct ray_follow *follow);

/* What the log has grown by. */
void ray_follow_look(struct ray_cluster *cluster, struct ray_follow *follow, const json_t *job);

/* The job has reached its end. True when nothing is left to be done. */
bool ray_follow_end(struct ray_cluster *cluster, struct ray_follow *follow, const json_t *job);

/* It vanished: deleted from Ray, or with its cluster. */
int ray_follow_lost(struct ray_cluster *cluster, int64_t lineage, int64_t attempt,
                    const char *reason, struct oom_error *err);

/* The body of /v1/attempts/end; the head gets incident and values only when they are given. */
struct ray_end {
    const struct oom_exit *exit;
    const struct oom_incident *incident;
    const struct oom_values *values;
    const json_t *refused;
    const char *framework, *reason, *ended_by;
    bool rejected; /* the program's last words name a change of this attempt */
};
json_t *ray_follow_end_body(struct ray_follow *follow, const struct ray_end *end);

/* --- ray_other.c --------------------------------------------------------------------------------
 */

/* Feeds the logs of the job's workers, and what the raylets say about killing them. Returns the
 * number of files. */
int ray_other_feed(struct ray_cluster *cluster, const json_t *job,
                   struct oom_classifier *classifier);

/* The end of the driver's log from the agent of its node, when Ray does not give it. 0: some. */
int ray_other_driver(struct ray_cluster *cluster, const json_t *job,
                     struct oom_classifier *classifier);

/* --- ray_ask.c: agents of other machines (agent/node/evidence.h) --------------------------------
 */

/* Gets one piece of the answer; not 0 ends it. */
typedef int ray_piece_f(void *arg, const char *name, const char *bytes, size_t length);

/* 0: that was all of it, -1: nobody is there, or it did not come to its end. */
int ray_ask(const char *address, int port, const char *path, const json_t *question,
            ray_piece_f *piece, void *arg, struct oom_error *err);

/* Where the driver ran, also when it did not get as far as Ray. */
bool ray_driver_address(const json_t *job, char *out, size_t size);

/* --- ray_fetch.c: unpacks the job's working directory from its driver's machine into a new
 * directory, which ray_fetch_remove takes away again. */
int ray_fetch_working_dir(const struct ray_cluster *cluster, const json_t *job, const char *uri,
                          char *out, size_t size, struct oom_error *err);
void ray_fetch_remove(const char *directory);

/* --- ray_script.c -------------------------------------------------------------------------------
 */

struct ray_script {
    const struct ray_cluster *cluster;
    const json_t *job; /* owns the texts */
    const char *entrypoint;
    const char *uri;        /* of the working directory; NULL: none */
    char working_dir[2048]; /* unpacked, on this machine; "" not here */
    bool asked, fetched;    /* from another machine; it is removed at the end */
    struct oom_error why;   /* it could not be had */
    char **environment;     /* of the runtime environment; NULL-terminated */
    struct oom_script *parsed;
};

int ray_script_open(const json_t *job, const struct ray_cluster *cluster, struct ray_script *out,
                    struct oom_error *err);

/* Makes sure of working_dir; -1 and err when it cannot be had. */
int ray_script_fetch(struct ray_script *script, struct oom_error *err);
void ray_script_close(struct ray_script *script);

struct ray_rewritten {
    char *entrypoint;
    char *file; /* of the working directory, that gets other bytes; NULL: none */
    char *bytes;
    size_t length;
    char *diff; /* of the script */
    struct oom_edits edits;
};

/* Edits of the command line; those of resources and of the runtime environment are not its. */
int ray_script_rewrite(struct ray_script *script, const struct oom_policy *policy,
                       const struct oom_edits *edits, struct ray_rewritten *out,
                       struct oom_error *err);
void ray_rewritten_free(struct ray_rewritten *rewritten);

/* --- ray_again.c --------------------------------------------------------------------------------
 */

/* It ran out of memory (`failure` is NULL), or failed in words about what was changed for it:
 * decides and submits again. True when nothing is left to be done. */
bool ray_again(struct ray_cluster *cluster, struct ray_follow *follow, const json_t *job,
               const struct oom_exit *exit_data, const struct oom_incident *incident,
               const char *failure);

/* --- ray_cluster.c ------------------------------------------------------------------------------
 */

struct ray_cluster {
    struct ray_options options;
    struct ray_client *client;
    struct api *head;
    const struct oom_signatures *signatures;
    uid_t owner;
    char session[256];      /* which cluster it is; "" not known yet */
    char session_name[256]; /* of its directories */
    struct ray_place place;
    json_t *seen;    /* submission id -> true: nothing is left to be done */
    json_t *open;    /* attempts that the head held open when the cluster was adopted, until it is
                        known which of them are still there; NULL */
    json_t *touched; /* lineages of listed jobs, meanwhile */
    struct ray_follow *follows;
    bool reachable;
    int64_t changed_ms; /* when a job began or ended last, by elapsed_ms */
};

int ray_cluster_open(struct ray_cluster *cluster, const char *line, struct api *head,
                     const struct oom_signatures *signatures, struct oom_error *err);

/* Looks once. Returns how soon to look again when that costs nothing, in ms; *quiet: there was
 * nothing to do, so that this look cost what the next ones will. */
int64_t ray_cluster_poll(struct ray_cluster *cluster, bool *quiet);

/* --- ray_watch.c: runs until SIGTERM; returns the exit status. */
int ray_watch_run(const struct config *config);

#endif
