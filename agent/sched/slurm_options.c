/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sched/slurm_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lib/child.h"
#include "agent/sched/slurm_components.h"
#include "agent/sched/slurm_fields.h"
#include "agent/sched/slurm_memory.h"
#include "agent/sched/slurm_submitted.h"

enum { CALL_MS = 10000, MAX_OPTIONS = 512 };

/* Fields of scontrol's job record and the options that set them. A value that means "not set" is
 * left out. Of nodes, CPUs and the like the record tells what was allocated; that is what the
 * script expects, but it is used only where nobody knows what was asked for. */
static const struct field {
    const char *field, *option, *absent;
    bool allocated;
} fields[] = {
    {"JobName", "job-name", NULL, false},
    {"Account", "account", "(null)", false},
    {"QOS", "qos", "(null)", false},
    {"Partition", "partition", "(null)", false},
    {"TimeLimit", "time", "UNLIMITED", false},
    {"Reservation", "reservation", "(null)", false},
    {"Features", "constraint", "(null)", true},
    {"Licenses", "licenses", "(null)", true},
    {"CPUs/Task", "cpus-per-task", "N/A", true},
    {"NumTasks", "ntasks", "N/A", true},
    {"ReqNodeList", "nodelist", "(null)", true},
    {"TresPerNode", "gres", "(null)", true},
    {"WCKey", "wckey", "(null)", false},
    {"MailUser", "mail-user", "(null)", false},
    {"MailType", "mail-type", "NONE", false},
    {"Nice", "nice", "0", false},
    {"Deadline", "deadline", "N/A", false},
    {"NumNodes", "nodes", NULL, true},
    {"TresPerJob", "gpus", "(null)", true},
    {"TresPerTask", "gpus-per-task", "(null)", true},
    {"TresPerSocket", "gpus-per-socket", "(null)", true},
};

static int add_word(struct slurm_options *out, const char *word)
{
    if (!out->items)
        out->items = calloc(MAX_OPTIONS + 1, sizeof(char *));
    if (!out->items || out->count >= MAX_OPTIONS)
        return -1;
    out->items[out->count] = strdup(word);
    return out->items[out->count] ? (out->count++, 0) : -1;
}

int slurm_options_add(struct slurm_options *out, const char *option, const char *value)
{
    char text[4200];

    snprintf(text, sizeof(text), value ? "--%s=%s" : "--%s", option, value);
    return add_word(out, text);
}

/* 1: that is the field's value; 0: it is not there; -1: it is too long, and a part of it, as of a
 * list of nodes, would mean something else. */
static int read_field(const char *text, const char *key, char *out, size_t size)
{
    if (!slurm_field(text, key, out, size))
        return 0;
    return strlen(out) + 1 < size ? 1 : -1;
}

/* An edit names all nodes that are excluded, those of the job itself among them. */
static int add_excluded(struct slurm_options *out, const char *text,
                        const struct oom_edits *resources)
{
    const struct oom_edit *changed = slurm_edit_of(resources, "slurm:exclude");
    char word[4096];

    if (changed)
        return slurm_options_add(out, "exclude", changed->new_value);
    int rc = read_field(text, "ExcNodeList", word, sizeof(word));
    if (rc <= 0 || strcmp(word, "(null)") == 0)
        return rc < 0 ? -1 : 0;
    return slurm_options_add(out, "exclude", word);
}

static int add_memory(struct slurm_options *out, const char *text,
                      const struct oom_edits *resources)
{
    const struct slurm_memory *wanted = NULL, *has;
    const struct oom_edit *changed = slurm_memory_edit(resources, &wanted);
    int64_t mib = -1;
    char value[32];

    if (changed && (slurm_is_heterogeneous(text) ? slurm_component_is_meant(text, changed)
                                                 : !slurm_memory_suffices(text, wanted, changed))) {
        snprintf(value, sizeof(value), "%sM", changed->new_value);
        return slurm_options_add(out, wanted->option, value);
    }
    has = slurm_memory_of(text, &mib);
    if (!has)
        return slurm_memory_is_all(text) ? slurm_options_add(out, "mem", "0") : 0;
    snprintf(value, sizeof(value), "%lldM", (long long)mib);
    return slurm_options_add(out, has->option, value);
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

static bool starts_number(const char *at, const char *begin, const char *number)
{
    size_t length = strlen(number);

    return length > 0 && strncmp(at, number, length) == 0 &&
           (at[length] < '0' || at[length] > '9') && (at == begin || at[-1] < '0' || at[-1] > '9');
}

/* The record names the files of the old job, with its ids put in; sbatch wants the pattern, so that
 * the new job has files of its own. Only the file's name: a directory was there before the job was,
 * and the same digits in it mean something else. -1 when it does not fit. */
static int file_pattern(const char *path, const char *text, char *out, size_t size)
{
    char job[32] = "", array[64] = "", task[32] = "";
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t used = 0;

    slurm_field(text, "JobId", job, sizeof(job));
    if (slurm_field(text, "ArrayJobId", array, 32) &&
        slurm_field(text, "ArrayTaskId", task, sizeof(task)))
        snprintf(array + strlen(array), sizeof(array) - strlen(array), "_%s", task);
    else
        array[0] = '\0';
    for (const char *p = path; *p;) {
        const char *piece = NULL;
        size_t taken = 1;

        if (p >= name && starts_number(p, name, array)) {
            piece = "%A_%a";
            taken = strlen(array);
        } else if (p >= name && starts_number(p, name, job)) {
            piece = "%j";
            taken = strlen(job);
        } else if (*p == '%') {
            piece = "%%";
        }
        size_t length = piece ? strlen(piece) : 1;
        if (used + length + 1 > size)
            return -1;
        memcpy(out + used, piece ? piece : p, length);
        used += length;
        p += taken;
    }
    out[used] = '\0';
    return 0;
}

/* Standard error that goes where the output goes is not named twice. */
static int add_files(struct slurm_options *out, const char *text)
{
    static const struct {
        const char *field, *option;
    } files[] = {{"StdIn", "input"}, {"StdOut", "output"}, {"StdErr", "error"}};
    char path[4096], pattern[4096], output[4096] = "";

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        int rc = read_field(text, files[i].field, path, sizeof(path));
        if (rc == 0 || path[0] != '/' || strcmp(path, "/dev/null") == 0 ||
            strcmp(path, output) == 0)
            continue;
        if (rc < 0 || file_pattern(path, text, pattern, sizeof(pattern)) < 0 ||
            slurm_options_add(out, files[i].option, pattern) < 0)
            return -1;
        if (strcmp(files[i].field, "StdOut") == 0)
            strcpy(output, path);
    }
    return 0;
}

static int add_field(struct slurm_options *out, const char *text, const struct field *field)
{
    char value[4096];
    const char *kept = value;
    int rc = read_field(text, field->field, value, sizeof(value));

    if (rc <= 0)
        return rc;
    if (!*value || (field->absent && strcmp(value, field->absent) == 0))
        return 0;
    /* Only operators may give a job an advantage; sbatch refuses it from its owner. */
    if (strcmp(field->option, "nice") == 0 && value[0] == '-')
        return 0;
    /* TresPerNode reads "gres:gpu:2"; the option wants "gpu:2". */
    if (strcmp(field->option, "gres") == 0)
        kept = strncmp(kept, "gres:", 5) == 0 ? kept + 5 : kept;
    else if (strncmp(field->option, "gpus", 4) == 0)
        kept = slurm_of_gpus(kept);
    return slurm_options_add(out, field->option, kept);
}

static int add_fields(struct slurm_options *out, const char *text, bool asked_known)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof(fields) / sizeof(fields[0]); i++)
        if (!asked_known || !fields[i].allocated)
            rc = add_field(out, text, &fields[i]);
    return rc;
}

static int add_comment(struct slurm_options *out, const char *text, const char *mark)
{
    char value[4096], comment[4300];
    bool has = slurm_field(text, "Comment", value, sizeof(value)) && strcmp(value, "(null)") != 0;
    char *old_mark = has ? strstr(value, "oomretry:L") : NULL;

    if (old_mark)
        *old_mark = '\0';
    snprintf(comment, sizeof(comment), "%s%s%s", has ? value : "",
             has && *value && !old_mark ? " " : "", mark);
    return slurm_options_add(out, "comment", comment);
}

/* What the command line said of one component. Memory is told by the record, or changed. */
static int add_submitted(struct slurm_options *out, const struct slurm_submitted *submitted,
                         size_t component)
{
    static const char memory[] = "--mem-per-gpu=";
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < submitted->count; i++)
        if (submitted->component[i] == component &&
            strncmp(submitted->words[i], memory, sizeof(memory) - 1) != 0)
            rc = add_word(out, submitted->words[i]);
    return rc;
}

/* `text` is the record of one component; most jobs have one. */
static int add_component(struct slurm_options *out, const char *text,
                         const struct slurm_submitted *submitted, size_t component,
                         const struct oom_edits *resources, const char *mark)
{
    char value[64];
    int rc = submitted ? add_submitted(out, submitted, component) : 0;

    if (rc == 0)
        rc = add_fields(out, text, submitted != NULL);
    if (rc == 0)
        rc = add_memory(out, text, resources);
    if (rc == 0)
        rc = add_excluded(out, text, resources);
    if (rc == 0)
        rc = add_array(out, text);
    if (rc == 0 && !submitted)
        rc = add_files(out, text);
    if (rc == 0 && slurm_field(text, "Requeue", value, sizeof(value)))
        rc = slurm_options_add(out, value[0] == '1' ? "requeue" : "no-requeue", NULL);
    if (rc == 0)
        rc = add_comment(out, text, mark);
    if (rc == 0)
        rc = slurm_options_add(out, "open-mode", "append");
    return rc;
}

static int add_components(struct slurm_options *out, char *text,
                          const struct slurm_submitted *submitted,
                          const struct oom_edits *resources, const char *mark)
{
    char *save = NULL, *line = strtok_r(text, "\n", &save);
    int rc = 0;

    for (size_t i = 0; rc == 0 && line; i++, line = strtok_r(NULL, "\n", &save)) {
        if (i > 0)
            rc = add_word(out, ":");
        if (rc == 0)
            rc = add_component(out, line, submitted, i, resources, mark);
    }
    return rc;
}

int slurm_options_from_text(const char *text, const char *submitted,
                            const struct oom_edits *resources, const char *mark,
                            struct slurm_options *out, struct oom_error *err)
{
    struct slurm_submitted asked;
    bool known = slurm_submitted_read(submitted, &asked);
    char job[64] = "", *copy = strdup(text);

    /* A comment may hold line feeds; each component's line begins with its id. */
    for (char *feed = copy ? strchr(copy, '\n') : NULL; feed; feed = strchr(feed + 1, '\n'))
        if (feed[1] && strncmp(feed + 1, "JobId=", strlen("JobId=")) != 0)
            *feed = ' ';
    int rc = copy ? add_components(out, copy, known ? &asked : NULL, resources, mark) : -1;
    free(copy);
    if (known)
        slurm_submitted_free(&asked);
    if (rc == 0)
        return 0;
    slurm_field(text, "JobId", job, sizeof(job));
    slurm_options_free(out);
    return oom_errorf(err, "the options of job %s cannot be listed", job);
}

int slurm_options_of(const char *job, const char *submitted, const struct oom_edits *resources,
                     const char *mark, struct slurm_options *out, struct oom_error *err)
{
    const char *show[] = {"scontrol", "-o", "show", "job", job, NULL};
    char *text = NULL;

    if (child_expect(show, CALL_MS, &text, err) < 0)
        return -1;
    int rc = slurm_options_from_text(text, submitted, resources, mark, out, err);
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
