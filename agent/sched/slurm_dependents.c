/* SPDX-License-Identifier: Apache-2.0
 *
 * Slurm judges a dependency once and keeps the verdict, but takes a new one for a pending job at
 * any time. Seen on 22.05: an array with aftercorr has a record for each task, and a dependency on
 * "12_3" is accepted like one on "12". Jobs of hidden partitions are listed only where all are
 * asked for. */
#include "agent/sched/slurm_dependents.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/lib/child.h"
#include "agent/lib/elapsed.h"
#include "agent/lib/paths.h"
#include "agent/sched/slurm_fields.h"
#include "agent/sched/slurm_singleton.h"

/* A word of a command line is at most 128 KiB long. */
enum {
    CALL_MS = 10000,
    MAX_DEPENDENCY_BYTES = 120 * 1024,
    FORM_WORDS = 3,
    TURN_MS = 30000,
    SETTLE_MS = 300, /* what a slow scontrol takes */
    SETTLE_FOR_MS = 20000,
};

struct text {
    char *bytes;
    size_t used, size;
    bool full;
};

static void add(struct text *text, const char *from, size_t length)
{
    if (text->used + length + 1 > text->size) {
        text->full = true;
        return;
    }
    memcpy(text->bytes + text->used, from, length);
    text->used += length;
    text->bytes[text->used] = '\0';
}

static void add_word(struct text *text, const char *word)
{
    add(text, word, strlen(word));
}

/* How a target names the job: by itself ("12", "12_3", also "12+30" after minutes), or as the whole
 * array of which it is a task ("12_*"). */
enum match { OTHER, ITSELF, WHOLE_ARRAY };

static enum match match(const char *target, size_t length, const char *job)
{
    size_t id = strlen(job), array = strcspn(job, "_");

    if (length >= id && strncmp(target, job, id) == 0 && (length == id || target[id] == '+'))
        return ITSELF;
    if (job[array] && length == array + 2 && strncmp(target, job, array + 1) == 0 &&
        target[array + 1] == '*')
        return WHOLE_ARRAY;
    return OTHER;
}

/* One "type:target:target", without its "(state)". True when it concerned the job. */
static bool rewrite_one(const char *item, size_t length, const struct slurm_replacement *r,
                        int index, bool any_of, struct text *out)
{
    const char *end = item + length, *colon = memchr(item, ':', length);
    const char *task = strchr(r->old_job, '_');
    bool by_index = colon && (size_t)(colon - item) == strlen("aftercorr") &&
                    strncmp(item, "aftercorr", strlen("aftercorr")) == 0;
    bool found = false, corresponds = by_index && task && index == atoi(task + 1);

    if (!colon) {
        add(out, item, length);
        return false;
    }
    /* A single task has no corresponding ones. */
    if (corresponds)
        add_word(out, "afterok");
    else
        add(out, item, (size_t)(colon - item));
    while (colon < end) {
        const char *target = colon + 1;
        const char *next = memchr(target, ':', (size_t)(end - target));
        size_t target_length = (size_t)((next ? next : end) - target);
        enum match how = match(target, target_length, r->old_job);

        add(out, ":", 1);
        colon = next ? next : end;
        if (how == WHOLE_ARRAY && (by_index ? !corresponds : any_of || !r->others))
            how = OTHER;
        if (how == OTHER) {
            add(out, target, target_length);
            continue;
        }
        found = true;
        add_word(out, r->new_job);
        if (how == ITSELF) {
            add(out, target + strlen(r->old_job), target_length - strlen(r->old_job));
        } else if (!by_index && *r->others) {
            add(out, ":", 1);
            add_word(out, r->others);
        }
    }
    return found;
}

/* False when it cannot be read or does not fit. */
static bool rewrite_all(const char *dependency, const struct slurm_replacement *replacement,
                        int index, struct text *out, bool *found)
{
    bool any_of = strchr(dependency, '?') != NULL;

    for (const char *p = dependency; *p;) {
        size_t length = strcspn(p, "(,?");

        *found = rewrite_one(p, length, replacement, index, any_of, out) || *found;
        p += length;
        if (*p == '(' && !(p = strchr(p, ')')))
            return false;
        p += *p == ')';
        if (*p == ',' || *p == '?')
            add(out, p++, 1);
        else if (*p)
            return false;
    }
    return !out->full;
}

bool slurm_dependency_rewrite(const char *dependency, const struct slurm_replacement *replacement,
                              int index, char *out, size_t size)
{
    struct text text = {.bytes = out, .size = size};
    bool found = false;

    if (size == 0)
        return false;
    out[0] = '\0';
    if (rewrite_all(dependency, replacement, index, &text, &found))
        return found;
    out[0] = '\0';
    return false;
}

/* The array's tasks but this one that have not completed, as "12_0:12_4"; "" for no array. 1: they
 * do not fit. */
static int other_tasks(const char *job, char *out, size_t size, struct oom_error *err)
{
    const char *task = strchr(job, '_');
    struct text text = {.bytes = out, .size = size};
    char array[32], *list = NULL;

    out[0] = '\0';
    if (!task)
        return 0;
    snprintf(array, sizeof(array), "%.*s", (int)(task - job), job);
    const char *argv[] = {"squeue", "-h",  "-a", "-r",    "-t", "all",
                          "-j",     array, "-o", "%i|%T", NULL};
    if (child_expect(argv, CALL_MS, &list, err) < 0)
        return -1;
    for (char *save = NULL, *line = strtok_r(list, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char *bar = strchr(line, '|');
        if (!bar || strcmp(bar + 1, "COMPLETED") == 0)
            continue;
        *bar = '\0';
        if (strcmp(line, job) == 0)
            continue;
        if (text.used)
            add(&text, ":", 1);
        add_word(&text, line);
    }
    free(list);
    return text.full;
}

/* `job` may be an array with all of its tasks: "12_[1,3,5,...]". */
static int update(const char *job, const char *dependency, struct oom_error *err)
{
    char *id = NULL, *option = NULL;
    int rc = -1;

    if (asprintf(&id, "JobId=%s", job) < 0)
        return oom_errorf(err, "out of memory");
    if (asprintf(&option, "Dependency=%s", dependency) < 0) {
        oom_errorf(err, "out of memory");
    } else {
        const char *argv[] = {"scontrol", "update", id, option, NULL};
        rc = child_expect(argv, CALL_MS, NULL, err);
        free(option);
    }
    free(id);
    return rc;
}

/* Cuts "12|afterok:7(unfulfilled)|a name". */
static bool split(char *line, char *words[FORM_WORDS])
{
    for (int i = 0; i < FORM_WORDS; i++) {
        words[i] = line;
        if (i + 1 < FORM_WORDS && !(line = strchr(line, '|')))
            return false;
        if (i + 1 < FORM_WORDS)
            *line++ = '\0';
    }
    slurm_plain_id(words[0]);
    return true;
}

/* `dependency` is room for one. */
static int repoint_all(const struct slurm_replacement *replacement,
                       struct slurm_singleton *singleton, char *list, char *dependency,
                       struct oom_error *err)
{
    int changed = 0;

    for (char *save = NULL, *line = strtok_r(list, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        struct oom_error why = {""};
        char *words[FORM_WORDS];
        if (!split(line, words))
            continue;
        const char *task = strchr(words[0], '_');
        bool waits = slurm_dependency_rewrite(words[1], replacement, task ? atoi(task + 1) : -1,
                                              dependency, MAX_DEPENDENCY_BYTES);
        if (!slurm_singleton_stand_behind(singleton, words[0], words[2], dependency,
                                          MAX_DEPENDENCY_BYTES) &&
            !waits)
            continue;
        if (update(words[0], dependency, &why) == 0)
            changed++;
        else if (slurm_is_away(&why))
            return oom_errorf(err, "%s", why.text);
        /* Else it waits no longer, or may not be changed: that must not keep the job from
         * running. */
    }
    return changed;
}

/* Two jobs that failed at the same time, say tasks of one array, may have the same dependent, and
 * Slurm takes its whole list anew: who wrote last would take back what the other one wrote after he
 * had read. So an owner's supervisors take turns, as far as they see the same state directory (one
 * machine, or a home that nodes share). -1: it cannot be had, or not in time. */
static int take_turn(void)
{
    struct timespec nap = {0, 20 * 1000000L};
    struct flock turn = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int64_t deadline_ms = elapsed_ms() + TURN_MS;
    char directory[3000], path[4096];

    if (paths_owner_dir(directory, sizeof(directory), NULL) < 0)
        return -1;
    snprintf(path, sizeof(path), "%s/dependents.lock", directory);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    while (fd >= 0 && fcntl(fd, F_SETLK, &turn) < 0) {
        if ((errno != EAGAIN && errno != EACCES) || elapsed_ms() > deadline_ms) {
            close(fd);
            return -1;
        }
        nanosleep(&nap, NULL);
    }
    return fd;
}

static int repoint_once(const struct slurm_replacement *replacement,
                        struct slurm_singleton *singleton, char *dependency, struct oom_error *err)
{
    char uid[16], *list = NULL;
    const char *pending[] = {"squeue", "-h", "-a", "-u", uid, "-t", "PD", "-o", "%i|%E|%j", NULL};
    int turn = take_turn(), changed = -1;

    /* Others' dependents only they may change. */
    snprintf(uid, sizeof(uid), "%u", (unsigned)getuid());
    if (child_expect(pending, CALL_MS, &list, err) == 0)
        changed = repoint_all(replacement, singleton, list, dependency, err);
    free(list);
    if (turn >= 0)
        close(turn);
    return changed;
}

/* On machines that share nothing turns cannot be taken: it is looked again a moment later, until
 * nobody waits for the old job. */
static int repoint_until_all(const struct slurm_replacement *replacement, char *dependency,
                             struct oom_error *err)
{
    bool moves = strcmp(replacement->old_job, replacement->new_job) != 0;
    int64_t deadline_ms = elapsed_ms() + SETTLE_FOR_MS;
    struct timespec nap = {0, SETTLE_MS * 1000000L};
    struct slurm_singleton singleton;

    slurm_singleton_of(replacement->old_job, replacement->new_job, &singleton);
    int changed = repoint_once(replacement, &singleton, dependency, err), all = changed;

    while (changed > 0 && moves && elapsed_ms() < deadline_ms) {
        nanosleep(&nap, NULL);
        changed = repoint_once(replacement, &singleton, dependency, err);
        all += changed > 0 ? changed : 0;
    }
    return changed < 0 ? -1 : all;
}

int slurm_dependents_repoint(const char *old_job, const char *new_job, struct oom_error *err)
{
    char *others = malloc(MAX_DEPENDENCY_BYTES), *dependency = malloc(MAX_DEPENDENCY_BYTES);
    int changed = -1;

    if (!others || !dependency) {
        oom_errorf(err, "out of memory");
    } else {
        int rc = other_tasks(old_job, others, MAX_DEPENDENCY_BYTES / 2, err);
        struct slurm_replacement replacement = {old_job, new_job, rc > 0 ? NULL : others};
        if (rc >= 0)
            changed = repoint_until_all(&replacement, dependency, err);
    }
    free(others);
    free(dependency);
    return changed;
}
