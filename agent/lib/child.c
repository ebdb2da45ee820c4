/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lib/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/lib/elapsed.h"

enum { MAX_OUTPUT_BYTES = 16 * 1024 * 1024, LOOK_EVERY_MS = 2 };

static char first_directory[4096];

void child_look_first_in(const char *directory)
{
    snprintf(first_directory, sizeof(first_directory), "%s", directory);
}

/* `name`, or its path there. */
static const char *program(const char *name, char *path, size_t size)
{
    if (!*first_directory || strchr(name, '/') ||
        (size_t)snprintf(path, size, "%s/%s", first_directory, name) >= size ||
        access(path, X_OK) < 0)
        return name;
    return path;
}

struct sink {
    int fd;
    char *bytes;
    size_t length, size;
    bool cut;
};

void child_result_free(struct child_result *result)
{
    free(result->out);
    free(result->errors);
    result->out = result->errors = NULL;
}

extern char **environ;

/* Variables by which users have Slurm's programs answer in another form, of some jobs only, or of
 * another cluster. */
static bool is_taste(const char *variable)
{
    static const char *const prefixes[] = {
        "SQUEUE_",           "SINFO_",         "SCONTROL_", "SCANCEL_", "SLURM_TIME_FORMAT=",
        "SLURM_BITSTR_LEN=", "SLURM_CLUSTERS="};

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static void forget(bool (*drops)(const char *variable))
{
    char **kept = environ;

    for (char **variable = environ; variable && *variable; variable++)
        if (!is_taste(*variable) && !(drops && drops(*variable)))
            *kept++ = *variable;
    if (kept)
        *kept = NULL;
}

static void exec_child(const char *const *argv, bool (*drops)(const char *variable), int out,
                       int errors)
{
    char path[sizeof(first_directory) + 64];
    sigset_t none;

    forget(drops);
    /* As long as it is: Slurm's programs cut the list of an array's tasks after 64 bytes. */
    setenv("SLURM_BITSTR_LEN", "0", 1);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    int null = open("/dev/null", O_RDONLY);
    if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(errors, 2) < 0)
        _exit(127);
    execvp(program(argv[0], path, sizeof(path)), (char *const *)argv);
    dprintf(2, "cannot execute %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

/* Room for `more` bytes and a NUL, doubling. */
static bool grow(struct sink *sink, size_t more)
{
    size_t wanted = sink->length + more + 1, size = sink->size ? sink->size : 16384;

    while (size < wanted)
        size *= 2;
    if (size == sink->size)
        return true;
    char *grown = realloc(sink->bytes, size);
    if (!grown)
        return false;
    sink->bytes = grown;
    sink->size = size;
    return true;
}

/* Reads what is there; what is over the bound is read and dropped. False at the end. */
static bool drain(struct sink *sink)
{
    char buffer[16384];
    ssize_t n = read(sink->fd, buffer, sizeof(buffer));

    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    if (n == 0)
        return false;
    size_t room = MAX_OUTPUT_BYTES - sink->length;
    size_t take = (size_t)n < room ? (size_t)n : room;
    sink->cut = sink->cut || take < (size_t)n;
    if (!grow(sink, take))
        return false;
    memcpy(sink->bytes + sink->length, buffer, take);
    sink->length += take;
    sink->bytes[sink->length] = '\0';
    return true;
}

/* False when the time ran out before both ends were closed. */
static bool collect(struct sink sinks[2], int64_t deadline_ms)
{
    while (sinks[0].fd >= 0 || sinks[1].fd >= 0) {
        struct pollfd fds[2] = {{sinks[0].fd, POLLIN, 0}, {sinks[1].fd, POLLIN, 0}};
        int64_t left = deadline_ms - elapsed_ms();

        if (left <= 0)
            return false;
        if (poll(fds, 2, (int)left) < 0 && errno != EINTR)
            return false;
        for (int i = 0; i < 2; i++) {
            if (sinks[i].fd >= 0 && fds[i].revents && !drain(&sinks[i])) {
                close(sinks[i].fd);
                sinks[i].fd = -1;
            }
        }
    }
    return true;
}

/* A program may close both and go on. False when the time ran out before it ended. */
static bool ended(pid_t pid, int *status, int64_t deadline_ms)
{
    struct timespec nap = {0, LOOK_EVERY_MS * 1000 * 1000};
    pid_t found;

    while ((found = waitpid(pid, status, WNOHANG)) == 0 && elapsed_ms() < deadline_ms)
        nanosleep(&nap, NULL);
    return found == pid;
}

static int run(const char *const *argv, bool (*drops)(const char *variable), int timeout_ms,
               struct child_result *result, struct oom_error *err)
{
    int out[2] = {-1, -1}, errors[2] = {-1, -1};
    struct sink sinks[2] = {{.fd = -1}, {.fd = -1}};

    *result = (struct child_result){0};
    if (pipe2(out, O_CLOEXEC) < 0 || pipe2(errors, O_CLOEXEC) < 0) {
        oom_errorf(err, "cannot make a pipe: %s", strerror(errno));
        goto fail;
    }
    pid_t pid = fork();
    if (pid < 0) {
        oom_errorf(err, "cannot fork: %s", strerror(errno));
        goto fail;
    }
    if (pid == 0)
        exec_child(argv, drops, out[1], errors[1]);
    close(out[1]);
    close(errors[1]);
    sinks[0].fd = out[0];
    sinks[1].fd = errors[0];
    int64_t deadline_ms = elapsed_ms() + timeout_ms;
    bool in_time = collect(sinks, deadline_ms) && ended(pid, &result->status, deadline_ms);
    if (!in_time) {
        kill(pid, SIGKILL);
        while (waitpid(pid, &result->status, 0) < 0 && errno == EINTR)
            ;
    }
    for (int i = 0; i < 2; i++)
        if (sinks[i].fd >= 0)
            close(sinks[i].fd);
    result->out = sinks[0].bytes ? sinks[0].bytes : calloc(1, 1);
    result->out_length = sinks[0].length;
    result->cut = sinks[0].cut;
    result->errors = sinks[1].bytes ? sinks[1].bytes : calloc(1, 1);
    if (in_time && result->out && result->errors)
        return 0;
    child_result_free(result);
    return in_time ? oom_errorf(err, "out of memory")
                   : oom_errorf(err, "%s did not end within %d ms", argv[0], timeout_ms);
fail:
    for (int i = 0; i < 2; i++) {
        if (out[i] >= 0)
            close(out[i]);
        if (errors[i] >= 0)
            close(errors[i]);
    }
    return -1;
}

int child_run(const char *const *argv, int timeout_ms, struct child_result *result,
              struct oom_error *err)
{
    return run(argv, NULL, timeout_ms, result, err);
}

int child_expect(const char *const *argv, int timeout_ms, char **out, struct oom_error *err)
{
    return child_expect_without(argv, NULL, timeout_ms, out, err);
}

int child_expect_without(const char *const *argv, bool (*drops)(const char *variable),
                         int timeout_ms, char **out, struct oom_error *err)
{
    struct child_result result;

    if (run(argv, drops, timeout_ms, &result, err) < 0)
        return -1;
    if (out && result.cut) {
        child_result_free(&result);
        return oom_errorf(err, "%s %s says more than %d MiB", argv[0], argv[1] ? argv[1] : "",
                          MAX_OUTPUT_BYTES >> 20);
    }
    bool fine = WIFEXITED(result.status) && WEXITSTATUS(result.status) == 0;
    if (!fine) {
        char *words = *result.errors ? result.errors : result.out;
        words[strcspn(words, "\n")] = '\0';
        if (WIFSIGNALED(result.status))
            oom_errorf(err, "%s was ended by signal %d", argv[0], WTERMSIG(result.status));
        else
            oom_errorf(err, "%s %s: %s", argv[0], argv[1] ? argv[1] : "",
                       *words ? words : "failed without a word");
    } else if (out) {
        *out = result.out;
        result.out = NULL;
    }
    child_result_free(&result);
    return fine ? 0 : -1;
}
