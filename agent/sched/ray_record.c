/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lib/jsonget.h"
#include "agent/sched/ray.h"

enum { MAX_ID_BYTES = 200 };

/* --- records ------------------------------------------------------------------------------------
 */

static void add_record(json_t *out, const char *key, const json_t *record)
{
    const char *id = json_get_string(record, "submission_id", key);
    const char *type = json_get_string(record, "type", "SUBMISSION");

    if (!json_is_object(record) || !*id || strlen(id) > MAX_ID_BYTES ||
        strcmp(type, "SUBMISSION") != 0)
        return;
    json_t *copy = json_copy((json_t *)record);
    json_object_set_new(copy, "submission_id", json_string(id));
    json_array_append_new(out, copy);
}

json_t *ray_jobs_normalise(const json_t *answer)
{
    json_t *out, *record;
    const char *key;
    size_t i;

    if (!json_is_array(answer) && !json_is_object(answer))
        return NULL;
    out = json_array();
    json_array_foreach(answer, i, record)
    {
        add_record(out, "", record);
    }
    json_object_foreach((json_t *)answer, key, record)
    {
        add_record(out, key, record);
    }
    return out;
}

bool ray_status_is_final(const char *status)
{
    return strcmp(status, "SUCCEEDED") == 0 || strcmp(status, "FAILED") == 0 ||
           strcmp(status, "STOPPED") == 0;
}

/* --- what the job asks for ----------------------------------------------------------------------
 */

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcasecmp(text, *words) == 0)
            return true;
    return false;
}

/* A policy's name: what else is there is a mistake of the user's. */
static bool is_name(const char *text)
{
    return *text &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
               strlen(text);
}

static void read_number(const json_t *metadata, const char *key, long most, int *number,
                        struct ray_wish *out)
{
    const char *text = json_get_string(metadata, key, NULL);
    char *end = NULL;
    long value = text ? strtol(text, &end, 10) : 0;

    if (!text)
        return;
    if (end == text || *end || value < 0 || value > most)
        snprintf(out->problem, sizeof(out->problem),
                 "%s=\"%.40s\" is no number up to %ld: the site's default counts", key, text, most);
    else
        *number = (int)value;
}

void ray_wish_read(const json_t *job, const char *site_rule, struct ray_wish *out)
{
    static const char *const no[] = {"off", "no", "false", "0", "none", "", NULL};
    static const char *const yes[] = {"auto", "on", "yes", "true", "1", NULL};
    static const char *const truth[] = {"true", "yes", "1", "on", NULL};
    const json_t *metadata = json_object_get(job, "metadata");
    const char *retry = json_get_string(metadata, "oom_retry", site_rule);

    *out = (struct ray_wish){.max_retries = -1, .grace_s = -1};
    if (is_one_of(retry, no))
        return;
    if (!is_one_of(retry, yes) && !is_name(retry)) {
        snprintf(out->problem, sizeof(out->problem), "oom_retry=\"%.60s\" names no policy", retry);
        return;
    }
    out->wanted = true;
    snprintf(out->policy, sizeof(out->policy), "%s", is_one_of(retry, yes) ? "auto" : retry);
    snprintf(out->mode, sizeof(out->mode), "%s", json_get_string(metadata, "oom_mode", "auto"));
    snprintf(out->allow, sizeof(out->allow), "%s", json_get_string(metadata, "oom_allow", ""));
    out->dry_run = is_one_of(json_get_string(metadata, "oom_dry_run", "no"), truth);
    read_number(metadata, "oom_max_retries", 1000, &out->max_retries, out);
    read_number(metadata, "oom_grace_s", 86400, &out->grace_s, out);
}

bool ray_owned_elsewhere(const json_t *job, char *why, size_t size)
{
    const json_t *metadata = json_object_get(job, "metadata");
    const json_t *env = json_object_get(json_object_get(job, "runtime_env"), "env_vars");
    const char *slurm =
        json_get_string(metadata, "slurm_job_id", json_get_string(env, "SLURM_JOB_ID", NULL));
    const char *supervisor = json_get_string(metadata, "oom_supervisor", "");
    struct ray_start start;

    if (*supervisor) {
        snprintf(why, size, "it runs under %.60s, which owns the retry", supervisor);
        return true;
    }
    if (slurm && *slurm) {
        snprintf(why, size, "it belongs to the Slurm job %.60s, whose supervisor owns the retry",
                 slurm);
        return true;
    }
    /* Not only for plain words: `cd x && oomrun -- …` is oomrun's too. */
    const char *entrypoint = json_get_string(job, "entrypoint", "");
    bool ours = strncmp(basename(entrypoint), "oomrun ", 7) == 0 ||
                strstr(entrypoint, " oomrun ") || strstr(entrypoint, "/oomrun ");
    if (!ours && ray_start_parse(entrypoint, &start)) {
        ours = strcmp(basename(start.words[start.file]), "oomrun") == 0;
        ray_start_free(&start);
    }
    if (ours)
        snprintf(why, size, "its entrypoint is oomrun, which owns the retry");
    return ours;
}

/* --- the next submission ------------------------------------------------------------------------
 */

void ray_next_id(const json_t *job, int64_t attempt, char *out, size_t size)
{
    const char *id = json_get_string(job, "submission_id", "");
    size_t length = strlen(id);
    const char *tail = strrchr(id, '-');

    /* Only what we made ourselves is taken off. */
    if (json_object_get(json_object_get(job, "metadata"), "oom_former") && tail &&
        strncmp(tail, "-oom", 4) == 0 && tail[4] &&
        strspn(tail + 4, "0123456789") == strlen(tail + 4))
        length = (size_t)(tail - id);
    snprintf(out, size, "%.*s-oom%lld", (int)length, id, (long long)attempt);
}

bool ray_is_attempt(const json_t *job, int64_t lineage, int64_t attempt)
{
    const json_t *metadata = json_object_get(job, "metadata");

    return lineage > 0 && atoll(json_get_string(metadata, "oom_lineage", "0")) == lineage &&
           atoll(json_get_string(metadata, "oom_attempt", "0")) == attempt;
}

static void put_number(json_t *request, const char *key, const json_t *value, bool whole)
{
    double number = json_number_value(value);

    if (number > 0)
        json_object_set_new(request, key,
                            whole ? json_integer((json_int_t)number) : json_real(number));
}

static void put_resources(json_t *request, const json_t *resources)
{
    json_t *custom = json_object(), *value;
    const char *name;

    json_object_foreach((json_t *)resources, name, value)
    {
        if (strcmp(name, "CPU") == 0)
            put_number(request, "entrypoint_num_cpus", value, false);
        else if (strcmp(name, "GPU") == 0)
            put_number(request, "entrypoint_num_gpus", value, false);
        else if (strcmp(name, "memory") == 0)
            put_number(request, "entrypoint_memory", value, true);
        else if (strcmp(name, "object_store_memory") != 0)
            put_number(custom, name, value, false);
    }
    if (json_object_size(custom) > 0)
        json_object_set(request, "entrypoint_resources", custom);
    json_decref(custom);
}

/* Without resources Ray itself ties the entrypoint to the head's node: it will again. */
static void put_labels(json_t *request, const json_t *labels)
{
    json_t *copy = json_is_object(labels) ? json_copy((json_t *)labels) : NULL;

    json_object_del(copy, "ray.io/node-id");
    if (json_object_size(copy) > 0)
        json_object_set(request, "entrypoint_label_selector", copy);
    json_decref(copy);
}

static int put_edits(json_t *request, json_t *runtime_env, const struct oom_edits *edits,
                     struct oom_error *err)
{
    for (size_t i = 0; i < edits->count; i++) {
        const struct oom_edit *edit = &edits->items[i];
        if (strncmp(edit->knob, "env:", 4) == 0) {
            json_t *env = json_object_get(runtime_env, "env_vars");
            json_t *copy = json_is_object(env) ? json_copy(env) : json_object();
            if (edit->new_value)
                json_object_set_new(copy, edit->knob + 4, json_string(edit->new_value));
            else
                json_object_del(copy, edit->knob + 4);
            json_object_set_new(runtime_env, "env_vars", copy);
        } else if (strcmp(edit->knob, "ray:memory") == 0) {
            double bytes = edit->new_value ? strtod(edit->new_value, NULL) : 0;
            if (!(bytes >= 0 && bytes < 1e15))
                return oom_errorf(err, "ray:memory %s is no size in bytes", edit->new_value);
            json_object_set_new(request, "entrypoint_memory", json_integer((json_int_t)bytes));
        } else if (strcmp(edit->knob, "ray:object_store_memory") == 0) {
            return oom_errorf(err, "the object store of a standing cluster is fixed by `ray start "
                                   "--object-store-memory`");
        }
    }
    return 0;
}

static json_t *next_metadata(const json_t *job, const struct ray_next *next)
{
    json_t *old = json_object_get(job, "metadata");
    json_t *metadata = json_is_object(old) ? json_copy(old) : json_object();
    char number[24];

    snprintf(number, sizeof(number), "%lld", (long long)next->lineage);
    json_object_set_new(metadata, "oom_lineage", json_string(number));
    snprintf(number, sizeof(number), "%lld", (long long)next->attempt);
    json_object_set_new(metadata, "oom_attempt", json_string(number));
    json_object_set(metadata, "oom_former", json_object_get(job, "submission_id"));
    return metadata;
}

json_t *ray_next_request(const json_t *job, const struct ray_next *next, struct oom_error *err)
{
    json_t *old_env = json_object_get(job, "runtime_env");
    json_t *runtime_env = json_is_object(old_env) ? json_copy(old_env) : json_object();
    json_t *request = json_pack("{s:s, s:s, s:o}", "entrypoint", next->entrypoint, "submission_id",
                                next->id, "metadata", next_metadata(job, next));

    if (!request || !runtime_env) {
        oom_errorf(err, "the next submission cannot be put into JSON");
        goto fail;
    }
    if (next->package)
        json_object_set_new(runtime_env, "working_dir", json_string(next->package));
    put_resources(request, next->resources);
    put_labels(request, next->labels);
    if (put_edits(request, runtime_env, next->edits, err) < 0)
        goto fail;
    json_object_set_new(request, "runtime_env", runtime_env);
    return request;
fail:
    json_decref(request);
    json_decref(runtime_env);
    return NULL;
}
