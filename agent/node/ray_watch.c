/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/evidence/sigset.h"
#include "agent/lib/elapsed.h"
#include "agent/lib/log.h"
#include "agent/node/ray_watch.h"

enum {
    HEAD_CALL_MS = 10000,
    /* After a look that took so much of a processor, wait that many times as long: below 1 % of
     * one, however many jobs are listed. */
    REST_FACTOR = 150,
    LONGEST_MS = 60000,
};

static int64_t cpu_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Looks at those that are due; returns when the next one is. */
static int64_t look(struct ray_cluster *clusters, int64_t *due_ms, size_t count)
{
    int64_t next = INT64_MAX;

    for (size_t i = 0; i < count; i++) {
        if (due_ms[i] <= elapsed_ms()) {
            int64_t before = cpu_us();
            bool quiet;
            int64_t wait_ms = ray_cluster_poll(&clusters[i], &quiet);
            int64_t rest_ms = quiet ? (cpu_us() - before) * REST_FACTOR / 1000 : 0;
            if (rest_ms > LONGEST_MS)
                rest_ms = LONGEST_MS;
            due_ms[i] = elapsed_ms() + (rest_ms > wait_ms ? rest_ms : wait_ms);
        }
        if (due_ms[i] < next)
            next = due_ms[i];
    }
    return next;
}

static void sleep_until(int64_t at_ms)
{
    int64_t left = at_ms - elapsed_ms();
    struct timespec nap = {left / 1000, (left % 1000) * 1000000};

    if (left > 0)
        nanosleep(&nap, NULL);
}

int ray_watch_run(const struct config *config)
{
    size_t count = config->ray_cluster_count;
    struct oom_error err = {""};
    struct ray_cluster *clusters = calloc(count, sizeof(*clusters));
    int64_t *due_ms = calloc(count, sizeof(*due_ms));
    struct oom_signatures *signatures = sigset_load(&err);
    struct api *head = api_open_head(config->head_socket, config->head_user, HEAD_CALL_MS, &err);

    if (!clusters || !due_ms || !signatures || !head)
        goto fail;
    for (size_t i = 0; i < count; i++)
        if (ray_cluster_open(&clusters[i], config->ray_clusters[i], head, signatures, &err) < 0)
            goto fail;
    /* Until SIGTERM ends the process: it may end anywhere. */
    for (;;)
        sleep_until(look(clusters, due_ms, count));
fail:
    log_line(LOG_ERROR, "ray: %s", err.text);
    return 1;
}
