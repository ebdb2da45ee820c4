/* SPDX-License-Identifier: Apache-2.0
 *
 * Beyond the driver's log: "worker-<worker>-<job>-<pid>.err" of every node, and the raylets'
 * records of workers that their memory monitor killed. The agent of a node is asked first: it
 * answers also when the node's Ray is gone. Where none does, the log service of Ray's own node
 * agents is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lib/elapsed.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/log.h"
#include "agent/node/ray_watch.h"

enum {
    MAX_NODES = 256,
    MAX_FILES = 64,
    TAIL_LINES = 2000,
    MAX_RAYLET_BYTES = 2 * 1024 * 1024,
    MOST_MS = 60000, /* for all nodes; other jobs wait meanwhile */
};

struct other {
    struct ray_cluster *cluster;
    const char *job_id;  /* Ray's: "02000000" */
    const char *address; /* of the node that is looked at */
    struct oom_classifier *classifier;
    int files;
};

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

static struct feeding open_file(const struct other *o, const char *name)
{
    char file[400];

    snprintf(file, sizeof(file), "%s:%s", o->address, name);
    return (struct feeding){o->classifier, oom_classifier_open(o->classifier, file, 1)};
}

/* --- the node's agent ---------------------------------------------------------------------------
 */

static int feed_piece(void *arg, const char *name, const char *bytes, size_t length)
{
    struct other *o = arg;

    if (o->files++ < MAX_FILES) {
        struct feeding feeding = open_file(o, name);
        feed(&feeding, bytes, length);
    }
    return 0;
}

static int ask_agent(struct other *o)
{
    const struct ray_cluster *cluster = o->cluster;
    struct oom_error err = {""};
    json_t *question = json_pack("{s:s, s:s}", "session", cluster->session_name, "job", o->job_id);
    int rc = question ? ray_ask(o->address, cluster->options.agents_port, "/v1/ray/logs", question,
                                feed_piece, o, &err)
                      : -1;

    if (rc < 0)
        log_line(LOG_DEBUGGING, "%s", err.text);
    json_decref(question);
    return rc;
}

int ray_other_driver(struct ray_cluster *cluster, const json_t *job,
                     struct oom_classifier *classifier)
{
    char address[256];
    struct other o = {.cluster = cluster, .address = address, .classifier = classifier};
    json_t *question = json_pack("{s:s, s:s}", "session", cluster->session_name, "submission",
                                 json_get_string(job, "submission_id", ""));
    int rc = -1;

    if (question && cluster->options.agents_port &&
        ray_driver_address(job, address, sizeof(address)))
        rc = ray_ask(address, cluster->options.agents_port, "/v1/ray/driver", question, feed_piece,
                     &o, NULL);
    json_decref(question);
    return rc;
}

/* --- Ray's own ----------------------------------------------------------------------------------
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

static void feed_raylet(struct other *o, const char *node)
{
    struct kept kept = {NULL, 0};

    if (ray_log_tail(o->cluster->client, node, "raylet.out", TAIL_LINES, keep, &kept, NULL) == 0 &&
        kept.length) {
        char *text = ray_raylet_kills(kept.bytes, kept.length, o->job_id);
        if (text && *text)
            feed_piece(o, "raylet.out", text, strlen(text));
        free(text);
    }
    free(kept.bytes);
}

static void feed_workers(struct other *o, const char *node)
{
    char glob[96];
    json_t *names = NULL, *name;
    size_t i;

    snprintf(glob, sizeof(glob), "worker-*-%s-*", o->job_id);
    if (ray_log_names(o->cluster->client, node, glob, &names, NULL) < 0)
        return;
    json_array_foreach(names, i, name)
    {
        const char *file = json_string_value(name);
        if (o->files >= MAX_FILES)
            break;
        struct feeding feeding = open_file(o, file);
        if (ray_log_tail(o->cluster->client, node, file, TAIL_LINES, feed, &feeding, NULL) == 0)
            o->files++;
    }
    json_decref(names);
}

/* --- all nodes ----------------------------------------------------------------------------------
 */

static bool is_hex(const char *text)
{
    return *text && strlen(text) < 40 && strspn(text, "0123456789abcdef") == strlen(text);
}

/* Died before the job began? Then it knows nothing of it. */
static bool is_former(const json_t *node, const json_t *job)
{
    int64_t ended = json_get_int(node, "end_time_ms", 0);

    return ended > 0 && ended < json_get_int(job, "start_time", 0);
}

static void look_at_node(struct other *o, const json_t *node, json_t *asked)
{
    bool alive = strcmp(json_get_string(node, "state", "ALIVE"), "ALIVE") == 0;

    o->address = json_get_string(node, "node_ip", "");
    /* An agent answers for all that lived on its machine. */
    if (o->cluster->options.agents_port && *o->address) {
        const json_t *known = json_object_get(asked, o->address);
        bool answered = known ? json_is_true(known) : ask_agent(o) == 0;
        json_object_set_new(asked, o->address, json_boolean(answered));
        if (answered)
            return;
    }
    if (!alive)
        return;
    feed_workers(o, json_get_string(node, "node_id", ""));
    feed_raylet(o, json_get_string(node, "node_id", ""));
}

int ray_other_feed(struct ray_cluster *cluster, const json_t *job,
                   struct oom_classifier *classifier)
{
    struct other o = {
        .cluster = cluster, .job_id = json_get_string(job, "job_id", ""), .classifier = classifier};
    int64_t start_ms = elapsed_ms();
    json_t *nodes = NULL, *node, *asked;
    size_t i;

    /* Without a driver that reached Ray there were no workers. */
    if (!is_hex(o.job_id) ||
        ray_nodes(cluster->client, cluster->options.agents_port != 0, &nodes, NULL) < 0)
        return 0;
    asked = json_object();
    json_array_foreach(nodes, i, node)
    {
        if (i == MAX_NODES || o.files >= MAX_FILES || elapsed_ms() - start_ms > MOST_MS)
            break;
        if (!is_former(node, job))
            look_at_node(&o, node, asked);
    }
    json_decref(asked);
    json_decref(nodes);
    return o.files;
}
