/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ctl/diagnose_job.h"

#include <ctype.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/child.h"
#include "agent/sched/slurm_fields.h"

#define FILES_MAX          4096
#define SCONTROL_MS        20000
#define SLURM_OOM_SIGNAL   125 /* Slurm's mark for out of memory, where a signal would stand */
#define SLURM_OOM_EXITCODE 253

/* --- names of files -----------------------------------------------------------------------------
 */

/* What a letter of a file name pattern stands for; "*" where it differs between tasks. */
static void letter_value(char letter, const char *record, char *out, size_t size)
{
    static const struct {
        char letter;
        const char *fields[2];
    } known[] = {
        {'j', {"JobId", NULL}},       {'J', {"JobId", NULL}},   {'A', {"ArrayJobId", "JobId"}},
        {'a', {"ArrayTaskId", NULL}}, {'x', {"JobName", NULL}}, {'u', {"UserId", NULL}},
    };

    snprintf(out, size, "*");
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        if (known[i].letter != letter)
            continue;
        for (int k = 0; k < 2 && known[i].fields[k]; k++)
            if (slurm_field(record, known[i].fields[k], out, size))
                break;
    }
    if (letter == 'u') /* "alice(1000)" */
        out[strcspn(out, "(")] = '\0';
}

static void put_plain(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("*?[\\", *text))
            fputc('\\', out);
        fputc(*text, out);
    }
}

char *diagnose_job_pattern(const char *name, const char *record)
{
    char *pattern = NULL;
    size_t length;
    FILE *out = open_memstream(&pattern, &length);
    char value[256];

    if (!out)
        return NULL;
    for (const char *at = name; *at; at++) {
        char one[2] = {*at, '\0'};
        if (*at != '%' || !at[1]) {
            put_plain(out, one);
            continue;
        }
        const char *letter = at + 1;
        long width = strtol(letter, (char **)(uintptr_t)&letter, 10);
        if (*letter == '%') {
            fputc('%', out);
        } else {
            letter_value(*letter, record, value, sizeof(value));
            bool padded = width > 0 && width <= 10 && isdigit((unsigned char)*value);
            for (size_t n = strlen(value); padded && n < (size_t)width; n++)
                fputc('0', out);
            if (strcmp(value, "*") == 0)
                fputc('*', out);
            else
                put_plain(out, value);
        }
        at = letter;
        if (!*at)
            break;
    }
    if (fclose(out)) {
        free(pattern);
        return NULL;
    }
    return pattern;
}

static int add_path(struct job_files *files, const char *path)
{
    for (size_t i = 0; i < files->count; i++)
        if (strcmp(files->paths[i], path) == 0)
            return 0;
    if (files->count == FILES_MAX)
        return 0;
    char **grown = realloc(files->paths, (files->count + 1) * sizeof(*grown));
    if (!grown)
        return -1;
    files->paths = grown;
    grown[files->count] = strdup(path);
    return grown[files->count] ? (files->count++, 0) : -1;
}

/* One name as Slurm writes it, seen from the job's directory. */
static int add_name(struct job_files *files, const char *name, const char *record)
{
    char directory[PATH_MAX] = "";
    char full[2 * PATH_MAX];
    glob_t found;
    int rc = 0;

    if (!*name || strcmp(name, "/dev/null") == 0)
        return 0;
    slurm_field(record, "WorkDir", directory, sizeof(directory));
    snprintf(full, sizeof(full), "%s%s%s", *name == '/' ? "" : directory, *name == '/' ? "" : "/",
             name);
    if (access(full, F_OK) == 0 || !strchr(name, '%'))
        return add_path(files, full);
    char *pattern = diagnose_job_pattern(full, record);
    if (!pattern)
        return -1;
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            rc |= add_path(files, found.gl_pathv[i]);
        globfree(&found);
    }
    free(pattern);
    return rc;
}

/* --- files of srun ------------------------------------------------------------------------------
 */

/* Puts the job's own numbers in the place of $SLURM_JOB_ID and its like; false: some other
 * variable, whose value nobody knows now. */
static bool fill_variables(const char *text, const char *record, char *out, size_t size)
{
    static const struct {
        const char *name;
        const char *field;
    } known[] = {
        {"SLURM_JOB_ID", "JobId"},
        {"SLURM_JOBID", "JobId"},
        {"SLURM_JOB_NAME", "JobName"},
        {"SLURM_ARRAY_JOB_ID", "ArrayJobId"},
        {"SLURM_ARRAY_TASK_ID", "ArrayTaskId"},
        {"SLURM_SUBMIT_DIR", "WorkDir"},
    };
    size_t n = 0;

    while (*text && n + 1 < size) {
        if (*text != '$') {
            if (!strchr("\"'", *text))
                out[n++] = *text;
            text++;
            continue;
        }
        bool braced = text[1] == '{';
        const char *name = text + 1 + braced;
        size_t length =
            strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
        bool filled = false;
        for (size_t i = 0; i < sizeof(known) / sizeof(*known) && !filled; i++)
            filled = strlen(known[i].name) == length && strncmp(known[i].name, name, length) == 0 &&
                     slurm_field(record, known[i].field, out + n, size - n);
        if (!filled || (braced && name[length] != '}'))
            return false;
        n += strlen(out + n);
        text = name + length + braced;
    }
    out[n] = '\0';
    return true;
}

/* Every -o and -e of the srun commands of a script: a line is a command here, and what is said in a
 * way that cannot be read so is left out. */
static int add_srun_line(struct job_files *files, char *line, const char *record)
{
    static const char *const options[] = {"--output", "--error", "-o", "-e"};
    char name[PATH_MAX];
    char *state = NULL;
    bool srun = false;

    for (char *word = strtok_r(line, " \t", &state); word; word = strtok_r(NULL, " \t", &state)) {
        if (*word == '#')
            break;
        srun |= strcmp(word, "srun") == 0;
        for (size_t i = 0; srun && i < sizeof(options) / sizeof(*options); i++) {
            size_t n = strlen(options[i]);
            const char *value = NULL;
            if (strncmp(word, options[i], n) != 0)
                continue;
            if (word[n] == '=')
                value = word + n + 1;
            else if (word[n] == '\0')
                value = strtok_r(NULL, " \t", &state);
            else if (options[i][1] != '-')
                value = word + n;
            if (value && fill_variables(value, record, name, sizeof(name)) &&
                add_name(files, name, record))
                return -1;
            break;
        }
    }
    return 0;
}

static int add_srun_files(struct job_files *files, const char *id, const char *record)
{
    const char *argv[] = {"scontrol", "write", "batch_script", id, "-", NULL};
    char *script = NULL;
    int rc = 0;

    /* An interactive job has none, and an administrator may have forbidden it. */
    if (child_expect(argv, SCONTROL_MS, &script, NULL))
        return 0;
    for (char *p = script; (p = strstr(p, "\\\n")) != NULL;)
        p[0] = p[1] = ' ';
    char *state = NULL;
    for (char *line = strtok_r(script, "\n", &state); line && !rc;
         line = strtok_r(NULL, "\n", &state))
        rc = add_srun_line(files, line, record);
    free(script);
    return rc;
}

/* --- the record ---------------------------------------------------------------------------------
 */

static void take_exit(const char *record, struct oom_exit *exit_data)
{
    char word[64];
    int code;
    int sig;

    if (!exit_data->state[0] && slurm_field(record, "JobState", word, sizeof(word)))
        snprintf(exit_data->state, sizeof(exit_data->state), "%.*s", (int)strcspn(word, " "), word);
    if (exit_data->exit_code < 0 && slurm_field(record, "ExitCode", word, sizeof(word)) &&
        sscanf(word, "%d:%d", &code, &sig) == 2) {
        exit_data->exit_code = code;
        exit_data->signal = sig == SLURM_OOM_SIGNAL ? 0 : sig;
    }
    if (exit_data->derived_exit_code < 0 &&
        slurm_field(record, "DerivedExitCode", word, sizeof(word)) &&
        sscanf(word, "%d:%d", &code, &sig) == 2)
        exit_data->derived_exit_code = sig == SLURM_OOM_SIGNAL ? SLURM_OOM_EXITCODE : code;
}

static int take_record(const char *id, const char *record, struct oom_exit *exit_data,
                       struct job_files *files, struct oom_error *err)
{
    static const char *const fields[] = {"StdOut", "StdErr"};
    char state[32] = "";
    char name[PATH_MAX];

    slurm_field(record, "JobState", state, sizeof(state));
    if (strcmp(state, "PENDING") == 0)
        return oom_errorf(err, "job %s has not started", id);
    /* ExitCode=0:0 of a job that goes on means nothing. */
    if (slurm_state_is_over(state) || strcmp(state, "COMPLETING") == 0)
        take_exit(record, exit_data);
    for (size_t i = 0; i < 2; i++)
        if (slurm_field(record, fields[i], name, sizeof(name)) && add_name(files, name, record))
            return oom_errorf(err, "out of memory");
    if (add_srun_files(files, id, record))
        return oom_errorf(err, "out of memory");
    return 0;
}

/* Slurm forgets ended jobs after MinJobAge, and never kept where their output went. */
static int unknown_job(const char *id, const char *why, struct oom_error *err)
{
    if (strstr(why, "Invalid job id"))
        return oom_errorf(err,
                          "job %s: Slurm does not know it (ended jobs are forgotten after "
                          "MinJobAge). Name its output files instead, with --state and "
                          "--exit-code as far as known; `oomctl show %s` has what was kept of it "
                          "if it was supervised",
                          id, id);
    return oom_errorf(err, "job %s: %s", id, why);
}

int diagnose_job(const char *id, struct oom_exit *exit_data, struct job_files *files,
                 struct oom_error *err)
{
    const char *argv[] = {"scontrol", "-o", "show", "job", id, NULL};
    struct oom_error why = {""};
    char *text = NULL;
    char word[64];
    int rc = 0;

    if (!isdigit((unsigned char)*id) || id[strspn(id, "0123456789_+")])
        return oom_errorf(err, "\"%s\" is no job id: 12, 12_3 (array) or 12+1 (heterogeneous)", id);
    if (child_expect(argv, SCONTROL_MS, &text, &why))
        return unknown_job(id, why.text, err);
    char *second = strchr(text, '\n');
    if (second && second[1] && !strchr(id, '_') &&
        slurm_field(text, "ArrayTaskId", word, sizeof(word)))
        rc = oom_errorf(err, "job %s is an array: name one of its tasks, such as %s_%s", id, id,
                        word);
    char *state = NULL;
    for (char *record = strtok_r(text, "\n", &state); record && !rc;
         record = strtok_r(NULL, "\n", &state))
        rc = take_record(id, record, exit_data, files, err);
    free(text);
    if (!rc && files->count == 0)
        rc = oom_errorf(err, "job %s: Slurm names no output file that is there", id);
    return rc;
}

void diagnose_job_files_free(struct job_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->paths[i]);
    free(files->paths);
    memset(files, 0, sizeof(*files));
}
