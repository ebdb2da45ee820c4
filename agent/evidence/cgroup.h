/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory counters of a process's own cgroup, v1 and v2. */
#ifndef AGENT_EVIDENCE_CGROUP_H
#define AGENT_EVIDENCE_CGROUP_H

#include <stdint.h>

struct cgroup_counters {
    int64_t oom_kills;   /* -1: not known */
    int64_t peak_bytes;  /* -1 */
    int64_t limit_bytes; /* -1: none, or not known */
};

/* Of the calling process. On v1 the counter is not hierarchical (seen on Slurm 22.05: 1 in
 * step_batch/task_0 and 0 in step_batch), which is right here: the batch script's processes are
 * in the same cgroup as their supervisor. */
void cgroup_read_own(struct cgroup_counters *out);

#endif
