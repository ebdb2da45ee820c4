/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lib/jsonget.h"
#include "agent/sched/slurm_rest.h"

enum { MAX_WORD_BYTES = 4096 };

/* Options of a script that say nothing about the new job: its environment and directory are given,
 * and nobody waits for it at a terminal. */
static bool has_no_effect(const char *name, size_t length)
{
    static const char *const names[] = {"export", "export-file", "ignore-pbs", "parsable",
                                        "quiet",  "verbose",     "wait"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return true;
    return false;
}

/* The next word of a #SBATCH line. 0: none is left, -1: not to be understood here. */
static int next_word(const char **at, char word[MAX_WORD_BYTES])
{
    const char *p = *at;
    size_t used = 0;
    char quote = '\0';

    p += strspn(p, " \t\r");
    if (!*p || *p == '\n' || *p == '#')
        return 0;
    for (; *p && *p != '\n' && (quote || !strchr(" \t\r", *p)); p++) {
        if (*p == '\\' || used + 1 == MAX_WORD_BYTES)
            return -1;
        if (quote ? *p == quote : *p == '"' || *p == '\'')
            quote = quote ? '\0' : *p;
        else
            word[used++] = *p;
    }
    word[used] = '\0';
    *at = p;
    return quote ? -1 : 1;
}

/* One option; its value may be the next word. */
static int script_option(const char *word, const char **at, json_t *chosen)
{
    char value[MAX_WORD_BYTES];
    const char *inside = NULL, *option;

    if (word[0] == '-' && word[1] == '-') {
        const char *name = word + 2, *equals = strchr(name, '=');
        size_t length = equals ? (size_t)(equals - name) : strlen(name);
        bool ours = strncmp(name, "oom-", 4) == 0; /* given anew in any case */
        if (ours || has_no_effect(name, length)) {
            const char *after = *at;
            bool apart = !equals && next_word(&after, value) == 1 && value[0] != '-';
            *at = apart ? after : *at;
            return 0;
        }
        option = slurm_rest_option('\0', name, length);
        inside = equals ? equals + 1 : NULL;
    } else if (word[0] == '-' && word[1]) {
        option = slurm_rest_option(word[1], NULL, 0);
        inside = word[2] ? word + 2 : NULL;
    } else {
        return -1;
    }
    if (!option || (slurm_rest_is_flag(option) && inside))
        return -1;
    if (slurm_rest_is_flag(option))
        return slurm_rest_choose(chosen, option, "");
    if (!inside && next_word(at, value) != 1)
        return -1;
    return slurm_rest_choose(chosen, option, inside ? inside : value);
}

/* #SBATCH lines stand before the first command. */
static int read_script(const char *script, json_t *chosen, struct oom_error *err)
{
    char word[MAX_WORD_BYTES];
    int number = 1;

    for (const char *line = script; line; number++) {
        const char *newline = strchr(line, '\n'), *text = line + strspn(line, " \t\r");
        bool other = strncmp(line, "#PBS", 4) == 0 || strncmp(line, "#BSUB", 5) == 0;
        if (*text && *text != '\n' && *text != '#')
            break;
        int rc = 1;
        if (strncmp(line, "#SBATCH", 7) == 0 && (line[7] == ' ' || line[7] == '\t'))
            for (const char *at = line + 7; (rc = next_word(&at, word)) == 1;)
                if (script_option(word, &at, chosen) < 0) {
                    rc = -1;
                    break;
                }
        if (rc < 0 || other)
            return oom_errorf(err, "slurmrestd cannot be told line %d of the script: %.*s", number,
                              (int)strcspn(line, "\n"), line);
        line = newline ? newline + 1 : NULL;
    }
    return 0;
}

/* The plugin's options travel as sbatch would send them: as variables that slurmstepd takes away.
 */
static int add_plugin_option(json_t *plugin, const char *name, const char *value)
{
    char variable[128];

    snprintf(variable, sizeof(variable), "_SLURM_SPANK_OPTION_oomretry_%s", name);
    for (char *p = variable; *p; p++)
        if (*p == '-')
            *p = '_';
    return json_object_set_new(plugin, variable, json_string(value));
}

static int read_options(const char *const *options, json_t *chosen, json_t *plugin,
                        struct oom_error *err)
{
    for (; options && *options; options++) {
        if (strcmp(*options, ":") == 0)
            return oom_errorf(err, "slurmrestd cannot be told the parts of a heterogeneous job");
        const char *name = *options + 2, *equals = strchr(name, '=');
        size_t length = equals ? (size_t)(equals - name) : strlen(name);
        const char *value = equals ? equals + 1 : "";
        const char *option = slurm_rest_option('\0', name, length);
        char word[64];
        int rc;

        snprintf(word, sizeof(word), "%.*s", (int)length, name);
        if (strncmp(word, "oom-", 4) == 0)
            rc = add_plugin_option(plugin, word, value);
        else
            rc = option ? slurm_rest_choose(chosen, option, value) : -1;
        if (rc < 0)
            return oom_errorf(err, "slurmrestd cannot be told --%s", word);
    }
    return 0;
}

/* NAME=VALUE strings as an object, or as a list of the same strings. */
static json_t *environment_of(int version, const struct slurm_rest_job *job, const json_t *plugin)
{
    json_t *object = json_object(), *list = json_array();
    const char *name;
    const json_t *value;
    bool bad = !object || !list;

    for (size_t at = 0; at < job->environment_length && !bad;) {
        const char *text = job->environment + at, *equals = strchr(text, '=');
        if (equals && equals > text)
            bad = json_object_setn_new(object, text, (size_t)(equals - text),
                                       json_string(equals + 1)) < 0;
        at += strlen(text) + 1;
    }
    bad = bad || json_object_update(object, (json_t *)plugin) < 0;
    if (!bad && slurm_rest_environment_is_object(version)) {
        json_decref(list);
        return object;
    }
    void *iterator = bad ? NULL : json_object_iter(object);
    for (; iterator; iterator = json_object_iter_next(object, iterator)) {
        name = json_object_iter_key(iterator);
        value = json_object_iter_value(iterator);
        bad = json_array_append_new(list, json_sprintf("%s=%s", name, json_string_value(value))) <
                  0 ||
              bad;
    }
    json_decref(object);
    if (!bad)
        return list;
    json_decref(list);
    return NULL;
}

/* The first argument is the script's own name, as for every program. */
static json_t *arguments_of(const char *const *args, const json_t *name)
{
    json_t *list = json_array();

    json_array_append_new(list, json_string(json_string_value(name) ?: "script"));
    for (; *args; args++)
        if (json_array_append_new(list, json_string(*args)) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static int fill_job(int version, const struct slurm_rest_job *from, json_t *job,
                    struct oom_error *err)
{
    const struct sched_submission *submission = from->submission;
    json_t *chosen = json_object(), *plugin = json_object();
    int rc = read_script(from->script, chosen, err);

    if (rc == 0)
        rc = read_options(submission->options, chosen, plugin, err);
    if (rc == 0 && submission->directory &&
        slurm_rest_choose(chosen, "chdir", submission->directory) < 0)
        rc = oom_errorf(err, "the job's directory is not UTF-8, which JSON wants");
    if (rc == 0 && submission->hold)
        rc = slurm_rest_choose(chosen, "hold", "");
    if (rc == 0)
        rc = slurm_rest_members(chosen, version, job, err);
    if (rc == 0 &&
        json_object_set_new(job, "environment", environment_of(version, from, plugin)) < 0)
        rc = oom_errorf(err, "the job's environment is not UTF-8, which JSON wants");
    if (rc == 0 && submission->args && submission->args[0]) {
        if (!slurm_rest_takes_arguments(version))
            rc = oom_errorf(err, "v0.0.%d of slurmrestd cannot be given the script's arguments",
                            version);
        else if (json_object_set_new(
                     job, "argv", arguments_of(submission->args, json_object_get(job, "name"))) < 0)
            rc = oom_errorf(err, "the script's arguments are not UTF-8, which JSON wants");
    }
    json_decref(chosen);
    json_decref(plugin);
    return rc;
}

json_t *slurm_rest_body(int version, const struct slurm_rest_job *job, struct oom_error *err)
{
    json_t *body = json_object(), *description = json_object();
    int rc = fill_job(version, job, description, err);

    if (rc == 0 && (strlen(job->script) != job->script_length ||
                    json_object_set_new(body, "script", json_string(job->script)) < 0))
        rc = oom_errorf(err, "the script is not UTF-8, which JSON wants");
    if (json_object_set_new(body, "job", description) < 0)
        rc = -1;
    if (rc == 0)
        return body;
    json_decref(body);
    return NULL;
}

int slurm_rest_version(const json_t *openapi, struct oom_error *err)
{
    const json_t *paths = json_object_get(openapi, "paths");
    char path[64];

    for (int version = SLURM_REST_NEWEST; version >= SLURM_REST_OLDEST; version--) {
        int n = snprintf(path, sizeof(path), "/slurm/v0.0.%d/job/submit/", version);
        if (json_object_get(paths, path) || json_object_getn(paths, path, (size_t)n - 1))
            return version;
    }
    return oom_errorf(err, "it offers no version from v0.0.%d to v0.0.%d of job/submit",
                      SLURM_REST_OLDEST, SLURM_REST_NEWEST);
}

long long slurm_rest_reply(const json_t *reply, bool *ignored, struct oom_error *err)
{
    long long job = json_get_int(reply, "job_id", 0);
    const json_t *errors = json_object_get(reply, "errors");
    const json_t *warnings = json_object_get(reply, "warnings"), *item;
    size_t i;

    *ignored = false;
    json_array_foreach(warnings, i, item)
    {
        if (strstr(json_get_string(item, "description", ""), "gnoring unknown"))
            *ignored = true;
    }
    /* That a held job is held is reported as an error, too: the id is the proof. */
    if (job > 0)
        return job;
    item = json_array_get(errors, 0);
    const char *what = json_get_string(item, "description", NULL);
    return oom_errorf(err, "%s", what ? what : json_get_string(item, "error", "no job id came"));
}
