/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin's datagrams (plugin/report.h) become evidence at the head. Only root's are taken: the
 * plugin runs as root in slurmstepd. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/lib/jsonget.h"
#include "agent/lib/log.h"
#include "agent/node/node.h"
#include "plugin/report.h"

struct reports {
    int fd;
    struct event *event;
    struct api *head;
    const struct config *config;
};

/* "key=value" lines into an object of strings; unknown keys are kept, the head ignores them. */
static json_t *parse(char *text)
{
    json_t *report = json_object();

    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char *equals = strchr(line, '=');
        if (!equals || equals == line || json_object_size(report) > 64)
            continue;
        *equals = '\0';
        json_object_set_new(report, line, json_string(equals + 1));
    }
    return report;
}

/* A task of an array is called ARRAY_TASK everywhere (agent/sched/slurm.c says why). */
static void name_array_task(json_t *report)
{
    const char *array = json_get_string(report, "array_job", "");
    const char *task = json_get_string(report, "array_task", "");
    char job[64];

    if (!*array || !*task)
        return;
    snprintf(job, sizeof(job), "%s_%s", array, task);
    json_object_set_new(report, "job", json_string(job));
}

static void forward(struct reports *reports, char *text)
{
    json_t *report = parse(text), *reply = NULL;
    struct oom_error err = {""};

    name_array_task(report);
    if (*reports->config->cluster)
        json_object_set_new(report, "cluster", json_string(reports->config->cluster));
    int status = api_call(reports->head, "POST", "/v1/reports", report, &reply, &err);
    if (status != 200)
        log_line(LOG_WARNING, "a report of the plugin was not taken: %s", err.text);
    if (strcmp(json_get_string(report, "event", ""), "task_exit") == 0 &&
        strcmp(json_get_string(report, "step", ""), "batch") == 0 &&
        strcmp(json_get_string(report, "opted", ""), "1") == 0)
        lost_check_job(reports->config, json_get_string(report, "job", ""),
                       (struct lost_end){
                           .status = atoi(json_get_string(report, "status", "0")) & 0xffff,
                           .restart = atoi(json_get_string(report, "restart", "-1")),
                           .unbegun = strcmp(json_get_string(report, "begun", ""), "0") == 0,
                       });
    json_decref(report);
    json_decref(reply);
}

static void on_datagram(evutil_socket_t fd, short what, void *arg)
{
    struct reports *reports = arg;

    (void)what;
    for (int i = 0; i < 64; i++) {
        char text[REPORT_MAX_BYTES + 1];
        union {
            struct cmsghdr align;
            char bytes[CMSG_SPACE(sizeof(struct ucred))];
        } control;
        struct iovec iov = {text, REPORT_MAX_BYTES};
        struct msghdr message = {.msg_iov = &iov,
                                 .msg_iovlen = 1,
                                 .msg_control = control.bytes,
                                 .msg_controllen = sizeof(control.bytes)};
        ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT);
        if (n < 0)
            return;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        struct ucred sender = {.uid = (uid_t)-1};
        if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_CREDENTIALS)
            memcpy(&sender, CMSG_DATA(header), sizeof(sender));
        if (sender.uid != 0 && sender.uid != geteuid()) {
            log_line(LOG_WARNING, "a report from uid %u was dropped", (unsigned)sender.uid);
            continue;
        }
        text[n] = '\0';
        forward(reports, text);
    }
}

struct reports *reports_open(struct event_base *base, int datagram_fd, struct api *head,
                             const struct config *config, struct oom_error *err)
{
    struct reports *reports = calloc(1, sizeof(*reports));

    if (!reports) {
        oom_errorf(err, "out of memory");
        return NULL;
    }
    reports->fd = datagram_fd;
    reports->head = head;
    reports->config = config;
    reports->event = event_new(base, datagram_fd, EV_READ | EV_PERSIST, on_datagram, reports);
    if (reports->event && event_add(reports->event, NULL) == 0)
        return reports;
    reports_close(reports);
    oom_errorf(err, "cannot watch the node's socket");
    return NULL;
}

void reports_close(struct reports *reports)
{
    if (!reports)
        return;
    if (reports->event)
        event_free(reports->event);
    free(reports);
}
