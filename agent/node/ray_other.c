/* SPDX-License-Identifier: Apache-2.0
 *
 * Beyond the driver's log: "worker-<worker>-<job>-<pid>.err" of every node, and the raylets'
 * records of workers that their memory monitor killed. Both through the log service of Ray's own
 * node agents, which serves all nodes alike. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lib/jsonget.h"
#include "agent/node/ray_watch.h"

enum { MAX_NODES = 64, MAX_FILES = 64, TAIL_LINES = 2000, MAX_RAYLET_BYTES = 2 * 1024 * 1024 };

struct feeding {
    struct oom_classifier *classifier;
    int stream;
};

static int feed(void *arg, const char *bytes, size_t length)
{
    const struct feeding *feeding = arg;

    oom_classifier_feed(feeding->classifier, feeding->stream, bytes, length);
    return 0;
}

/* --- raylets ------------------------------------------------------------------------------------
 */

struct kept {
    char *bytes;
    size_t length;
};

static int keep(void *arg, const char *bytes, size_t length)
{
    struct kept *kept = arg;

    if (kept->length + length > MAX_RAYLET_BYTES)
        return -1;
    char *grown = realloc(kept->bytes, kept->length + length + 1);
    if (!grown)
        return -1;
    memcpy(grown + kept->length, bytes, length);
    kept->bytes = grown;
    kept->length += length;
    return 0;
}

static int feed_raylet(struct ray_cluster *cluster, const char *node, const char *job_id,
                       struct oom_classifier *classifier)
{
    struct kept kept = {NULL, 0};
    int files = 0;

    if (ray_log_tail(cluster->client, node, "raylet.out", TAIL_LINES, keep, &kept, NULL) == 0 &&
        kept.length) {
        char *text = ray_raylet_kills(kept.bytes, kept.length, job_id);
        if (text && *text) {
            struct feeding feeding = {classifier, oom_classifier_open(classifier, "raylet.out", 1)};
            feed(&feeding, text, strlen(text));
            files = 1;
        }
        free(text);
    }
    free(kept.bytes);
    return files;
}

/* --- workers ------------------------------------------------------------------------------------
 */

static int feed_workers(struct ray_cluster *cluster, const char *node, const char *job_id, int room,
                        struct oom_classifier *classifier)
{
    char glob[96];
    json_t *names = NULL, *name;
    int files = 0;
    size_t i;

    snprintf(glob, sizeof(glob), "worker-*-%s-*", job_id);
    if (ray_log_names(cluster->client, node, glob, &names, NULL) < 0)
        return 0;
    json_array_foreach(names, i, name)
    {
        const char *file = json_string_value(name);
        if (files == room)
            break;
        struct feeding feeding = {classifier, oom_classifier_open(classifier, file, 1)};
        if (ray_log_tail(cluster->client, node, file, TAIL_LINES, feed, &feeding, NULL) == 0)
            files++;
    }
    json_decref(names);
    return files;
}

static bool is_hex(const char *text)
{
    return *text && strlen(text) < 40 && strspn(text, "0123456789abcdef") == strlen(text);
}

int ray_other_feed(struct ray_cluster *cluster, const json_t *job,
                   struct oom_classifier *classifier)
{
    const char *job_id = json_get_string(job, "job_id", "");
    json_t *nodes = NULL, *node;
    int files = 0;
    size_t i;

    /* Without a driver that reached Ray there were no workers. */
    if (!is_hex(job_id) || ray_nodes(cluster->client, &nodes, NULL) < 0)
        return 0;
    json_array_foreach(nodes, i, node)
    {
        const char *id = json_get_string(node, "node_id", "");
        if (i == MAX_NODES || files >= MAX_FILES)
            break;
        files += feed_workers(cluster, id, job_id, MAX_FILES - files, classifier);
        files += feed_raylet(cluster, id, job_id, classifier);
    }
    json_decref(nodes);
    return files;
}
