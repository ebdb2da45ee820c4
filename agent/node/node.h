/* SPDX-License-Identifier: Apache-2.0
 *
 * oomagent. As root it is the node role: it takes the plugin's datagrams and acts for owners by
 * children that have become them. The head role is a child that has dropped to an unprivileged
 * user; it parses what users send, and owns the database.
 *
 *   main.c      options, start and stop order     reports.c    the plugin's datagrams
 *   head.c      the head role                     lost.c       what lost supervisors left
 *   drop.c      becoming somebody else            sockets.c    making the sockets
 *   owner.c     oomrun as a job's owner           late.c       reports of jobs without a head
 *   local.c     what of Slurm's runs here         queue.c      the controller's queue
 *   database.c  the database's directory */
#ifndef AGENT_NODE_NODE_H
#define AGENT_NODE_NODE_H

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "agent/lib/api.h"
#include "agent/lib/config.h"

/* --- sockets.c: both make the directory (0755) and replace a stale socket; -1 and err. */
int socket_listen_stream(const char *path, mode_t mode, struct oom_error *err);
int socket_bind_datagram(const char *path, mode_t mode, struct oom_error *err);

/* --- database.c: makes the directory of the database, and gives it to the head's user. */
int database_prepare(const struct config *config, struct oom_error *err);

/* --- drop.c: for good, verified; "" stays who we are. */
int drop_to_user(const char *name, struct oom_error *err);
int drop_to_owner(uid_t uid, gid_t gid, struct oom_error *err);

/* --- owner.c: executes oomrun as the owner, with an environment of its own, and waits for its end.
 * The process is the owner's, who may stop it: it is killed at the limit, and false is returned, as
 * it is for all that this owner would have run afterwards. `what` is for the log. */
struct owner_wait {
    int limit_ms, every_ms;
    void (*meanwhile)(void *arg); /* called every so often while it runs; NULL: nothing */
    void *arg;
};
bool owner_run_oomrun(const struct config *config, uid_t uid, const char *const *argv,
                      const char *what, const struct owner_wait *wait);

/* --- queue.c: {"17":"RUNNING","18_3":…} of all jobs that the controller still knows; NULL when it
 * does not answer. The components of a heterogeneous job ("17+1") go by the id of each. "HELD" is
 * a pending job whose release was not asked for, or has been forgotten. */
json_t *queue_states(void);

/* The name of the cluster that the controller controls; -1 when it does not answer. */
int queue_cluster(char *name, size_t size);

/* --- late.c: what jobs left that found no head. */
int late_directory(const struct config *config, struct oom_error *err);
void late_collect(const struct config *config);

/* --- head.c: runs until SIGTERM; returns the exit status. */
int head_run(const struct config *config, int unix_fd);

/* --- reports.c */
struct reports;
struct reports *reports_open(struct event_base *base, int datagram_fd, struct api *head,
                             const struct config *config, struct oom_error *err);
void reports_close(struct reports *reports);

/* --- lost.c: what is found out about the cluster is kept for later looks, which are other
 * processes. -1 and err. */
int lost_open(const struct config *config, struct oom_error *err);

/* Both look in a child process, and return it. Of one job whose batch script has just ended in this
 * way, or of this machine and, when it is its turn, of all. The latter ends with LOST_BLIND when it
 * could not compare; `blind`: the one before did. */
struct lost_end {
    int status;   /* as of wait(2); -1: not known */
    int restart;  /* how often Slurm had started the job again by then; -1: not known */
    bool unbegun; /* nothing of the script was executed */
    bool orphan;  /* the scheduler has not noticed that the job is dead */
};
enum { LOST_BLIND = 3 };
pid_t lost_check_job(const struct config *config, const char *job, struct lost_end end);
pid_t lost_check_all(const struct config *config, bool blind);

#endif
