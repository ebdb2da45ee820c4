/* SPDX-License-Identifier: Apache-2.0
 *
 * Ray as a scheduler. It has no requeue (a submission runs once), no dependencies and no steps; a
 * process inside a Ray job is not a supervisor of it: agent/node/ray_*.c watches from outside. */
#include <stdio.h>
#include <string.h>

#include "agent/lib/jsonget.h"
#include "agent/sched/ray.h"
#include "agent/sched/sched.h"

static struct ray_client *current;

void ray_use(struct ray_client *client)
{
    current = client;
}

static bool inside(char *job, size_t job_size, char *cluster, size_t cluster_size, int *restart)
{
    (void)job;
    (void)job_size;
    (void)cluster;
    (void)cluster_size;
    (void)restart;
    return false;
}

static void set_fact(struct oom_values *facts, const char *name, double value)
{
    char text[32];

    snprintf(text, sizeof(text), "%.0f", value);
    oom_values_set(facts, name, text, OOM_SOURCE_SCHEDULER, NULL);
}

/* The most memory that one node offers to tasks. */
static double largest_node(struct oom_error *err)
{
    json_t *nodes, *node;
    double most = 0;
    size_t i;

    if (ray_nodes(current, false, &nodes, err) < 0)
        return 0;
    json_array_foreach(nodes, i, node)
    {
        double memory =
            json_number_value(json_object_get(json_object_get(node, "resources_total"), "memory"));
        if (memory > most)
            most = memory;
    }
    json_decref(nodes);
    return most;
}

static int describe(const char *job, struct oom_values *facts, struct oom_error *err)
{
    json_t *record, *resources = NULL, *labels = NULL;

    if (ray_job(current, job, &record, err) != 0)
        return -1;
    oom_values_set(facts, "sched.state", json_get_string(record, "status", ""),
                   OOM_SOURCE_SCHEDULER, NULL);
    oom_values_set(facts, "requeue_allowed", "false", OOM_SOURCE_SCHEDULER, NULL);
    json_decref(record);
    if (ray_entrypoint_resources(current, job, &resources, &labels, err) == 0) {
        double memory = json_number_value(json_object_get(resources, "memory"));
        if (memory > 0)
            set_fact(facts, "ray:memory", memory);
    }
    json_decref(resources);
    json_decref(labels);
    double most = largest_node(err);
    if (most > 0)
        set_fact(facts, "ray.memory_max_bytes", most);
    return 0;
}

static int submit(const struct sched_submission *submission, char *new_job, size_t size,
                  struct oom_error *err)
{
    snprintf(new_job, size, "%s", json_get_string(submission->record, "submission_id", ""));
    return ray_submit(current, submission->record, err);
}

static int cancel(const char *job, struct oom_error *err)
{
    return ray_stop(current, job, err);
}

const struct sched sched_ray = {
    .name = "ray",
    .inside = inside,
    .describe = describe,
    .submit = submit,
    .cancel = cancel,
};
