/* SPDX-License-Identifier: Apache-2.0
 *
 * What of Slurm's runs on this machine, from /proc. When slurmstepd is killed nobody reports the
 * end of a batch step, and the controller goes on calling its job RUNNING for minutes. */
#ifndef AGENT_NODE_LOCAL_H
#define AGENT_NODE_LOCAL_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

struct local {
    json_t *nodes; /* {"gpu042":true}: Slurm's names of this machine */
    json_t *jobs;  /* {"1000/17":true,"1000/18_3":true}: whose supervisor runs here, and as whom */
};

int local_look(struct local *local);
void local_free(struct local *local);

bool local_has_node(const struct local *local, const char *node);

/* A supervisor of that job runs here as that user, or one whose job cannot be seen. */
bool local_has_supervisor(const struct local *local, uid_t uid, const char *job);

/* "gpu041,gpu042": those that fit. */
void local_list_nodes(const struct local *local, char *out, size_t size);

#endif
