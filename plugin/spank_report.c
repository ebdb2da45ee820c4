/* SPDX-License-Identifier: Apache-2.0
 *
 * Datagrams to the node's agent; the format is in report.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "report.h"
#include "spank_plugin.h"

struct report {
    char text[REPORT_MAX_BYTES];
    size_t used;
};

static void add(struct report *report, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(struct report *report, const char *fmt, ...)
{
    size_t left = sizeof(report->text) - report->used;
    va_list args;
    int length;

    va_start(args, fmt);
    length = vsnprintf(report->text + report->used, left, fmt, args);
    va_end(args);
    /* A line that does not fit is left out whole. */
    if (length > 0 && (size_t)length < left)
        report->used += (size_t)length;
}

/* A value from the job's environment, which the user may have written. */
static void add_variable(spank_t sp, struct report *report, const char *key, const char *variable)
{
    char value[128];

    if (spank_getenv(sp, variable, value, sizeof(value)) != ESPANK_SUCCESS || !value[0])
        return;
    for (const char *c = value; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            return;
    add(report, "%s=%s\n", key, value);
}

static void begin(spank_t sp, struct report *report, const char *event)
{
    uint32_t job = 0, array_job = 0, array_task = NO_VAL;
    uid_t uid = (uid_t)-1;
    gid_t gid = (gid_t)-1;

    report->used = 0;
    add(report, "version=%d\nevent=%s\n", REPORT_VERSION, event);
    if (spank_get_item(sp, S_JOB_ID, &job) == ESPANK_SUCCESS)
        add(report, "job=%u\n", job);
    /* Outside an array the array id is the job's own or 0; the task id tells. */
    if (spank_get_item(sp, S_JOB_ARRAY_ID, &array_job) == ESPANK_SUCCESS &&
        spank_get_item(sp, S_JOB_ARRAY_TASK_ID, &array_task) == ESPANK_SUCCESS &&
        array_task != NO_VAL)
        add(report, "array_job=%u\narray_task=%u\n", array_job, array_task);
    add_variable(sp, report, "het_job", "SLURM_HET_JOB_ID");
    add_variable(sp, report, "het_offset", "SLURM_HET_JOB_OFFSET");
    if (spank_get_item(sp, S_JOB_UID, &uid) == ESPANK_SUCCESS)
        add(report, "uid=%u\n", (unsigned)uid);
    if (spank_get_item(sp, S_JOB_GID, &gid) == ESPANK_SUCCESS)
        add(report, "gid=%u\n", (unsigned)gid);
    add_variable(sp, report, "node", "SLURMD_NODENAME");
    add_variable(sp, report, "cluster", "SLURM_CLUSTER_NAME");
    add(report, "opted=%d\ntime=%lld\n", plugin_state.opted_in ? 1 : 0, (long long)time(NULL));
}

/* Not delivered is not an error: see report.h. */
static void send_now(const struct report *report)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return;
    strcpy(address.sun_path, plugin_state.site.socket);
    (void)sendto(fd, report->text, report->used, MSG_NOSIGNAL | MSG_DONTWAIT,
                 (const struct sockaddr *)&address, sizeof(address));
    close(fd);
}

void report_batch_start(spank_t sp, const char *script, off_t script_bytes)
{
    struct report report;

    begin(sp, &report, "batch_start");
    add(&report, "script=%s\nscript_bytes=%lld\n", script, (long long)script_bytes);
    send_now(&report);
}

static void add_step(struct report *report, uint32_t step)
{
    if (step == SLURM_BATCH_SCRIPT)
        add(report, "step=batch\n");
    else if (step == SLURM_EXTERN_CONT)
        add(report, "step=extern\n");
    else if (step == SLURM_INTERACTIVE_STEP)
        add(report, "step=interactive\n");
    else
        add(report, "step=%u\n", step);
}

static void add_count(struct report *report, const char *key, int64_t count)
{
    if (count >= 0)
        add(report, "%s=%" PRId64 "\n", key, count);
}

/* In the batch step of 22.05 the item is always 0; there the variable tells, which Slurm sets when
 * it executes the task. */
static uint32_t restart_count(spank_t sp)
{
    uint32_t count = 0;
    char text[16];

    if (spank_get_item(sp, S_SLURM_RESTART_COUNT, &count) == ESPANK_SUCCESS && count > 0)
        return count;
    if (spank_getenv(sp, "SLURM_RESTART_COUNT", text, sizeof(text)) == ESPANK_SUCCESS)
        count = (uint32_t)strtoul(text, NULL, 10);
    return count;
}

void report_task_exit(spank_t sp, const struct cgroup *cgroup)
{
    struct cgroup_counters counters;
    struct report report;
    uint32_t step = 0, task = 0;
    int status = 0;

    begin(sp, &report, "task_exit");
    add(&report, "restart=%u\n", restart_count(sp));
    if (spank_get_item(sp, S_JOB_STEPID, &step) == ESPANK_SUCCESS)
        add_step(&report, step);
    if (spank_get_item(sp, S_TASK_GLOBAL_ID, &task) == ESPANK_SUCCESS)
        add(&report, "task=%u\n", task);
    if (spank_get_item(sp, S_TASK_EXIT_STATUS, &status) == ESPANK_SUCCESS)
        add(&report, "status=%d\n", status);
    cgroup_read(cgroup, &counters);
    add_count(&report, "oom_kill", counters.oom_kill);
    add_count(&report, "peak_bytes", counters.peak_bytes);
    add_count(&report, "limit_bytes", counters.limit_bytes);
    if (step == SLURM_BATCH_SCRIPT && (plugin_state.script[0] || plugin_state.script_gone))
        add(&report, "begun=%d\n",
            plugin_state.script_gone ||
                    script_begins_with(plugin_state.script, plugin_state.launcher_line)
                ? 0
                : 1);
    send_now(&report);
}
