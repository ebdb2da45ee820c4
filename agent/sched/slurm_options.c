/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sched/slurm_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lib/child.h"
#include "agent/sched/slurm_fields.h"

enum { CALL_MS = 10000, MAX_OPTIONS = 48 };

/* Fields of scontrol's job record and the options that set them. A value that means "not set" is
 * left out; the post-allocation values of nodes and CPUs are those that the job ran with, which is
 * what its script expects. */
static const struct field {
    const char *field, *option, *absent;
} fields[] = {
    {"JobName", "job-name", NULL},
    {"Account", "account", "(null)"},
    {"QOS", "qos", "(null)"},
    {"Partition", "partition", "(null)"},
    {"TimeLimit", "time", "UNLIMITED"},
    {"Reservation", "reservation", "(null)"},
    {"Features", "constraint", "(null)"},
    {"Licenses", "licenses", "(null)"},
    {"CPUs/Task", "cpus-per-task", "N/A"},
    {"NumTasks", "ntasks", "N/A"},
    {"ExcNodeList", "exclude", "(null)"},
    {"TresPerNode", "gres", "(null)"},
    {"WCKey", "wckey", "(null)"},
    {"MailUser", "mail-user", "(null)"},
    {"MailType", "mail-type", "NONE"},
    {"Nice", "nice", "0"},
    {"StdIn", "input", "/dev/null"},
    {"StdOut", "output", NULL},
    {"StdErr", "error", NULL},
};

int slurm_options_add(struct slurm_options *out, const char *option, const char *value)
{
    char text[4200];

    if (out->count >= MAX_OPTIONS)
        return -1;
    snprintf(text, sizeof(text), value ? "--%s=%s" : "--%s", option, value);
    out->items[out->count] = strdup(text);
    return out->items[out->count] ? (out->count++, 0) : -1;
}

static const char *edit_of(const struct oom_edits *resources, const char *knob)
{
    for (size_t i = 0; resources && i < resources->count; i++)
        if (strcmp(resources->items[i].knob, knob) == 0)
            return resources->items[i].new_value;
    return NULL;
}

/* Memory comes per node or per CPU. */
static int add_memory(struct slurm_options *out, const char *text,
                      const struct oom_edits *resources)
{
    char word[128], mib[160];
    const char *changed = edit_of(resources, "slurm:mem");

    if (changed) {
        snprintf(mib, sizeof(mib), "%sM", changed);
        return slurm_options_add(out, "mem", mib);
    }
    if (slurm_field(text, "MinMemoryCPU", word, sizeof(word)))
        return slurm_options_add(out, "mem-per-cpu", word);
    if (slurm_field(text, "MinMemoryNode", word, sizeof(word)) && strcmp(word, "0") != 0)
        return slurm_options_add(out, "mem", word);
    return 0;
}

/* "1-1" and "4" are how NumNodes looks. */
static int add_nodes(struct slurm_options *out, const char *text)
{
    char word[64];

    if (!slurm_field(text, "NumNodes", word, sizeof(word)))
        return 0;
    return slurm_options_add(out, "nodes", word);
}

static int add_array(struct slurm_options *out, const char *text)
{
    char word[64];

    /* Only the one task that failed. */
    if (!slurm_field(text, "ArrayTaskId", word, sizeof(word)) ||
        strspn(word, "0123456789") != strlen(word))
        return 0;
    return slurm_options_add(out, "array", word);
}

/* The output of the old job is named with its id already put in: a new one would overwrite it. */
static const char *keep_output(const char *value, const char *job)
{
    return strstr(value, job) ? NULL : value;
}

int slurm_options_from_text(const char *text, const struct oom_edits *resources, const char *mark,
                            struct slurm_options *out, struct oom_error *err)
{
    char value[4096], comment[4300], job[64] = "";

    out->items = calloc(MAX_OPTIONS + 1, sizeof(char *));
    out->count = 0;
    if (!out->items)
        return oom_errorf(err, "out of memory");
    slurm_field(text, "JobId", job, sizeof(job));
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (!slurm_field(text, fields[i].field, value, sizeof(value)) || !*value ||
            (fields[i].absent && strcmp(value, fields[i].absent) == 0))
            continue;
        const char *kept = strncmp(fields[i].field, "Std", 3) == 0 && fields[i].absent == NULL
                               ? keep_output(value, job)
                               : value;
        if (!kept)
            continue;
        /* TresPerNode reads "gres:gpu:2"; the option wants "gpu:2". */
        if (strcmp(fields[i].option, "gres") == 0)
            kept = strncmp(kept, "gres:", 5) == 0 ? kept + 5 : kept;
        rc = slurm_options_add(out, fields[i].option, kept);
    }
    if (rc == 0)
        rc = add_nodes(out, text);
    if (rc == 0)
        rc = add_memory(out, text, resources);
    if (rc == 0)
        rc = add_array(out, text);
    if (rc == 0 && slurm_field(text, "Requeue", value, sizeof(value)))
        rc = slurm_options_add(out, value[0] == '1' ? "requeue" : "no-requeue", NULL);
    if (rc == 0) {
        bool has =
            slurm_field(text, "Comment", value, sizeof(value)) && strcmp(value, "(null)") != 0;
        char *old_mark = has ? strstr(value, "oomretry:L") : NULL;
        if (old_mark)
            *old_mark = '\0';
        snprintf(comment, sizeof(comment), "%s%s%s", has ? value : "",
                 has && *value && !old_mark ? " " : "", mark);
        rc = slurm_options_add(out, "comment", comment);
    }
    if (rc == 0)
        rc = slurm_options_add(out, "open-mode", "append");
    if (rc == 0)
        return 0;
    slurm_options_free(out);
    return oom_errorf(err, "the options of job %s cannot be listed", job);
}

int slurm_options_of(const char *job, const struct oom_edits *resources, const char *mark,
                     struct slurm_options *out, struct oom_error *err)
{
    const char *show[] = {"scontrol", "-o", "show", "job", job, NULL};
    char *text = NULL;

    *out = (struct slurm_options){NULL, 0};
    if (child_expect(show, CALL_MS, &text, err) < 0)
        return -1;
    int rc = slurm_options_from_text(text, resources, mark, out, err);
    free(text);
    return rc;
}

void slurm_options_free(struct slurm_options *options)
{
    for (size_t i = 0; i < options->count; i++)
        free(options->items[i]);
    free(options->items);
    *options = (struct slurm_options){NULL, 0};
}
