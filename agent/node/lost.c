/* SPDX-License-Identifier: Apache-2.0
 *
 * Attempts whose supervisor is gone. Two ways to notice: the plugin reports that a batch script
 * has ended while the head still takes its attempt for running (fast: the controller has not heard
 * of it yet, so the job can be queued again without ever having failed), and a regular comparison
 * with the scheduler. The work is done by a child, so that reports go on being taken; for each
 * attempt that it could claim it starts `oomrun --after` as the job's owner. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/lib/acted.h"
#include "agent/lib/child.h"
#include "agent/lib/jsonget.h"
#include "agent/lib/log.h"
#include "agent/lib/urlquery.h"
#include "agent/node/local.h"
#include "agent/node/node.h"
#include "agent/sched/slurm_fields.h"
#include "agent/sched/slurm_marked.h"

enum { HEAD_CALL_MS = 5000, SQUEUE_MS = 15000, QUIET_MS = 10000 };
/* Of oomrun --after: a controller that hardly answers makes it slow. */
enum { AFTER_MS = 180000, RENEW_MS = 15000 };

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
    if (owner_run_oomrun(config, (uid_t)json_get_int(attempt, "uid", -1), argv, what, &wait))
        post_claim(&claim, true);
}

/* `reason` and the comment behind it. A job that its owner holds is not ours. */
static bool is_held_by_us(const char *reason)
{
    static const char requeued[] = "job requeued in held state"; /* scontrol has underscores */
    const char *mark = strstr(reason, "oomretry:L");

    return strncmp(reason, requeued, strlen(requeued)) == 0 ||
           (strncmp(reason, "JobHeldUser", strlen("JobHeldUser")) == 0 && mark &&
            strstr(mark, SLURM_MARK_HELD));
}

/* {"17":"RUNNING","18_3":…} of all jobs that the controller still knows; NULL when it does not
 * answer. The components of a heterogeneous job ("17+1") go by the id of each. */
static json_t *job_states(void)
{
    const char *argv[] = {"squeue", "-h", "-t", "all", "-o", "%A %i %T %r %k", NULL};
    struct child_result result;
    json_t *states = NULL;

    if (child_run(argv, SQUEUE_MS, &result, NULL) < 0)
        return NULL;
    /* In half a list every other job would be missing, and a missing one counts as ended. */
    if (WIFEXITED(result.status) && WEXITSTATUS(result.status) == 0 && !result.cut) {
        states = json_object();
        for (char *save = NULL, *line = strtok_r(result.out, "\n", &save); line;
             line = strtok_r(NULL, "\n", &save)) {
            char *id = strchr(line, ' '), *state = id ? strchr(id + 1, ' ') : NULL;
            if (!state)
                continue;
            *id++ = *state++ = '\0';
            /* A release that was not asked for, or has been forgotten: after.c tells. */
            char *reason = strchr(state, ' ');
            if (reason)
                *reason++ = '\0';
            if (reason && is_held_by_us(reason))
                strcpy(state, "HELD");
            slurm_plain_id(id);
            json_object_set_new(states, strchr(id, '_') ? id : line, json_string(state));
        }
    }
    child_result_free(&result);
    return states;
}

/* Is there something to do for an attempt that nobody has touched for a while? */
static bool is_lost(const json_t *attempt, const json_t *states, int64_t now_ms)
{
    const char *state = json_get_string(states, json_get_string(attempt, "job", ""), "");
    bool intended = strcmp(json_get_string(attempt, "state", ""), "intended") == 0;
    bool held = strcmp(state, "HELD") == 0, waiting = held || strcmp(state, "PENDING") == 0;
    bool running = strcmp(state, "RUNNING") == 0;

    if (now_ms - json_get_int(attempt, "updated_ms", now_ms) < QUIET_MS)
        return false;
    if (running || strcmp(state, "SUSPENDED") == 0 || strcmp(state, "COMPLETING") == 0)
        return false;
    if (!waiting || held)
        return true;
    /* Queued again by the supervisor; its change of resources may not have been made. */
    return intended && strcmp(json_get_string(attempt, "mode", ""), "requeue") == 0 &&
           !json_get_bool(attempt, "done", false);
}

/* The controller calls it RUNNING, and its supervisor was killed together with all that could have
 * said so; or the controller was killed, and has forgotten that the job was queued again. */
static bool is_orphan(const json_t *attempt, const json_t *states, const struct local *local,
                      int64_t now_ms)
{
    const char *job = json_get_string(attempt, "job", "");

    bool handed_on = strcmp(json_get_string(attempt, "state", ""), "intended") == 0 &&
                     strncmp(json_get_string(attempt, "acted", ""), ACTED_SUBMITTED,
                             strlen(ACTED_SUBMITTED)) == 0;

    return strcmp(json_get_string(states, job, ""), "RUNNING") == 0 && !handed_on &&
           now_ms - json_get_int(attempt, "updated_ms", now_ms) >= QUIET_MS &&
           local_is_orphan(local, json_get_string(attempt, "node", ""), job);
}

static void check_all(struct api *head, const struct config *config)
{
    const struct lost_end unknown = {.status = -1, .restart = -1},
                          killed = {.status = SIGKILL, .restart = -1, .orphan = true};
    json_t *reply = NULL, *attempt;
    struct local local = {NULL, NULL};
    size_t i;

    if (api_call(head, "GET", "/v1/attempts/open?scheduler=slurm", NULL, &reply, NULL) == 200)
        late_collect(config);
    if (json_array_size(json_object_get(reply, "attempts")) == 0) {
        json_decref(reply);
        return;
    }
    json_t *states = job_states();
    int64_t now_ms = json_get_int(reply, "now_ms", 0);
    bool looked = states && local_look(&local) == 0;
    json_array_foreach(json_object_get(reply, "attempts"), i, attempt)
    {
        if (states && is_lost(attempt, states, now_ms))
            finish(head, config, attempt, &unknown);
        else if (looked && is_orphan(attempt, states, &local, now_ms))
            finish(head, config, attempt, &killed);
    }
    if (looked)
        local_free(&local);
    json_decref(states);
    json_decref(reply);
}

/* A report that was long on its way tells of a run that the job has left behind. */
static bool is_past(const json_t *attempt, const struct lost_end *end)
{
    return strcmp(json_get_string(attempt, "state", ""), "running") == 0 && end->restart >= 0 &&
           json_get_int(attempt, "restart", 0) > end->restart;
}

/* A batch script has ended; its supervisor reports before that, unless it was killed. */
static void check_job(struct api *head, const struct config *config, const char *job,
                      const struct lost_end *end)
{
    const struct lost_end unknown = {.status = -1, .restart = -1};
    char path[256] = "/v1/attempts/open?scheduler=slurm";
    json_t *reply = NULL, *attempt;
    size_t i;

    if (urlquery_add(path, sizeof(path), "job", job) == 0 &&
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

pid_t lost_check(const struct config *config, const char *job, struct lost_end end)
{
    pid_t pid = fork();
    struct oom_error err = {""};

    if (pid != 0)
        return pid;
    signal(SIGCHLD, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    bool local = strcmp(config->role, "node") != 0;
    struct api *head =
        api_open_head(local ? config->head_socket : config->head_url, HEAD_CALL_MS, &err);
    if (head && job)
        check_job(head, config, job, &end);
    else if (head)
        check_all(head, config);
    _exit(0);
}
