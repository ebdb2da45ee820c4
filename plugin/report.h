/* SPDX-License-Identifier: Apache-2.0
 *
 * What the plugin tells the node's agent: one datagram per event on the agent's AF_UNIX socket
 * (SOCK_DGRAM, in a directory that only root may enter). Text, one `key=value` a line, at most
 * REPORT_MAX_BYTES. The first line is `version=1`, the second `event=...`. A key whose value is
 * not known is absent; readers ignore keys they do not know. Values hold no control characters.
 *
 * Delivery is best effort by design: the plugin never waits, so an agent that is away or slow
 * misses reports and learns the ends of jobs from the scheduler instead. Several reports may come
 * for one job (nodes x steps x tasks); (job, restart, step, node, task) names one of them.
 *
 *   every event
 *     job          Slurm's job id
 *     array_job    array_task       only for a task of an array
 *     het_job      het_offset       only for a component of a heterogeneous job
 *     uid  gid     the owner
 *     node         Slurm's name of this node; Slurm does not tell it yet at batch_start
 *     cluster      Slurm's name of the cluster
 *     opted        1 when the job is opted in, else 0
 *     time         seconds since the epoch
 *   event=batch_start                a batch script is about to start under the supervisor
 *     script       path of the spooled script (its first line is the launcher's)
 *     script_bytes length of the script as submitted
 *   event=task_exit                  a task ended; for the batch step, the batch script did
 *     restart      how often the job was requeued, 0 at first
 *     step         number, or batch, extern, interactive
 *     task         rank in the step
 *     status       as wait(2) gives it
 *     oom_kill     processes that the kernel killed for memory in the task's cgroup
 *     peak_bytes   most memory that the cgroup used
 *     limit_bytes  the limit that holds for it; absent when there is none
 *     begun        batch step of an opted-in job: 0 when the script still begins with the
 *                  launcher's line, or was gone before, so that nothing of it has been executed;
 *                  else 1 */
#ifndef PLUGIN_REPORT_H
#define PLUGIN_REPORT_H

#define REPORT_VERSION   1
#define REPORT_MAX_BYTES 2048

#endif
