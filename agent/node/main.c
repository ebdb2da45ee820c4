/* SPDX-License-Identifier: Apache-2.0 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/lib/log.h"
#include "agent/lib/standard_fds.h"
#include "agent/node/evidence.h"
#include "agent/node/node.h"
#include "agent/node/ray_watch.h"

enum { KEY_CONFIG = 'c', KEY_VERBOSE = 'v', KEY_VERSION = 256, KEY_CHILD, KEY_FD };
enum { TICK_MS = 1000, LOST_EVERY_TICKS = 5, HEAD_CALL_MS = 2000 };

static const struct argp_option option_table[] = {
    {"config", KEY_CONFIG, "FILE", 0, "the configuration (default: " CONFIG_PATH ")", 0},
    {"verbose", KEY_VERBOSE, NULL, 0, "log more", 0},
    {"version", KEY_VERSION, NULL, 0, "print the version", 0},
    {"child", KEY_CHILD, "ROLE", OPTION_HIDDEN, "a role of its own process: head, ray or port", 0},
    {"fd", KEY_FD, "N", OPTION_HIDDEN, "that role's socket", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

struct options {
    const char *config;
    const char *child; /* NULL: the parent of all roles */
    int fd;
    bool verbose;
};

struct agent {
    struct options options;
    struct config config;
    struct event_base *base;
    int head_fd, node_fd;
    int port_fds[2];         /* ours, and the port's */
    pid_t head_pid;          /* 0: not running */
    pid_t ray_pid, port_pid; /* likewise */
    pid_t lost_pid;          /* the comparison with the scheduler that is under way; 0: none */
    bool lost_blind;         /* the last one could not be made */
    unsigned ticks;
    struct api *head;
    struct reports *reports;
    struct evidence_root *evidence;
    struct event *timer, *child, *term, *interrupt;
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;

    switch (key) {
    case KEY_CONFIG:
        options->config = arg;
        return 0;
    case KEY_VERBOSE:
        options->verbose = true;
        log_set_level(LOG_DEBUGGING);
        return 0;
    case KEY_VERSION:
        printf("oomagent (oomretry) %s\n", OOMRETRY_VERSION);
        exit(0);
    case KEY_CHILD:
        options->child = arg;
        return 0;
    case KEY_FD:
        options->fd = atoi(arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static bool has_role(const struct agent *agent, const char *role)
{
    return strcmp(agent->config.role, "both") == 0 || strcmp(agent->config.role, role) == 0;
}

/* A role of its own process, as the head's user. It executes this program anew, so that nothing of
 * the parent's memory, descriptors and event loop goes along. Returns its process, 0 when it did
 * not start. */
static pid_t start_role(const struct agent *agent, const char *role, int role_fd)
{
    struct oom_error err = {""};
    pid_t parent = getpid(), pid = fork();
    char fd[16];
    sigset_t none;

    if (pid < 0)
        log_line(LOG_ERROR, "cannot start the role %s: %s", role, strerror(errno));
    if (pid != 0)
        return pid > 0 ? pid : 0;
    snprintf(fd, sizeof(fd), "%d", role_fd);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (role_fd >= 0)
        fcntl(role_fd, F_SETFD, 0);
    if (drop_to_user(agent->config.head_user, &err) < 0) {
        log_line(LOG_ERROR, "%s", err.text);
        _exit(1);
    }
    /* After the change of identity, which clears it; exec keeps it. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    const char *argv[10] = {"oomagent", "--child", role, "--fd", fd};
    int n = 5;
    if (agent->options.config) {
        argv[n++] = "--config";
        argv[n++] = agent->options.config;
    }
    if (agent->options.verbose)
        argv[n++] = "--verbose";
    execv("/proc/self/exe", (char *const *)argv);
    log_line(LOG_ERROR, "cannot execute myself for the role %s: %s", role, strerror(errno));
    _exit(1);
}

static void start_roles(struct agent *agent)
{
    bool head = has_role(agent, "head");

    if (head && agent->head_pid == 0)
        agent->head_pid = start_role(agent, "head", agent->head_fd);
    if (head && agent->ray_pid == 0 && agent->config.ray_cluster_count > 0)
        agent->ray_pid = start_role(agent, "ray", -1);
    if (agent->evidence && agent->port_pid == 0)
        agent->port_pid = start_role(agent, "port", agent->port_fds[1]);
}

static void on_child(evutil_socket_t fd, short what, void *arg)
{
    struct agent *agent = arg;
    int status;
    pid_t pid;

    (void)fd;
    (void)what;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == agent->lost_pid) {
            agent->lost_pid = 0;
            agent->lost_blind = WIFEXITED(status) && WEXITSTATUS(status) == LOST_BLIND;
        }
        if (pid == agent->head_pid) {
            log_line(LOG_ERROR, "the head ended (status %d) and is started again", status);
            agent->head_pid = 0;
        }
        if (pid == agent->ray_pid) {
            log_line(LOG_ERROR, "the Ray watcher ended (status %d) and is started again", status);
            agent->ray_pid = 0;
        }
        if (pid == agent->port_pid) {
            log_line(LOG_ERROR, "the node's port ended (status %d) and is started again", status);
            agent->port_pid = 0;
        }
        evidence_root_reaped(agent->evidence, pid);
    }
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct agent *agent = arg;

    (void)fd;
    (void)what;
    start_roles(agent);
    if (has_role(agent, "node") && agent->lost_pid == 0 && ++agent->ticks % LOST_EVERY_TICKS == 0)
        agent->lost_pid = lost_check_all(&agent->config, agent->lost_blind);
}

static void on_term(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    event_base_loopbreak(arg);
}

static int open_sockets(struct agent *agent, struct oom_error *err)
{
    if (has_role(agent, "head")) {
        if (database_prepare(&agent->config, err) < 0)
            return -1;
        agent->head_fd = socket_listen_stream(agent->config.head_socket, 0666, err);
        if (agent->head_fd < 0)
            return -1;
    }
    if (has_role(agent, "node")) {
        agent->node_fd = socket_bind_datagram(agent->config.node_socket, 0600, err);
        if (agent->node_fd < 0 || late_directory(&agent->config, err) < 0 ||
            lost_open(&agent->config, err) < 0)
            return -1;
    }
    return 0;
}

static int open_port(struct agent *agent, struct oom_error *err)
{
    if (!has_role(agent, "node") || !agent->config.node_listen)
        return 0;
    if (geteuid() == 0 && !*agent->config.head_user)
        return oom_errorf(err, "node_listen needs head_user: what comes from the network is read "
                               "by that user, not by root");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, agent->port_fds) < 0)
        return oom_errorf(err, "cannot make a socket: %s", strerror(errno));
    agent->evidence = evidence_root_open(agent->base, agent->port_fds[0], &agent->config, err);
    return agent->evidence ? 0 : -1;
}

static int open_loop(struct agent *agent, struct oom_error *err)
{
    struct timeval every = {TICK_MS / 1000, (TICK_MS % 1000) * 1000};
    bool local = has_role(agent, "head");

    agent->base = event_base_new();
    agent->child = agent->base ? evsignal_new(agent->base, SIGCHLD, on_child, agent) : NULL;
    agent->term = agent->base ? evsignal_new(agent->base, SIGTERM, on_term, agent->base) : NULL;
    agent->interrupt = agent->base ? evsignal_new(agent->base, SIGINT, on_term, agent->base) : NULL;
    agent->timer = agent->base ? event_new(agent->base, -1, EV_PERSIST, on_timer, agent) : NULL;
    if (!agent->child || !agent->term || !agent->interrupt || !agent->timer ||
        event_add(agent->child, NULL) < 0 || event_add(agent->term, NULL) < 0 ||
        event_add(agent->interrupt, NULL) < 0 || event_add(agent->timer, &every) < 0)
        return oom_errorf(err, "cannot make an event loop");
    if (open_port(agent, err) < 0)
        return -1;
    if (!local && !agent->config.head_url)
        return oom_errorf(err, "role node needs head_url: where is the head?");
    agent->head = api_open_head(local ? agent->config.head_socket : agent->config.head_url,
                                agent->config.head_user, HEAD_CALL_MS, err);
    if (!agent->head)
        return -1;
    if (agent->node_fd < 0)
        return 0;
    agent->reports = reports_open(agent->base, agent->node_fd, agent->head, &agent->config, err);
    return agent->reports ? 0 : -1;
}

static void close_all(struct agent *agent)
{
    const pid_t roles[] = {agent->ray_pid, agent->port_pid, agent->head_pid};
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
        if (roles[i] > 0) {
            kill(roles[i], SIGTERM);
            waitpid(roles[i], NULL, 0);
        }
    struct event *events[] = {agent->timer, agent->child, agent->term, agent->interrupt};
    reports_close(agent->reports);
    evidence_root_close(agent->evidence);
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        if (events[i])
            event_free(events[i]);
    if (agent->base)
        event_base_free(agent->base);
    api_close(agent->head);
    if (agent->head_fd >= 0)
        unlink(agent->config.head_socket);
    if (agent->node_fd >= 0)
        unlink(agent->config.node_socket);
    for (size_t i = 0; i < 2; i++)
        if (agent->port_fds[i] >= 0)
            close(agent->port_fds[i]);
    config_free(&agent->config);
}

static int run_child(struct agent *agent)
{
    const char *role = agent->options.child;
    int status = strcmp(role, "head") == 0   ? head_run(&agent->config, agent->options.fd)
                 : strcmp(role, "port") == 0 ? evidence_port_run(&agent->config, agent->options.fd)
                                             : ray_watch_run(&agent->config);

    config_free(&agent->config);
    return status;
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        option_table, parse_option, NULL, "The agent of oomretry: node and head role.",
        NULL,         NULL,         NULL};
    struct agent agent = {.head_fd = -1, .node_fd = -1, .port_fds = {-1, -1}, .options.fd = -1};
    struct oom_error err = {""};
    int status = 1;

    standard_fds_open();
    if (argp_parse(&argp, argc, argv, 0, NULL, &agent.options) != 0)
        return 2;
    if (config_load(agent.options.config, &agent.config, &err) < 0) {
        log_line(LOG_ERROR, "%s", err.text);
        return 2;
    }
    /* For oomrun as an owner, which asks the same head. */
    if (agent.options.config)
        setenv("OOMRETRY_CONFIG", agent.options.config, 1);
    signal(SIGPIPE, SIG_IGN);
    if (agent.options.child)
        return run_child(&agent);
    if (open_sockets(&agent, &err) == 0 && open_loop(&agent, &err) == 0) {
        start_roles(&agent);
        log_line(LOG_NOTICE, "oomretry %s, role %s", OOMRETRY_VERSION, agent.config.role);
        event_base_dispatch(agent.base);
        log_line(LOG_NOTICE, "ending");
        status = 0;
    } else {
        log_line(LOG_ERROR, "%s", err.text);
    }
    close_all(&agent);
    return status;
}
