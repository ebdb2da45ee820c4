/* SPDX-License-Identifier: Apache-2.0 */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/elapsed.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/log.h"
#include "agent/node/ray_watch.h"
#include "db/db.h"

enum {
    BUSY_MS = 1000,       /* opted-in jobs run */
    AFTER_MS = 30000,     /* so long after a job of ours has begun or ended it stays busy */
    IDLE_MS = 5000,       /* nothing of ours */
    AWAY_MS = 5000,       /* no answer */
    LATE_MS = 3600 * 1000 /* a job that ended earlier, unknown to the head, is left alone */
};

int ray_cluster_open(struct ray_cluster *cluster, const char *line, struct api *head,
                     const struct oom_signatures *signatures, struct oom_error *err)
{
    memset(cluster, 0, sizeof(*cluster));
    if (ray_options_parse(line, &cluster->options, err) < 0)
        return -1;
    cluster->head = head;
    cluster->signatures = signatures;
    cluster->reachable = true;
    cluster->owner = geteuid();
    if (cluster->options.owner[0]) {
        const struct passwd *pw = getpwnam(cluster->options.owner);
        if (!pw)
            return oom_errorf(err, "ray_clusters: owner \"%s\" is no user of this machine",
                              cluster->options.owner);
        cluster->owner = pw->pw_uid;
    }
    cluster->client = ray_open(&cluster->options, err);
    cluster->seen = json_object();
    cluster->touched = json_object();
    return cluster->client ? 0 : -1;
}

static void forget(struct ray_cluster *cluster)
{
    while (cluster->follows) {
        struct ray_follow *next = cluster->follows->next;
        ray_follow_free(cluster->follows);
        cluster->follows = next;
    }
    json_object_clear(cluster->seen);
    json_object_clear(cluster->touched);
    json_decref(cluster->open);
    cluster->open = NULL;
}

/* --- which cluster is it ------------------------------------------------------------------------
 */

/* What the head holds open of this cluster; what it holds open of a former one at the same address
 * has ended with it. */
static int reconcile(struct ray_cluster *cluster, struct oom_error *err)
{
    json_t *reply = NULL, *row;
    size_t i;
    int rc =
        api_call(cluster->head, "GET", "/v1/attempts/open?scheduler=ray", NULL, &reply, err) == 200
            ? 0
            : -1;

    cluster->open = json_array();
    json_array_foreach(json_object_get(reply, "attempts"), i, row)
    {
        const char *job = json_get_string(row, "job", "");
        char reason[400];
        if (strcmp(json_get_string(row, "cluster", ""), cluster->session) == 0) {
            json_array_append(cluster->open, row);
        } else if (strcmp(json_get_string(row, "dashboard", ""), cluster->options.url) == 0) {
            snprintf(reason, sizeof(reason), "the Ray cluster %.100s ended, and with it the job",
                     json_get_string(row, "cluster", ""));
            rc = ray_follow_lost(cluster, json_get_int(row, "lineage", 0),
                                 json_get_int(row, "number", 0), reason, err);
            if (rc < 0)
                break;
            log_line(LOG_NOTICE, "ray job %s: not retried: %s", job, reason);
        }
    }
    json_decref(reply);
    return rc;
}

static int adopt(struct ray_cluster *cluster, const char *session, struct oom_error *err)
{
    forget(cluster);
    cluster->session[0] = '\0';
    /* Without it whether the cluster lives inside a Slurm job would not be known. */
    if (ray_session_name(cluster->client, session, cluster->session_name,
                         sizeof(cluster->session_name), err) < 0)
        return -1;
    snprintf(cluster->session, sizeof(cluster->session), "%s", session);
    ray_place_find(cluster->session_name, cluster->options.temp, &cluster->place);
    if (reconcile(cluster, err) < 0) {
        cluster->session[0] = '\0'; /* once more at the next look */
        return -1;
    }
    log_line(LOG_NOTICE, "%s is %s%s%s%s", cluster->options.url, session,
             cluster->place.session_dir_count ? ", on this machine" : "",
             cluster->place.supervisor[0] ? ", left alone: it lives inside " : "",
             cluster->place.supervisor);
    if (cluster->place.hidden)
        log_line(LOG_WARNING,
                 "%s: its jobs are left alone: whether it lives inside a Slurm job cannot be seen, "
                 "as /proc is mounted with hidepid here; mount it with gid= of a group of the "
                 "head's user",
                 cluster->options.url);
    return 0;
}

/* --- which jobs ---------------------------------------------------------------------------------
 */

static struct ray_follow *find(struct ray_cluster *cluster, const char *id)
{
    for (struct ray_follow *f = cluster->follows; f; f = f->next)
        if (strcmp(f->id, id) == 0)
            return f;
    return NULL;
}

static void drop(struct ray_cluster *cluster, struct ray_follow *follow)
{
    struct ray_follow **at = &cluster->follows;

    while (*at != follow)
        at = &(*at)->next;
    *at = follow->next;
    ray_follow_free(follow);
}

static bool is_open(const struct ray_cluster *cluster, const char *id)
{
    json_t *row;
    size_t i;

    json_array_foreach(cluster->open, i, row)
    {
        if (strcmp(json_get_string(row, "job", ""), id) == 0)
            return true;
    }
    return false;
}

/* Somebody else owns the retry, or may. */
static bool is_left_alone(const struct ray_place *place, const json_t *job, char *why, size_t size)
{
    if (place->hidden)
        snprintf(why, size, "whether a Slurm job owns the retry cannot be seen");
    else if (place->supervisor[0])
        snprintf(why, size, "its cluster lives inside %s, which owns the retry", place->supervisor);
    else
        return ray_owned_elsewhere(job, why, size);
    return true;
}

/* True: it is ours to follow. */
static bool ours(struct ray_cluster *cluster, const json_t *job, struct ray_wish *wish)
{
    const char *id = json_get_string(job, "submission_id", "");
    int64_t ended_ms = json_get_int(job, "end_time", 0);
    char why[160];

    ray_wish_read(job, cluster->options.retry, wish);
    if (wish->problem[0])
        log_line(LOG_WARNING, "ray job %s: %s", id, wish->problem);
    if (!wish->wanted)
        return false;
    if (is_left_alone(&cluster->place, job, why, sizeof(why))) {
        log_line(LOG_NOTICE, "ray job %s: left alone: %s", id, why);
        return false;
    }
    if (ray_status_is_final(json_get_string(job, "status", "")) && ended_ms > 0 &&
        db_now_ms() - ended_ms > LATE_MS && !is_open(cluster, id)) {
        log_line(LOG_DEBUGGING, "ray job %s: it ended long ago", id);
        return false;
    }
    return true;
}

/* True when nothing is left to be done about the job. */
static bool look_at(struct ray_cluster *cluster, const json_t *job)
{
    const char *id = json_get_string(job, "submission_id", "");
    bool final = ray_status_is_final(json_get_string(job, "status", "")), over = false;
    struct ray_follow *follow = find(cluster, id);
    struct ray_wish wish;
    struct oom_error err = {""};

    if (!follow) {
        if (!ours(cluster, job, &wish))
            return true;
        follow = ray_follow_begin(cluster, job, &wish, &over, &err);
        if (!follow) {
            log_line(LOG_WARNING, "ray job %s: the head does not know it yet: %s", id, err.text);
            return false;
        }
        cluster->changed_ms = elapsed_ms();
        follow->next = cluster->follows;
        cluster->follows = follow;
        char lineage[24];
        snprintf(lineage, sizeof(lineage), "%lld", (long long)follow->lineage);
        json_object_set_new(cluster->touched, lineage, json_true());
    }
    follow->listed = true;
    if (!final && !over) {
        ray_follow_look(cluster, follow, job);
        return false;
    }
    cluster->changed_ms = elapsed_ms();
    if (!over && !ray_follow_end(cluster, follow, job))
        return false;
    drop(cluster, follow);
    return true;
}

/* Jobs that were deleted while they were followed. */
static void end_deleted(struct ray_cluster *cluster)
{
    struct ray_follow *next;

    for (struct ray_follow *f = cluster->follows; f; f = next) {
        struct oom_error err = {""};
        next = f->next;
        if (f->listed)
            continue;
        if (ray_follow_lost(cluster, f->lineage, f->attempt, "its record was deleted from Ray",
                            &err) == 0)
            drop(cluster, f);
    }
}

/* Attempts of this cluster that nothing listed belongs to: deleted while nobody watched. */
static void end_unlisted(struct ray_cluster *cluster, const json_t *listed)
{
    json_t *row;
    size_t i;

    json_array_foreach(cluster->open, i, row)
    {
        char lineage[24];
        struct oom_error err = {""};
        snprintf(lineage, sizeof(lineage), "%lld", (long long)json_get_int(row, "lineage", 0));
        if (json_object_get(cluster->touched, lineage) ||
            json_object_get(listed, json_get_string(row, "job", "")))
            continue;
        if (ray_follow_lost(cluster, json_get_int(row, "lineage", 0),
                            json_get_int(row, "number", 0), "its record was deleted from Ray",
                            &err) < 0)
            return; /* once more at the next look */
    }
    json_decref(cluster->open);
    cluster->open = NULL;
}

static void look_at_all(struct ray_cluster *cluster, const json_t *jobs)
{
    json_t *seen = json_object(), *listed = json_object(), *job;
    bool all_known = true;
    size_t i;

    for (struct ray_follow *f = cluster->follows; f; f = f->next)
        f->listed = false;
    json_array_foreach(jobs, i, job)
    {
        const char *id = json_get_string(job, "submission_id", "");
        if (json_object_get(cluster->seen, id) || look_at(cluster, job))
            json_object_set_new(seen, id, json_true());
        else
            all_known = all_known && find(cluster, id);
        if (cluster->open)
            json_object_set_new(listed, id, json_true());
    }
    end_deleted(cluster);
    if (cluster->open && all_known)
        end_unlisted(cluster, listed);
    json_decref(listed);
    /* Only what is listed is remembered. */
    json_decref(cluster->seen);
    cluster->seen = seen;
}

static int64_t away(struct ray_cluster *cluster, const struct oom_error *err)
{
    if (cluster->reachable)
        log_line(LOG_WARNING, "%s (tried again every %d s)", err->text, AWAY_MS / 1000);
    cluster->reachable = false;
    return AWAY_MS;
}

/* The list counts only between two looks at which cluster it is, lest a list of a new cluster be
 * taken for one of the former. */
int64_t ray_cluster_poll(struct ray_cluster *cluster, bool *quiet)
{
    int64_t start_ms = elapsed_ms();
    struct oom_error err = {""};
    char session[sizeof(cluster->session)];
    json_t *jobs = NULL;

    *quiet = false;
    if (cluster->session[0] && ray_list(cluster->client, &jobs, &err) < 0)
        return away(cluster, &err);
    if (ray_identify(cluster->client, session, sizeof(session), &err) < 0) {
        json_decref(jobs);
        return away(cluster, &err);
    }
    if (!cluster->reachable)
        log_line(LOG_NOTICE, "%s answers again", cluster->options.url);
    cluster->reachable = true;
    if (strcmp(session, cluster->session) != 0) {
        json_decref(jobs);
        return adopt(cluster, session, &err) < 0 ? away(cluster, &err) : 0;
    }
    look_at_all(cluster, jobs);
    json_decref(jobs);
    *quiet = cluster->changed_ms < start_ms;
    return cluster->follows || start_ms - cluster->changed_ms < AFTER_MS ? BUSY_MS : IDLE_MS;
}
