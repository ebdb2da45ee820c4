/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/lib/log.h"
#include "agent/node/evidence.h"
#include "agent/node/node.h"

enum { MAX_READERS = 4, READER_S = 30 };

struct evidence_root {
    int fd;
    struct event *event;
    const struct config *config;
    pid_t readers[MAX_READERS]; /* 0: free */
};

static bool is_made_of(const char *text, size_t size, const char *letters)
{
    size_t length = strnlen(text, size);

    return length > 0 && length < size && strspn(text, letters) == length;
}

/* Users choose the ids of their submissions. */
static bool is_one_word(const char *text, size_t size)
{
    size_t length = strnlen(text, size);

    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] == '/' || text[i] == 0x7f)
            return false;
    return length > 0 && length < size - 32;
}

#define DIGITS "0123456789"
#define WORD   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-" DIGITS

bool evidence_question_is_sound(const struct evidence_question *q)
{
    if (!is_made_of(q->session, sizeof(q->session), WORD) ||
        strncmp(q->session, "session_", 8) != 0)
        return false;
    return q->what == EVIDENCE_LOGS      ? is_made_of(q->name, sizeof(q->name), "abcdef" DIGITS)
           : q->what == EVIDENCE_DRIVER  ? is_one_word(q->name, sizeof(q->name))
           : q->what == EVIDENCE_PACKAGE ? is_made_of(q->name, sizeof(q->name), WORD)
                                         : false;
}

/* The session's directory below one of the configured ones; -1: none. */
static int open_session(const struct config *config, const char *session, struct stat *st)
{
    static char usual[] = "/tmp/ray";
    char *const fallback[] = {usual};
    char *const *roots = config->ray_temp_count ? config->ray_temp : fallback;
    size_t count = config->ray_temp_count ? config->ray_temp_count : 1;

    for (size_t i = 0; i < count; i++) {
        int root = open(roots[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
        int fd =
            root < 0 ? -1 : openat(root, session, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (root >= 0)
            close(root);
        if (fd >= 0 && fstat(fd, st) == 0)
            return fd;
        if (fd >= 0)
            close(fd);
    }
    return -1;
}

/* What root owns is read by the head's user: Ray lets everybody write into its directories. */
static int become_reader(const struct config *config, const struct stat *st, struct oom_error *err)
{
    return st->st_uid == 0 ? drop_to_user(config->head_user, err)
                           : drop_to_owner(st->st_uid, st->st_gid, err);
}

static void read_as_owner(const struct config *config, const struct evidence_question *question,
                          int directory, const struct stat *st, int out)
{
    struct oom_error err = {""};

    signal(SIGTERM, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_DFL); /* nobody listens any more */
    alarm(READER_S);
    if (fchdir(directory) < 0 || dup2(out, 3) < 0 || close_range(4, ~0U, 0) < 0 ||
        become_reader(config, st, &err) < 0) {
        log_line(LOG_WARNING, "evidence of %s: %s", question->session,
                 err.text[0] ? err.text : strerror(errno));
        _exit(1);
    }
    _exit(evidence_read(question, 3) == 0 ? 0 : 1);
}

static pid_t *free_slot(struct evidence_root *root)
{
    for (int i = 0; i < MAX_READERS; i++)
        if (root->readers[i] == 0)
            return &root->readers[i];
    return NULL;
}

/* Closing `out` without a last piece says that there is no answer. */
static void answer(struct evidence_root *root, struct evidence_question *question, int out)
{
    pid_t *slot = free_slot(root);
    struct stat st;

    if (!slot || !evidence_question_is_sound(question))
        return;
    int directory = open_session(root->config, question->session, &st);
    if (directory < 0)
        return;
    pid_t pid = fork();
    if (pid == 0)
        read_as_owner(root->config, question, directory, &st, out);
    if (pid > 0)
        *slot = pid;
    close(directory);
}

static void on_question(evutil_socket_t fd, short what, void *arg)
{
    struct evidence_root *root = arg;
    struct evidence_question question;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = {&question, sizeof(question)};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    int out = -1;

    (void)what;
    ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *header = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
        memcpy(&out, CMSG_DATA(header), sizeof(out));
    if (n == (ssize_t)sizeof(question) && out >= 0)
        answer(root, &question, out);
    if (out >= 0)
        close(out);
}

struct evidence_root *evidence_root_open(struct event_base *base, int fd,
                                         const struct config *config, struct oom_error *err)
{
    struct evidence_root *root = calloc(1, sizeof(*root));

    if (root) {
        root->config = config;
        root->event = event_new(base, fd, EV_READ | EV_PERSIST, on_question, root);
        if (root->event && event_add(root->event, NULL) == 0)
            return root;
    }
    evidence_root_close(root);
    oom_errorf(err, "cannot watch the socket of the node's port");
    return NULL;
}

void evidence_root_close(struct evidence_root *root)
{
    if (!root)
        return;
    if (root->event)
        event_free(root->event);
    free(root);
}

void evidence_root_reaped(struct evidence_root *root, pid_t pid)
{
    for (int i = 0; root && i < MAX_READERS; i++)
        if (root->readers[i] == pid)
            root->readers[i] = 0;
}
