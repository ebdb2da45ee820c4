/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of libc that execute programs, with a look at the arguments first. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "agent/preload/argv.h"

#define EXPORT  __attribute__((visibility("default")))
#define PRELOAD "LD_PRELOAD"

enum { MAX_ENVIRONMENT = 4096 };

extern char **environ;

static struct argv_plan plan;
static char own_path[PATH_MAX];
static char instructions[ARGV_MAX_TEXT]; /* "OOMRETRY_ARGV=…", to hand on */

static int (*real_execve)(const char *, char *const[], char *const[]);
static int (*real_execvpe)(const char *, char *const[], char *const[]);
static int (*real_fexecve)(int, char *const[], char *const[]);
static int (*real_posix_spawn)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                               const posix_spawnattr_t *, char *const[], char *const[]);
static int (*real_posix_spawnp)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                                const posix_spawnattr_t *, char *const[], char *const[]);

static void find_functions(void)
{
    if (real_execve)
        return;
    /* A function pointer fits where dlsym's object pointer is stored (POSIX says so). */
    *(void **)&real_execvpe = dlsym(RTLD_NEXT, "execvpe");
    *(void **)&real_fexecve = dlsym(RTLD_NEXT, "fexecve");
    *(void **)&real_posix_spawn = dlsym(RTLD_NEXT, "posix_spawn");
    *(void **)&real_posix_spawnp = dlsym(RTLD_NEXT, "posix_spawnp");
    *(void **)&real_execve = dlsym(RTLD_NEXT, "execve");
}

__attribute__((constructor)) static void load(void)
{
    const char *text = getenv(ARGV_VARIABLE);
    Dl_info info;

    find_functions();
    if (!text || getauxval(AT_SECURE))
        return;
    if (strlen(text) + sizeof(ARGV_VARIABLE) + 1 > sizeof(instructions) ||
        !dladdr((void *)&plan, &info) || !info.dli_fname ||
        strlen(info.dli_fname) >= sizeof(own_path))
        return;
    strcpy(own_path, info.dli_fname);
    strcpy(instructions, ARGV_VARIABLE "=");
    strcat(instructions, text);
    argv_plan_read(&plan, text);
}

/* ---- the report: one line, written at once */

struct line {
    char text[2048];
    size_t length;
};

static void add(struct line *line, const char *text)
{
    for (; *text && line->length + 2 < sizeof(line->text); text++)
        line->text[line->length++] = (unsigned char)*text < ' ' ? ' ' : *text;
}

static void add_number(struct line *line, unsigned long number)
{
    char digits[24];
    size_t n = sizeof(digits);

    digits[--n] = '\0';
    do
        digits[--n] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    add(line, digits + n);
}

static void report(char *const argv[], size_t first)
{
    struct line line = {.length = 0};
    int saved = errno;

    if (!plan.report || !*plan.report)
        return;
    add(&line, "changed pid ");
    add_number(&line, (unsigned long)getpid());
    add(&line, " ");
    add(&line, first ? argv[first - 1] : argv[0]);
    add(&line, ":");
    for (size_t i = 0; i < plan.count; i++) {
        const struct argv_record *r = &plan.records[i];
        if (r->kind < ARGV_SET_FLAG)
            continue;
        add(&line, r->kind == ARGV_DROP ? " -" : " ");
        add(&line, r->joined ? r->joined : r->name);
    }
    line.text[line.length++] = '\n';
    int fd = open(plan.report, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0) {
        ssize_t written = write(fd, line.text, line.length);
        (void)written;
        close(fd);
    }
    errno = saved;
}

/* ---- the environment: the library keeps itself in it */

static bool named(const char *entry, const char *name)
{
    size_t n = strlen(name);

    return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

/* Copies LD_PRELOAD's value with or without this library into `out`. */
static bool preload_value(const char *old, bool with, char *out, size_t size)
{
    size_t n = strlen(own_path), length = 0;

    memcpy(out, PRELOAD "=", sizeof(PRELOAD));
    length = sizeof(PRELOAD);
    out[length] = '\0';
    if (with) {
        if (length + n + 1 > size)
            return false;
        memcpy(out + length, own_path, n + 1);
        length += n;
    }
    while (*old) {
        size_t word = strcspn(old, " :");
        if (word && !(word == n && strncmp(old, own_path, n) == 0)) {
            if (length + word + 2 > size)
                return false;
            if (length > sizeof(PRELOAD))
                out[length++] = ':';
            memcpy(out + length, old, word);
            length += word;
            out[length] = '\0';
        }
        old += word;
        old += strspn(old, " :");
    }
    return true;
}

/* The environment of the new program in `out`; false: it stays as it is. */
static bool edit_environment(char *const envp[], bool training, bool leaves, char **out,
                             char *preload, size_t preload_size)
{
    size_t count = 0, to = 0;
    const char *old = "";

    if (!envp)
        return false;
    while (envp[count])
        count++;
    if (count + ARGV_MAX_RECORDS + 3 > MAX_ENVIRONMENT)
        return false;
    for (size_t i = 0; i < count; i++) {
        bool ours = named(envp[i], PRELOAD) || named(envp[i], ARGV_VARIABLE);
        if (named(envp[i], PRELOAD))
            old = envp[i] + sizeof(PRELOAD);
        for (size_t r = 0; training && r < plan.count && !ours; r++)
            ours = plan.records[r].kind == ARGV_ENV && named(envp[i], plan.records[r].name);
        if (!ours)
            out[to++] = envp[i];
    }
    if (!preload_value(old, !leaves, preload, preload_size))
        return false;
    if (preload[sizeof(PRELOAD)])
        out[to++] = preload;
    if (!leaves)
        out[to++] = instructions;
    for (size_t r = 0; training && r < plan.count; r++)
        if (plan.records[r].kind == ARGV_ENV)
            out[to++] = (char *)plan.records[r].joined;
    out[to] = NULL;
    return true;
}

/* ---- one exec */

struct call {
    char *const *argv;
    char *const *envp;
    char *words[ARGV_MAX_WORDS + 2 * ARGV_MAX_RECORDS];
    char *environment[MAX_ENVIRONMENT];
    char preload[PATH_MAX * 2];
};

static void look(struct call *call, char *const argv[], char *const envp[])
{
    call->argv = argv;
    call->envp = envp;
    if (!plan.active)
        return;
    size_t first = argv_find(&plan, argv);
    if (first && argv_edit(&plan, argv, first, call->words)) {
        call->argv = call->words;
        report(argv, first);
    }
    if (edit_environment(envp, first != 0, argv_leaves_host(argv), call->environment, call->preload,
                         sizeof(call->preload)))
        call->envp = call->environment;
}

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    struct call call;

    find_functions();
    look(&call, argv, envp);
    return real_execve(path, call.argv, call.envp);
}

EXPORT int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
    struct call call;

    find_functions();
    look(&call, argv, envp);
    return real_execvpe(file, call.argv, call.envp);
}

EXPORT int execvp(const char *file, char *const argv[])
{
    return execvpe(file, argv, environ);
}

EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
    struct call call;

    find_functions();
    look(&call, argv, envp);
    return real_fexecve(fd, call.argv, call.envp);
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    struct call call;

    find_functions();
    look(&call, argv, envp);
    return real_posix_spawn(pid, path, actions, attributes, call.argv, call.envp);
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    struct call call;

    find_functions();
    look(&call, argv, envp);
    return real_posix_spawnp(pid, file, actions, attributes, call.argv, call.envp);
}

/* The variadic ones: their words are collected on the stack. */
static size_t count_words(va_list ap)
{
    size_t count = 1;

    while (va_arg(ap, const char *) != NULL)
        count++;
    return count;
}

#define COLLECT(words, first, last)                                                                \
    va_list ap_, again_;                                                                           \
    va_start(ap_, last);                                                                           \
    va_copy(again_, ap_);                                                                          \
    size_t count_ = count_words(ap_);                                                              \
    va_end(ap_);                                                                                   \
    char *words[count_ + 1];                                                                       \
    words[0] = (char *)(first);                                                                    \
    for (size_t i_ = 1; i_ <= count_; i_++)                                                        \
    words[i_] = va_arg(again_, char *)

EXPORT int execl(const char *path, const char *arg, ...)
{
    COLLECT(words, arg, arg);
    va_end(again_);
    return execve(path, words, environ);
}

EXPORT int execlp(const char *file, const char *arg, ...)
{
    COLLECT(words, arg, arg);
    va_end(again_);
    return execvpe(file, words, environ);
}

EXPORT int execle(const char *path, const char *arg, ...)
{
    COLLECT(words, arg, arg);
    char *const *envp = va_arg(again_, char *const *);
    va_end(again_);
    return execve(path, words, envp);
}
