/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sched/slurm_singleton.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lib/child.h"
#include "agent/sched/slurm_fields.h"
#include "agent/sched/slurm_job.h"

enum { CALL_MS = 10000 };

void slurm_singleton_of(const char *old_job, const char *new_job, struct slurm_singleton *out)
{
    *out = (struct slurm_singleton){.new_job = new_job};
    if (strcmp(old_job, new_job) != 0)
        out->old_job = old_job;
}

/* Few jobs wait for those of their name: Slurm is asked for it when one does. */
static void learn_name(struct slurm_singleton *singleton)
{
    struct oom_error err = {""};
    struct slurm_job job;

    if (singleton->old_job && slurm_job_read(&job, singleton->old_job, false, &err) == 0) {
        if (job.text)
            slurm_field(job.text, "JobName", singleton->name, sizeof(singleton->name));
        slurm_job_free(&job);
    }
    singleton->old_job = NULL;
}

/* One of a list; '?' takes any one of them, and nothing can be added to that. */
static bool has(const char *dependency, const char *wanted)
{
    size_t length = strlen(wanted);

    if (strchr(dependency, '?'))
        return false;
    for (const char *item = dependency; *item; item += strcspn(item, ","), item += *item == ',')
        if (strncmp(item, wanted, length) == 0 && (item[length] == ',' || !item[length]))
            return true;
    return false;
}

bool slurm_singleton_is_behind(const struct slurm_singleton *singleton, const char *job,
                               const char *name, const char *dependency)
{
    char after[96];

    snprintf(after, sizeof(after), "afterany:%s", singleton->new_job);
    /* Whoever was submitted later waits for it by himself, and so two never wait for each other. */
    return *singleton->name && strcmp(name, singleton->name) == 0 &&
           atoll(job) < atoll(singleton->new_job) && has(dependency, "singleton") &&
           !has(dependency, after);
}

/* The new job would wait for those who are to wait for it. */
static bool go_first(struct slurm_singleton *singleton)
{
    char id[96];
    const char *clear[] = {"scontrol", "update", id, "Dependency=", NULL};

    snprintf(id, sizeof(id), "JobId=%s", singleton->new_job);
    if (!singleton->first && child_expect(clear, CALL_MS, NULL, NULL) == 0)
        singleton->first = true;
    if (!singleton->first)
        singleton->name[0] = '\0';
    return singleton->first;
}

bool slurm_singleton_stand_behind(struct slurm_singleton *singleton, const char *job,
                                  const char *name, char *dependency, size_t size)
{
    size_t used = strlen(dependency);

    if (has(dependency, "singleton"))
        learn_name(singleton);
    if (!slurm_singleton_is_behind(singleton, job, name, dependency) || !go_first(singleton))
        return false;
    int n = snprintf(dependency + used, size - used, ",afterany:%s", singleton->new_job);
    return n > 0 && (size_t)n < size - used;
}
