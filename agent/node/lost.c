/* SPDX-License-Identifier: Apache-2.0
 *
 * Attempts whose supervisor is gone. Two ways to notice: the plugin reports that a batch script
 * has ended while the head still takes its attempt for running (fast: the controller has not heard
 * of it yet, so the job can be queued again without ever having failed), and a regular comparison
 * with the scheduler. The work is done by a child, so that reports go on being taken; for each
 * attempt that it could claim it starts `oomrun --after` as the job's owner. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/lib/acted.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/log.h"
#include "agent/lib/urlquery.h"
#include "agent/node/local.h"
#include "agent/node/node.h"
#include "agent/sched/slurm_fields.h"

/* The machine of an attempt is asked first: the job's files may be there alone. */
enum { HEAD_CALL_MS = 5000, QUIET_MS = 10000, QUIET_ELSEWHERE_MS = 30000 };
/* Of oomrun --after: a controller that hardly answers makes it slow. */
enum { AFTER_MS = 180000, RENEW_MS = 15000, MAX_OWNERS = 16 };

static char *cluster_name; /* of CLUSTER_BYTES, which all looks share; "": not known yet */
enum { CLUSTER_BYTES = 64 };
static int owner_locks = -1;

int lost_open(const struct config *config, struct oom_error *err)
{
    if (!cluster_name) {
        void *page =
            mmap(NULL, CLUSTER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        owner_locks = memfd_create("owners", MFD_CLOEXEC);
        if (page == MAP_FAILED || owner_locks < 0)
            return oom_errorf(err, "out of memory");
        cluster_name = page;
    }
    snprintf(cluster_name, CLUSTER_BYTES, "%s", config->cluster);
    return 0;
}

/* Several clusters may share a head, and each has a job 17. */
static int open_path(char *path, size_t size)
{
    snprintf(path, size, "/v1/attempts/open?scheduler=slurm");
    if (!*cluster_name && queue_cluster(cluster_name, CLUSTER_BYTES) < 0)
        return -1;
    return urlquery_add(path, size, "cluster", cluster_name);
}

/* An attempt, and this process, which looks after it. */
struct claim {
    struct api *head;
    const json_t *attempt;
};

/* One machine's looks may overlap: who claims is this process, not the machine. */
static bool post_claim(const struct claim *claim, bool release)
{
    char host[256] = "", by[300];
    json_t *reply = NULL;

    gethostname(host, sizeof(host) - 1);
    snprintf(by, sizeof(by), "node:%s:%d", host, (int)getpid());
    json_t *body = json_pack(
        "{s:O, s:O, s:s, s:b}", "lineage", json_object_get(claim->attempt, "lineage"), "attempt",
        json_object_get(claim->attempt, "number"), "by", by, "release", (int)release);
    bool granted = api_call(claim->head, "POST", "/v1/attempts/claim", body, &reply, NULL) == 200 &&
                   json_get_bool(reply, "granted", false);
    json_decref(body);
    json_decref(reply);
    return granted;
}

static void renew_claim(void *arg)
{
    post_claim(arg, false);
}

static uid_t owner_of(const json_t *attempt)
{
    return (uid_t)json_get_int(attempt, "uid", -1);
}

static void finish(struct api *head, const struct config *config, const json_t *attempt,
                   const struct lost_end *end)
{
    struct claim claim = {head, attempt};
    const struct owner_wait wait = {AFTER_MS, RENEW_MS, renew_claim, &claim};
    const char *job = json_get_string(attempt, "job", "");
    char what[160], ended[16];
    const char *argv[8] = {"oomrun", "--after", what};
    int n = 3;

    if (!post_claim(&claim, false))
        return;
    log_line(LOG_NOTICE, "job %s: its supervisor is gone; finishing attempt %lld", job,
             (long long)json_get_int(attempt, "number", 0));
    snprintf(what, sizeof(what), "%lld.%lld.%s", (long long)json_get_int(attempt, "lineage", 0),
             (long long)json_get_int(attempt, "number", 0), job);
    snprintf(ended, sizeof(ended), "%d", end->status);
    if (end->status >= 0) {
        argv[n++] = "--ended";
        argv[n++] = ended;
    }
    if (end->unbegun)
        argv[n++] = "--unbegun";
    if (end->orphan)
        argv[n++] = "--orphan";
    /* What was killed may still have children that act: its claim is left to run out. */
    if (owner_run_oomrun(config, owner_of(attempt), argv, what, &wait))
        post_claim(&claim, true);
}

static bool is_running(const json_t *attempt)
{
    return strcmp(json_get_string(attempt, "state", ""), "running") == 0;
}

static bool is_quiet(const json_t *attempt, int64_t now_ms, int64_t for_ms)
{
    return now_ms - json_get_int(attempt, "updated_ms", now_ms) >= for_ms;
}

/* Is there something to do for an attempt that nobody has touched for a while? */
static bool is_lost(const json_t *attempt, const char *state)
{
    /* A job that is not listed has been purged. */
    if (!*state || slurm_state_is_over(state) || strcmp(state, "HELD") == 0)
        return true;
    /* Queued again by the supervisor; its change of resources may not have been made. */
    return strcmp(state, "PENDING") == 0 && !is_running(attempt) &&
           strcmp(json_get_string(attempt, "mode", ""), "requeue") == 0 &&
           !json_get_bool(attempt, "done", false);
}

/* The controller calls it RUNNING, and its supervisor, which is not here any more, was killed
 * together with all that could have said so; or the controller was killed, and has forgotten that
 * the job was queued again. */
static bool is_orphan(const json_t *attempt, const char *state)
{
    bool handed_on =
        !is_running(attempt) && acted_is_submitted(json_get_string(attempt, "acted", ""));

    return strcmp(state, "RUNNING") == 0 && !handed_on;
}

/* The attempt was started on this machine and its supervisor is not here any more. */
static bool is_gone_from_here(const json_t *attempt, const struct local *local)
{
    return local_has_node(local, json_get_string(attempt, "node", "")) &&
           !local_has_supervisor(local, owner_of(attempt), json_get_string(attempt, "job", ""));
}

/* What a look has seen. */
struct view {
    json_t *states; /* of the scheduler's jobs */
    struct local local;
    int64_t now_ms;
};

/* How it ended, as far as that shows; NULL: there is nothing to do. */
static const struct lost_end *judge(const json_t *attempt, const struct view *view)
{
    static const struct lost_end unknown = {.status = -1, .restart = -1},
                                 killed = {.status = SIGKILL, .restart = -1, .orphan = true};
    const char *job = json_get_string(attempt, "job", "");
    const char *state = json_get_string(view->states, job, "");
    bool here = local_has_node(&view->local, json_get_string(attempt, "node", ""));

    if (!is_quiet(attempt, view->now_ms,
                  here || !is_running(attempt) ? QUIET_MS : QUIET_ELSEWHERE_MS))
        return NULL;
    if (is_lost(attempt, state))
        return &unknown;
    return *job && is_orphan(attempt, state) && is_gone_from_here(attempt, &view->local) ? &killed
                                                                                         : NULL;
}

/* Byte UID of a file that only we have is locked while a process looks after that owner's. */
static bool lock_owner(uid_t uid, int command)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)uid, .l_len = 1};

    return fcntl(owner_locks, command, &lock) == 0 &&
           (command != F_GETLK || lock.l_type == F_UNLCK);
}

/* What is lost of one owner, one attempt after the other. */
static void finish_of(uid_t uid, struct api *head, const struct config *config,
                      const json_t *attempts, const struct view *view)
{
    const json_t *attempt;
    size_t i;

    json_array_foreach(attempts, i, attempt)
    {
        const struct lost_end *end = owner_of(attempt) == uid ? judge(attempt, view) : NULL;
        if (end)
            finish(head, config, attempt, end);
    }
}

/* A process for each owner, which no later look waits for: he keeps only himself waiting. */
static void finish_lost(struct api *head, const struct config *config, const json_t *attempts,
                        const struct view *view)
{
    json_t *seen = json_object();
    const json_t *attempt;
    size_t i;
    int running = 0;

    json_array_foreach(attempts, i, attempt)
    {
        uid_t uid = owner_of(attempt);
        char name[16];

        snprintf(name, sizeof(name), "%u", (unsigned)uid);
        if (json_object_get(seen, name) || !judge(attempt, view))
            continue;
        json_object_set_new(seen, name, json_true());
        if (++running > MAX_OWNERS)
            break;
        if (lock_owner(uid, F_GETLK) && fork() == 0) {
            if (lock_owner(uid, F_SETLK))
                finish_of(uid, head, config, attempts, view);
            _exit(0);
        }
    }
    json_decref(seen);
}

/* The whole queue is asked for only by who looks after all, and by a machine that misses one of
 * its own supervisors. */
static bool must_ask(const json_t *reply, const struct view *view)
{
    const json_t *attempts = json_object_get(reply, "attempts"), *attempt;
    size_t i;

    if (json_get_bool(reply, "all", false))
        return json_array_size(attempts) > 0;
    json_array_foreach(attempts, i, attempt)
    {
        if (is_running(attempt) && is_quiet(attempt, view->now_ms, QUIET_MS) &&
            is_gone_from_here(attempt, &view->local))
            return true;
    }
    return false;
}

static int check_all(struct api *head, const struct config *config, bool blind)
{
    char path[1024], by[200] = "", nodes[128];
    json_t *reply = NULL;
    struct view view = {.states = NULL};
    bool known = open_path(path, sizeof(path)) == 0;
    int rc = LOST_BLIND;

    gethostname(by, 64);
    snprintf(by + strlen(by), 120, ":%s", config->node_socket);
    if (local_look(&view.local) < 0)
        return LOST_BLIND;
    local_list_nodes(&view.local, nodes, sizeof(nodes));
    if (urlquery_add(path, sizeof(path), "nodes", nodes) < 0 ||
        urlquery_add(path, sizeof(path), "turn", known ? by : "") < 0 ||
        urlquery_add(path, sizeof(path), "blind", blind ? "yes" : "") < 0 ||
        api_call(head, "GET", path, NULL, &reply, NULL) != 200)
        goto out;
    late_collect(config);
    if (!known)
        goto out;
    view.now_ms = json_get_int(reply, "now_ms", 0);
    bool ask = must_ask(reply, &view);
    view.states = ask ? queue_states() : NULL;
    if (view.states)
        finish_lost(head, config, json_object_get(reply, "attempts"), &view);
    if (view.states || !ask)
        rc = 0;
out:
    local_free(&view.local);
    json_decref(view.states);
    json_decref(reply);
    return rc;
}

/* A report that was long on its way tells of a run that the job has left behind. */
static bool is_past(const json_t *attempt, const struct lost_end *end)
{
    return is_running(attempt) && end->restart >= 0 &&
           json_get_int(attempt, "restart", 0) > end->restart;
}

/* A batch script has ended; its supervisor reports before that, unless it was killed. */
static void check_job(struct api *head, const struct config *config, const char *job,
                      const struct lost_end *end)
{
    const struct lost_end unknown = {.status = -1, .restart = -1};
    char path[512];
    json_t *reply = NULL, *attempt;
    size_t i;

    if (open_path(path, sizeof(path)) == 0 && urlquery_add(path, sizeof(path), "job", job) == 0 &&
        api_call(head, "GET", path, NULL, &reply, NULL) == 200)
        json_array_foreach(json_object_get(reply, "attempts"), i, attempt)
        {
            bool intended = strcmp(json_get_string(attempt, "state", ""), "intended") == 0;
            bool done = json_get_bool(attempt, "done", false);
            if ((!done || end->unbegun) && !is_past(attempt, end))
                finish(head, config, attempt, intended && !done && !end->unbegun ? &unknown : end);
        }
    json_decref(reply);
}

static struct api *open_head_in_child(const struct config *config)
{
    bool local = strcmp(config->role, "node") != 0;

    signal(SIGCHLD, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    return api_open_head(local ? config->head_socket : config->head_url, config->head_user,
                         HEAD_CALL_MS, NULL);
}

pid_t lost_check_job(const struct config *config, const char *job, struct lost_end end)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    struct api *head = open_head_in_child(config);
    if (head)
        check_job(head, config, job, &end);
    _exit(0);
}

pid_t lost_check_all(const struct config *config, bool blind)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    struct api *head = open_head_in_child(config);
    _exit(head ? check_all(head, config, blind) : LOST_BLIND);
}
