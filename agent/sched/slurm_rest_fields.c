/* SPDX-License-Identifier: Apache-2.0
 *
 * One line for each option of sbatch, one column for each family of API versions. Those of v0.0.38
 * were tried on slurmrestd 22.05.8, which differs from its own description: "requeue": false and
 * "nodes": [2, 2] are taken and not obeyed, "signal" knows no "B:". */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sched/slurm_fields.h"
#include "agent/sched/slurm_rest.h"

enum kind {
    NONE, /* cannot be said */
    TEXT,
    NUMBER,
    MINUTES,
    MEBIBYTES,
    TRUE_FLAG,
    FALSE_FLAG,
    ZERO_FLAG, /* priority 0 is what holds a job */
    YES,       /* "yes" or "no" */
    WORDS,     /* "END,FAIL": a list, in capitals */
    GRES,      /* "gpu:2" is "gres/gpu:2" */
    GPUS,      /* "2", "a100:2": the same of GPUs */
};

enum { FAMILIES = 3 };

static const struct field {
    char letter;
    const char *option;
    const char *group; /* an option replaces others of its group */
    struct {
        const char *member;
        enum kind kind;
    } in[FAMILIES]; /* v0.0.38; v0.0.39; v0.0.40 and newer */
} fields[] = {
#define ALL(member, kind)                                                                          \
    {                                                                                              \
        {member, kind}, {member, kind},                                                            \
        {                                                                                          \
            member, kind                                                                           \
        }                                                                                          \
    }
#define OLD(member, kind)                                                                          \
    {                                                                                              \
        {member, kind}, {NULL, NONE},                                                              \
        {                                                                                          \
            NULL, NONE                                                                             \
        }                                                                                          \
    }
#define TWO(member, kind, later_member, later_kind)                                                \
    {                                                                                              \
        {member, kind}, {later_member, later_kind},                                                \
        {                                                                                          \
            later_member, later_kind                                                               \
        }                                                                                          \
    }
    {'A', "account", NULL, ALL("account", TEXT)},
    {'a', "array", NULL, ALL("array", TEXT)},
    {'D', "chdir", NULL, ALL("current_working_directory", TEXT)},
    {0, "comment", NULL, ALL("comment", TEXT)},
    {'C', "constraint", NULL, ALL("constraints", TEXT)},
    {0, "cpus-per-gpu", NULL, OLD("cpus_per_gpu", TEXT)},
    {'c', "cpus-per-task", NULL, ALL("cpus_per_task", NUMBER)},
    {'d', "dependency", NULL, ALL("dependency", TEXT)},
    {'e', "error", NULL, ALL("standard_error", TEXT)},
    {'x', "exclude", NULL, {{"exclude_nodes", TEXT}, {NULL, NONE}, {"excluded_nodes", TEXT}}},
    {'G', "gpus", NULL, TWO("gpus", TEXT, "tres_per_job", GPUS)},
    {0, "gpus-per-node", "gres", TWO("gpus_per_node", TEXT, "tres_per_node", GPUS)},
    {0, "gpus-per-socket", NULL, TWO("gpus_per_socket", TEXT, "tres_per_socket", GPUS)},
    {0, "gpus-per-task", NULL, TWO("gpus_per_task", TEXT, "tres_per_task", GPUS)},
    {0, "gres", "gres", TWO("gres", TEXT, "tres_per_node", GRES)},
    {'H', "hold", NULL, TWO("hold", TRUE_FLAG, "priority", ZERO_FLAG)},
    {'i', "input", NULL, ALL("standard_input", TEXT)},
    {'J', "job-name", NULL, ALL("name", TEXT)},
    {0, "kill-on-invalid-dep", NULL, OLD("kill_on_invalid_dependency", YES)},
    {'L', "licenses", NULL, ALL("licenses", TEXT)},
    {0, "mail-type", NULL, TWO("mail_type", TEXT, "mail_type", WORDS)},
    {0, "mail-user", NULL, ALL("mail_user", TEXT)},
    {0, "mem", "memory", ALL("memory_per_node", MEBIBYTES)},
    {0, "mem-per-cpu", "memory", ALL("memory_per_cpu", MEBIBYTES)},
    {0, "mem-per-gpu", "memory", OLD("memory_per_gpu", TEXT)},
    {0, "nice", NULL, ALL("nice", NUMBER)},
    {0, "no-requeue", "requeue", TWO("no_requeue", TRUE_FLAG, "requeue", FALSE_FLAG)},
    {'w', "nodelist", NULL, {{"nodelist", TEXT}, {NULL, NONE}, {"required_nodes", TEXT}}},
    {'N', "nodes", NULL, ALL("nodes", TEXT)},
    {'n', "ntasks", NULL, ALL("tasks", NUMBER)},
    {0, "ntasks-per-core", NULL, ALL("tasks_per_core", NUMBER)},
    {0, "ntasks-per-node", NULL, ALL("tasks_per_node", NUMBER)},
    {0, "ntasks-per-socket", NULL, ALL("tasks_per_socket", NUMBER)},
    {0, "open-mode", NULL, TWO("open_mode", TEXT, "open_mode", WORDS)},
    {'o', "output", NULL, ALL("standard_output", TEXT)},
    {'p', "partition", NULL, ALL("partition", TEXT)},
    {'q', "qos", NULL, ALL("qos", TEXT)},
    {0, "requeue", "requeue", ALL("requeue", TRUE_FLAG)},
    {0, "reservation", NULL, ALL("reservation", TEXT)},
    {0, "threads-per-core", NULL, ALL("threads_per_core", NUMBER)},
    {'t', "time", NULL, ALL("time_limit", MINUTES)},
    {0, "time-min", NULL, ALL("time_minimum", MINUTES)},
    {0, "wckey", NULL, ALL("wckey", TEXT)},
#undef TWO
#undef OLD
#undef ALL
};

enum { FIELD_COUNT = sizeof(fields) / sizeof(fields[0]) };

static size_t family_of(int version)
{
    return version <= 38 ? 0 : version == 39 ? 1 : 2;
}

/* slurmrestd 22.05 frees them twice and dies of it, after it has passed the job on. */
bool slurm_rest_takes_arguments(int version)
{
    return version > 38;
}

bool slurm_rest_environment_is_object(int version)
{
    return version <= 38;
}

static const struct field *find(const char *option)
{
    for (size_t i = 0; i < FIELD_COUNT; i++)
        if (strcmp(fields[i].option, option) == 0)
            return &fields[i];
    return NULL;
}

const char *slurm_rest_option(char letter, const char *name, size_t length)
{
    for (size_t i = 0; i < FIELD_COUNT; i++)
        if (letter
                ? fields[i].letter == letter
                : strlen(fields[i].option) == length && memcmp(fields[i].option, name, length) == 0)
            return fields[i].option;
    return NULL;
}

bool slurm_rest_is_flag(const char *option)
{
    const struct field *field = find(option);

    return field && (field->in[0].kind == TRUE_FLAG);
}

int slurm_rest_choose(json_t *chosen, const char *option, const char *value)
{
    const struct field *field = find(option);

    for (size_t i = 0; field && field->group && i < FIELD_COUNT; i++)
        if (fields[i].group && strcmp(fields[i].group, field->group) == 0)
            json_object_del(chosen, fields[i].option);
    return json_object_set_new(chosen, option, json_string(value));
}

static json_t *number(const char *text, long long most)
{
    char *end;
    long long value = strtoll(text, &end, 10);

    return end != text && !*end && value >= 0 && value <= most ? json_integer(value) : NULL;
}

/* "90", "90:30", "1:30:00", "1-12", "1-12:30", "1-12:30:00"; begun minutes count, as in Slurm. */
static json_t *minutes(const char *text)
{
    long long days = 0, part[3] = {0, 0, 0}, seconds;
    int n;

    /* Of so few digits no sum is too large. */
    if (strlen(text) > 15 || strspn(text, "0123456789:-") != strlen(text))
        return NULL;
    if (strchr(text, '-')) {
        n = sscanf(text, "%lld-%lld:%lld:%lld", &days, &part[0], &part[1], &part[2]) - 1;
        seconds = part[0] * 3600 + part[1] * 60 + part[2];
    } else {
        n = sscanf(text, "%lld:%lld:%lld", &part[0], &part[1], &part[2]);
        seconds = n == 3 ? part[0] * 3600 + part[1] * 60 + part[2] : part[0] * 60 + part[1];
    }
    seconds += days * 86400;
    return n >= 1 && seconds > 0 && seconds < 1000000000 ? json_integer((seconds + 59) / 60) : NULL;
}

static json_t *mebibytes(const char *text)
{
    int64_t value = slurm_mib(text);

    return value > 0 ? json_integer(value) : NULL;
}

/* Each item of "a,b" becomes one of a list, in capitals, or one of a text, behind a prefix. */
static json_t *items(const char *text, const char *prefix)
{
    char copy[1024], joined[4096] = "";
    json_t *list = json_array();

    if (strlen(text) >= sizeof(copy)) {
        json_decref(list);
        return NULL;
    }
    strcpy(copy, text);
    for (char *save = NULL, *item = strtok_r(copy, ",", &save); item;
         item = strtok_r(NULL, ",", &save)) {
        size_t used = strlen(joined);
        if (prefix)
            snprintf(joined + used, sizeof(joined) - used, "%s%s%s", used ? "," : "", prefix, item);
        for (char *p = item; *p; p++)
            *p = (char)toupper((unsigned char)*p);
        json_array_append_new(list, json_string(item));
    }
    if (!prefix)
        return list;
    json_decref(list);
    return json_string(joined);
}

static json_t *convert(enum kind kind, const char *value)
{
    switch (kind) {
    case TEXT:
        return json_string(value);
    case NUMBER:
        return number(value, 1000000000);
    case MINUTES:
        return minutes(value);
    case MEBIBYTES:
        return mebibytes(value);
    case TRUE_FLAG:
        return json_true();
    case FALSE_FLAG:
        return json_false();
    case ZERO_FLAG:
        return json_integer(0);
    case YES:
        return json_boolean(strcmp(value, "yes") == 0);
    case WORDS:
        return items(value, NULL);
    case GRES:
        return items(value, "gres/");
    case GPUS:
        return items(value, "gres/gpu:");
    case NONE:
        break;
    }
    return NULL;
}

int slurm_rest_members(const json_t *chosen, int version, json_t *job, struct oom_error *err)
{
    size_t family = family_of(version);

    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const json_t *value = json_object_get(chosen, fields[i].option);
        if (!value)
            continue;
        if (fields[i].in[family].kind == NONE)
            return oom_errorf(err, "v0.0.%d of slurmrestd cannot be told --%s", version,
                              fields[i].option);
        json_t *converted = convert(fields[i].in[family].kind, json_string_value(value));
        if (json_object_set_new(job, fields[i].in[family].member, converted) < 0)
            return oom_errorf(err, "v0.0.%d of slurmrestd cannot be told --%s=%s", version,
                              fields[i].option, json_string_value(value));
    }
    return 0;
}
