/* SPDX-License-Identifier: Apache-2.0
 *
 * /etc/oomretry/oomretry.conf: YAML, one mapping of scalars and lists of scalars. Strict: an
 * unknown key or a bad value is an error that names file and line. A missing file means defaults;
 * contrib/examples/oomretry.conf lists every key with its default. */
#ifndef AGENT_LIB_CONFIG_H
#define AGENT_LIB_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/head/service.h"
#include "oomretry/error.h"

#define CONFIG_PATH "/etc/oomretry/oomretry.conf"

struct config {
    char *cluster;     /* "" : asked from the scheduler */
    char *head_socket; /* of the head, for programs on its machine */
    char *node_socket; /* where the plugin sends its datagrams */
    char *head_url;    /* NULL: no TCP; else what nodes and users call */
    char *head_listen; /* "127.0.0.1:6821"; NULL: unix socket only */
    bool head_is_local;
    char *database;
    char *head_user;    /* whom the head role becomes when started as root; "" stays */
    char *role;         /* "both", "node", "head" */
    char *munge_socket; /* where munged listens; "": at its usual place */
    char **admins;      /* user names that see and edit everything, besides root */
    size_t admin_count;
    char *scheduler;     /* "slurm", "none" */
    char *slurm_bin;     /* directory of Slurm's commands; "": they are in PATH */
    char *nvidia_smi;    /* says who holds GPU memory; not asked unless it is root's own */
    int gpu_wait_s;      /* for the old attempt's GPU memory, at most */
    char *slurmrestd;    /* "": jobs are submitted by sbatch; else agent/sched/slurm_rest.h */
    char **ray_clusters; /* dashboards to watch: ray_options_parse (agent/sched/ray.h) */
    size_t ray_cluster_count;
    char *node_listen; /* "0.0.0.0:6822": a node serves evidence there; NULL: it does not */
    char **ray_temp;   /* where Ray's sessions are, on a node; empty: /tmp/ray */
    size_t ray_temp_count;
    struct service_limits limits;
};

/* `path` NULL: $OOMRETRY_CONFIG, else CONFIG_PATH. Tells child.h of slurm_bin, and
 * sealed.h of munge_socket. */
int config_load(const char *path, struct config *config, struct oom_error *err);
void config_free(struct config *config);

#endif
