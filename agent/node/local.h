/* SPDX-License-Identifier: Apache-2.0
 *
 * What of Slurm's runs on this machine, from /proc. When slurmstepd is killed nobody reports the
 * end of a batch step, and the controller goes on calling its job RUNNING for minutes. */
#ifndef AGENT_NODE_LOCAL_H
#define AGENT_NODE_LOCAL_H

#include <jansson.h>
#include <stdbool.h>

struct local {
    json_t *nodes; /* {"gpu042":true}: Slurm's names of this machine */
    json_t *jobs;  /* {"17":true,"18_3":true}: whose supervisor runs here */
};

int local_look(struct local *local);
void local_free(struct local *local);

/* The job was started on this machine and its supervisor is not here any more. */
bool local_is_orphan(const struct local *local, const char *node, const char *job);

#endif
