/* SPDX-License-Identifier: Apache-2.0
 *
 * After the fact: the supervisor of an attempt was killed (with its step, by the kernel, with its
 * node), or died between the decision and acting on it. The node's agent has become the job's
 * owner and runs this in the supervisor's place; the claim at the head has made sure that nobody
 * else does. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/evidence/sigset.h"
#include "agent/lib/child.h"
#include "agent/lib/files.h"
#include "agent/lib/jsonget.h"
#include "agent/run/after.h"
#include "agent/sched/slurm_fields.h"
#include "db/db.h"

enum { CALL_MS = 10000, SETTLE_MS = 20000, MAX_LOG_TAIL_BYTES = 64 * 1024 * 1024 };

/* Ended by somebody's wish or by the machine's fault: never a question of memory. */
static const char *const not_ours[] = {"CANCELLED", "TIMEOUT",   "PREEMPTED", "DEADLINE",
                                       "NODE_FAIL", "BOOT_FAIL", "REVOKED",   NULL};

static bool is_one_of(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (strncmp(word, *list, strlen(*list)) == 0)
            return true;
    return false;
}

/* The job as Slurm has it. While it is COMPLETING its real state does not show: wait for that,
 * unless the batch script is known to have ended by itself. */
static char *job_text(const char *job, bool settle, struct oom_error *err)
{
    const char *show[] = {"scontrol", "-o", "show", "job", job, NULL};
    struct timespec nap = {0, 100 * 1000 * 1000};
    int64_t deadline_ms = db_now_ms() + SETTLE_MS;
    char *text = NULL, state[64];

    while (child_expect(show, CALL_MS, &text, err) == 0) {
        if (!settle || !slurm_field(text, "JobState", state, sizeof(state)) ||
            strcmp(state, "COMPLETING") != 0 || db_now_ms() > deadline_ms)
            return text;
        free(text);
        text = NULL;
        nanosleep(&nap, NULL);
    }
    return NULL;
}

/* The attempt's part of the log: behind the last line in which a supervisor announced a start. */
static off_t attempt_offset(int fd, off_t size, int64_t *first_line)
{
    static const char marker[] = "oomrun: attempt ", tail[] = " starts now";
    off_t start = size > MAX_LOG_TAIL_BYTES ? size - MAX_LOG_TAIL_BYTES : 0, found = start;
    int64_t line_number = 1;
    int copy = dup(fd);
    FILE *file = copy >= 0 ? fdopen(copy, "r") : NULL;
    char *line = NULL;
    size_t room = 0;

    *first_line = 1;
    if (!file || fseeko(file, start, SEEK_SET) < 0)
        goto out;
    for (ssize_t n; (n = getline(&line, &room, file)) > 0; line_number++)
        if (strncmp(line, marker, sizeof(marker) - 1) == 0 && strstr(line, tail)) {
            found = ftello(file);
            *first_line = line_number + 1;
        }
out:
    free(line);
    if (file)
        fclose(file);
    else if (copy >= 0)
        close(copy);
    return found;
}

static void feed_log(struct run *run, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    char buffer[64 * 1024];
    int64_t first_line;

    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        off_t at = attempt_offset(fd, st.st_size, &first_line);
        int stream = oom_classifier_open(run->classifier, path, first_line);
        for (ssize_t n; (n = pread(fd, buffer, sizeof(buffer), at)) > 0; at += n)
            oom_classifier_feed(run->classifier, stream, buffer, (size_t)n);
    }
    close(fd);
}

/* What people read goes where the job's own words went. */
static void speak_into(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        dup2(fd, 2);
    if (fd >= 0)
        close(fd);
}

static void fill_exit(struct run *run, struct attempt *attempt, const char *text,
                      const struct after_options *options)
{
    char word[128];
    int code = 0, signal_number = 0;

    oom_exit_init(&attempt->exit);
    if (options->batch_status >= 0) {
        attempt->wait_status = options->batch_status;
        code = (options->batch_status >> 8) & 0xff;
        signal_number = options->batch_status & 0x7f;
    } else if (slurm_field(text, "ExitCode", word, sizeof(word))) {
        sscanf(word, "%d:%d", &code, &signal_number);
        attempt->wait_status = code << 8 | (signal_number & 0x7f);
    }
    attempt->exit.exit_code = signal_number ? -1 : code;
    attempt->exit.signal = signal_number == 125 ? 9 : signal_number; /* 0:125 is Slurm's OOM */
    if (slurm_field(text, "JobState", word, sizeof(word)))
        snprintf(attempt->exit.state, sizeof(attempt->exit.state), "%s", word);
    if (slurm_field(text, "DerivedExitCode", word, sizeof(word)) &&
        sscanf(word, "%d:%d", &code, &signal_number) == 2 && signal_number == 125)
        attempt->exit.derived_exit_code = 253;
    attempt->exit.cgroup_oom_kills = next_reported_kills(run, attempt);
    attempt->ended_ms = db_now_ms();
}

static int load_lineage(struct run *run, struct attempt *attempt, json_t **row,
                        struct oom_error *err)
{
    char path[64];
    json_t *reply = NULL;

    snprintf(path, sizeof(path), "/v1/history/L%lld", (long long)attempt->lineage);
    if (api_call(run->api, "GET", path, NULL, &reply, err) != 200) {
        json_decref(reply);
        return -1;
    }
    const json_t *lineage = json_object_get(reply, "lineage");
    const json_t *options = json_object_get(lineage, "options");
    /* What the supervisor captured at the start is kept under this name. */
    snprintf(run->cluster, sizeof(run->cluster), "%s", json_get_string(lineage, "cluster", ""));
    run->options.policy = strdup(json_get_string(options, "policy", "auto"));
    run->options.mode = strdup(json_get_string(options, "mode", "auto"));
    run->options.allow = strdup(json_get_string(options, "allow", ""));
    run->options.max_retries = (int)json_get_int(options, "max_retries", -1);
    const json_t *attempts = json_object_get(reply, "attempts");
    *row = json_incref(json_array_get(attempts, (size_t)attempt->number - 1));
    /* How often the job had been restarted when the attempt that failed ran. */
    bool intended = strcmp(json_get_string(*row, "state", ""), "intended") == 0;
    run->restart = (int)json_get_int(intended && attempt->number > 1
                                         ? json_array_get(attempts, (size_t)attempt->number - 2)
                                         : *row,
                                     "restart", 0);
    int64_t created_ms = json_get_int(lineage, "created_ms", 0);
    json_decref(reply);
    if (!*row)
        return oom_errorf(err, "lineage %lld has no attempt %lld", (long long)attempt->lineage,
                          (long long)attempt->number);
    attempt->started_ms = json_get_int(*row, "started_ms", 0);
    attempt->lineage_ms = created_ms;
    return oom_edits_from_json(json_object_get(*row, "total_edits"), &attempt->edits);
}

/* Slurm's own copy of what was submitted. */
static int open_script(struct run *run, struct oom_error *err)
{
    static char path[] = "/tmp/oomrun-after-XXXXXX";
    static char *argv[] = {"bash", path, NULL};
    const char *write[] = {"scontrol", "write", "batch_script", run->job, "-", NULL};
    char *text = NULL;

    if (child_expect(write, CALL_MS, &text, err) < 0)
        return -1;
    int rc = file_write_temporary(path, text, strlen(text), 0600, err);
    free(text);
    if (rc == 0) {
        rc = launch_open(&run->launch, argv, false, err);
        unlink(path);
    }
    return rc;
}

/* What was queued or submitted again is over and has not begun under a supervisor. */
static void never_began(struct run *run, const struct attempt *attempt, const char *state)
{
    char why[160];
    json_t *reply = NULL;

    snprintf(why, sizeof(why), "job %s is %s without the attempt having begun under oomrun",
             run->job, state);
    json_t *body = json_pack("{s:I, s:I, s:s}", "lineage", (json_int_t)attempt->lineage, "attempt",
                             (json_int_t)attempt->number, "stopped", why);
    api_call(run->api, "POST", "/v1/attempts/note", body, &reply, NULL);
    json_decref(body);
    json_decref(reply);
}

/* The decision was stored, the deed was not done. */
static void carry_out(struct run *run, struct attempt *attempt, const json_t *row)
{
    struct oom_decision decision;
    struct oom_error err = {""};

    oom_decision_init(&decision);
    if (oom_decision_from_json(json_object_get(row, "decision"), &decision, &err) == 0) {
        struct oom_edits total = attempt->edits;
        attempt->edits = (struct oom_edits){NULL, 0};
        next_start(run, attempt, &decision, &total, attempt->number);
        oom_edits_free(&total);
    }
    oom_decision_free(&decision);
}

int after_main(struct run *run, const struct after_options *options)
{
    struct attempt attempt = {
        .lineage = options->lineage, .number = options->attempt, .known = true, .applied = -1};
    struct oom_error err = {""};
    json_t *row = NULL;
    char state[64] = "", path[4096], restarts[16] = "0";
    int status = 1;

    snprintf(run->job, sizeof(run->job), "%s", options->job);
    snprintf(run->handle, sizeof(run->handle), "%s", options->job);
    run->after = true;
    run->in_job_allocation = true;
    run->sched = &sched_slurm;
    char *text = job_text(run->job, options->batch_status < 0, &err);
    if (load_lineage(run, &attempt, &row, &err) < 0)
        goto out;
    if (!text) {
        /* Purged, or a controller that does not answer: only the former is an end. */
        if (strstr(err.text, "Invalid job id")) {
            snprintf(attempt.exit.state, sizeof(attempt.exit.state), "UNKNOWN");
            attempt.ended_by_signal = 9;
            next_after(run, &attempt);
            status = 0;
        }
        goto out;
    }
    slurm_field(text, "JobState", state, sizeof(state));
    slurm_field(text, "Restarts", restarts, sizeof(restarts));
    bool intended = strcmp(json_get_string(row, "state", ""), "intended") == 0;
    bool over = strcmp(state, "PENDING") != 0 && strcmp(state, "RUNNING") != 0 &&
                strcmp(state, "SUSPENDED") != 0;
    if (slurm_field(text, "WorkDir", path, sizeof(path)) && chdir(path) < 0)
        fprintf(stderr, "oomrun: cannot enter %s: %s\n", path, strerror(errno));
    const char *acted = json_get_string(row, "acted", "");
    bool done = strcmp(acted, "queued again") == 0 || strncmp(acted, "submitted as", 12) == 0;
    if (intended && done) {
        if (over)
            never_began(run, &attempt, state);
        status = 0;
        goto out;
    }
    if (intended) {
        /* Pending already with its change: the start time is what may be missing. */
        bool due = over || options->batch_status >= 0 || strcmp(state, "PENDING") == 0;
        if (due && open_script(run, &err) == 0)
            carry_out(run, &attempt, row);
        status = 0;
        goto out;
    }
    if (atoi(restarts) > run->restart || (!over && options->batch_status < 0)) {
        status = 0; /* its next supervisor takes over, or it is running */
        goto out;
    }
    if (new_classifier_for(run, &err) < 0 || open_script(run, &err) < 0)
        goto out;
    fill_exit(run, &attempt, text, options);
    if (slurm_field(text, "StdOut", path, sizeof(path))) {
        feed_log(run, path);
        speak_into(path);
    }
    char other[4096];
    if (slurm_field(text, "StdErr", other, sizeof(other)) && strcmp(path, other) != 0)
        feed_log(run, other);
    if (is_one_of(state, not_ours))
        attempt.ended_by_signal = 15;
    next_after(run, &attempt);
    status = 0;
out:
    if (status)
        fprintf(stderr, "oomrun: job %s: %s\n", run->job, err.text);
    json_decref(row);
    free(text);
    oom_edits_free(&attempt.edits);
    return status;
}
