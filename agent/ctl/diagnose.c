/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl diagnose: what ran out, where and in which phase, from logs and exit data. Exit status 0
 * out of memory, 1 not, 2 usage or unreadable input. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/ctl/common.h"
#include "agent/ctl/ctl.h"
#include "agent/ctl/diagnose_job.h"
#include "agent/ctl/diagnose_text.h"
#include "agent/evidence/diagnose.h"
#include "agent/evidence/sigset.h"

#define MAX_LOGS 4096

struct arguments {
    struct ctl_common common;
    bool explain;
    bool windows;
    bool whole;
    const char *job;
    struct oom_exit exit;
    const char **logs;
    size_t log_count;
};

enum {
    KEY_EXPLAIN = 256,
    KEY_WINDOWS,
    KEY_WHOLE,
    KEY_EXIT,
    KEY_SIGNAL,
    KEY_STATE,
    KEY_DERIVED,
    KEY_KILLS,
    KEY_JOB
};

static const struct argp_option options[] = {
    {"explain", KEY_EXPLAIN, NULL, 0, "show every signature that matched and what became of it", 0},
    {"windows", KEY_WINDOWS, NULL, 0, "with --json: add the lines around what mattered", 0},
    {"whole", KEY_WHOLE, NULL, 0, "read long logs as a whole even when their end decides", 0},
    {"exit-code", KEY_EXIT, "N", 0, "how the attempt ended", 0},
    {"signal", KEY_SIGNAL, "N", 0, "the signal that ended it, 0 for none", 0},
    {"state", KEY_STATE, "S", 0, "the scheduler's word, such as OUT_OF_MEMORY", 0},
    {"derived-exit-code", KEY_DERIVED, "N", 0, "Slurm's highest exit code of a step", 0},
    {"oom-kills", KEY_KILLS, "N", 0, "kills for memory that the job's cgroups counted", 0},
    {"job", KEY_JOB, "ID", 0, "read the output files of a Slurm job", 0},
    {0},
};

static long number(struct argp_state *state, const char *text, const char *option, long high)
{
    char *end;

    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < 0 || value > high)
        argp_error(state, "--%s needs a number from 0 to %ld, not \"%s\"", option, high, text);
    return value;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct arguments *a = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->common;
        break;
    case KEY_EXPLAIN:
        a->explain = true;
        a->whole = true; /* every signature that matched */
        break;
    case KEY_WINDOWS:
        a->windows = true;
        break;
    case KEY_WHOLE:
        a->whole = true;
        break;
    case KEY_EXIT:
        a->exit.exit_code = (int)number(state, arg, "exit-code", 255);
        break;
    case KEY_SIGNAL:
        a->exit.signal = (int)number(state, arg, "signal", 64);
        break;
    case KEY_DERIVED:
        a->exit.derived_exit_code = (int)number(state, arg, "derived-exit-code", 65535);
        break;
    case KEY_KILLS:
        a->exit.cgroup_oom_kills = number(state, arg, "oom-kills", LONG_MAX);
        break;
    case KEY_STATE:
        if (strlen(arg) >= sizeof(a->exit.state))
            argp_error(state, "--state \"%s\" is no state of a scheduler", arg);
        else
            strcpy(a->exit.state, arg);
        break;
    case KEY_JOB:
        a->job = arg;
        break;
    case ARGP_KEY_ARG:
        if (a->log_count == MAX_LOGS)
            argp_error(state, "more than %d logs", MAX_LOGS);
        else
            a->logs[a->log_count++] = arg;
        break;
    case ARGP_KEY_END:
        if (a->log_count == 0 && !a->job) {
            if (isatty(STDIN_FILENO))
                argp_error(state, "no log: name the job's output files, or - for standard input");
            a->logs[a->log_count++] = "-";
        }
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* --- the verb --------------------------------------------------------------------------------- */

static int print_json(const struct arguments *a, struct oom_classifier *classifier,
                      const struct oom_incident *incident, struct oom_error *err)
{
    json_t *json = oom_incident_to_json(incident);
    int rc = json ? 0 : -1;

    if (!rc && a->explain)
        rc = json_object_set_new(json, "explain", oom_classifier_explain(classifier));
    if (!rc && a->windows)
        rc = json_object_set_new(json, "windows", oom_classifier_windows(classifier));
    if (!rc)
        ctl_print_json(json);
    json_decref(json);
    return rc ? oom_errorf(err, "out of memory") : 0;
}

static int run(const struct arguments *a, struct oom_error *err)
{
    struct oom_signatures *set = sigset_load(err);
    struct oom_classifier *classifier = NULL;
    struct oom_incident incident;
    int status = 2;

    oom_incident_init(&incident);
    int rc = set ? diagnose_logs(set, a->logs, a->log_count, &a->exit, a->whole, &incident,
                                 &classifier, err)
                 : -1;
    if (!rc && a->common.json)
        rc = print_json(a, classifier, &incident, err);
    else if (!rc)
        rc = diagnose_print(classifier, &incident, a->explain, err);
    if (!rc)
        status = incident.oom ? 0 : 1;
    oom_incident_free(&incident);
    oom_classifier_free(classifier);
    oom_signatures_free(set);
    return status;
}

/* Behind the logs that are named. */
static int take_job(struct arguments *a, struct job_files *files, struct oom_error *err)
{
    if (diagnose_job(a->job, &a->exit, files, err))
        return -1;
    for (size_t i = 0; i < files->count && a->log_count < MAX_LOGS; i++)
        a->logs[a->log_count++] = files->paths[i];
    return 0;
}

int ctl_diagnose(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "[LOG...]",
        .doc =
            "Says whether a job ran out of memory: whose memory, in which phase, and which "
            "line of the logs decides.\vLogs may be plain, gzip, zstd or xz; - is standard "
            "input, which is also read when no LOG is named. The parts of a rotated log are read "
            "as one, in whatever order they are named. Exit status: 0 out of memory, "
            "1 not, 2 usage or unreadable input.",
        .children = ctl_json_option,
    };
    struct arguments a = {0};
    struct oom_error err = {""};
    struct job_files files = {NULL, 0};
    int status = 2;

    oom_exit_init(&a.exit);
    a.logs = calloc(MAX_LOGS, sizeof(*a.logs));
    if (a.logs && argp_parse(&argp, argc, argv, 0, NULL, &a) == 0 &&
        (!a.job || take_job(&a, &files, &err) == 0))
        status = run(&a, &err);
    if (status == 2)
        fprintf(stderr, "oomctl diagnose: %s\n", err.text[0] ? err.text : "out of memory");
    diagnose_job_files_free(&files);
    free(a.logs);
    return status;
}
