/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/run/body.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/head/service.h"
#include "policies/jsontext.h"

/* Those that Slurm gave us on this node, times the nodes. */
int64_t body_gpus(void)
{
    const char *on_node = getenv("SLURM_GPUS_ON_NODE"), *nodes = getenv("SLURM_JOB_NUM_NODES");
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    int64_t count = 0;

    if (on_node)
        return (int64_t)atoi(on_node) * (nodes && atoi(nodes) > 0 ? atoi(nodes) : 1);
    for (const char *p = visible; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        count++;
    return count;
}

/* FNV-1a, which is enough to tell one user's scripts apart. */
static uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
    return (hash ^ 0xff) * UINT64_C(1099511628211);
}

/* The lines that do something: a new job name or another comment make no other script. */
static uint64_t hash_script(uint64_t hash, const char *text, size_t length)
{
    const char *end = text + length;

    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop = newline ? newline : end;
        while (text < stop && (*text == ' ' || *text == '\t'))
            text++;
        if (text < stop && *text != '#')
            hash = hash_bytes(hash, text, (size_t)(stop - text));
        text = stop + 1;
    }
    return hash;
}

/* Submissions of the same shape: the same script and arguments on as many GPUs. */
static void shape_of(const struct run *run, char *out, size_t size)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    const struct launch *launch = &run->launch;

    hash = hash_script(hash, launch->script_bytes, launch->script_length);
    for (int i = launch->script_index < 0 ? 0 : launch->script_index + 1; launch->argv[i]; i++)
        hash = hash_bytes(hash, launch->argv[i], strlen(launch->argv[i]));
    snprintf(out, size, "%016llx-g%lld", (unsigned long long)hash, (long long)body_gpus());
}

static json_t *options_of(const struct run *run)
{
    const struct run_options *o = &run->options;
    json_t *options = json_pack("{s:o, s:s, s:s, s:b}", "policy", oom_json_text(o->policy), "mode",
                                o->mode, "allow", o->allow, "dry_run", o->dry_run);

    if (!o->memory)
        json_object_set_new(options, "memory", json_string("off"));
    if (o->step_back)
        json_object_set_new(options, "step_back", json_true());
    if (o->max_retries >= 0)
        json_object_set_new(options, "max_retries", json_integer(o->max_retries));
    return options;
}

json_t *body_begin(const struct run *run, const struct attempt *attempt)
{
    char node[256] = "", name[1000];

    gethostname(node, sizeof(node) - 1);
    /* By hand it is a word of the command line, which may be a whole program. */
    snprintf(name, sizeof(name), "%s", run->options.name);
    const char *slurm_node = getenv("SLURMD_NODENAME");
    json_t *body = json_pack("{s:s, s:o, s:o, s:i, s:o, s:s, s:o, s:I, s:o}", "scheduler",
                             run->sched ? run->sched->name : "none", "cluster",
                             oom_json_text(run->cluster), "job", oom_json_text(run->job), "restart",
                             run->restart, "name", oom_json_text(name), "token", run->token, "node",
                             oom_json_text(slurm_node ? slurm_node : node), "gpus",
                             (json_int_t)body_gpus(), "options", options_of(run));

    /* Said by the scheduler before any of the job's own lines ran. */
    if (run->sched && run->sched->share && run->in_job_allocation) {
        const char *partition, *account;
        run->sched->share(&partition, &account);
        json_object_set_new(body, "partition", oom_json_text(partition));
        json_object_set_new(body, "account", oom_json_text(account));
    }
    char shape[48];
    shape_of(run, shape, sizeof(shape));
    json_object_set_new(body, "shape", json_string(shape));
    json_object_set_new(body, "log", json_incref(run->places));
    /* Told after the attempt has run: the head was away before. */
    if (attempt->started_ms > 0)
        json_object_set_new(body, "started_ms", json_integer(attempt->started_ms));
    if (attempt->known)
        json_object_set_new(body, "lineage", json_integer(attempt->lineage));
    return body;
}

static json_t *exit_json(const struct attempt *attempt)
{
    const struct oom_exit *e = &attempt->exit;
    json_t *json =
        json_pack("{s:i, s:i, s:s, s:I, s:I, s:I, s:b}", "exit_code", e->exit_code, "signal",
                  e->signal, "state", e->state, "cgroup_oom_kills", (json_int_t)e->cgroup_oom_kills,
                  "cgroup_peak_bytes", (json_int_t)e->cgroup_peak_bytes, "cgroup_limit_bytes",
                  (json_int_t)e->cgroup_limit_bytes, "ended_early", (int)attempt->ended_early);

    if (json && attempt->own_restarts > 0) {
        json_object_set_new(json, "own_restarts", json_integer(attempt->own_restarts));
        json_object_set_new(json, "own_restarts_ms",
                            json_integer(attempt->ended_ms - attempt->own_since_ms));
    }
    if (json && attempt->saved_gpu_s > 0)
        json_object_set_new(json, "saved_gpu_s", json_integer(attempt->saved_gpu_s));
    return json;
}

json_t *body_end(const struct run *run, const struct attempt *attempt,
                 const struct oom_incident *incident, const struct oom_values *values,
                 const json_t *refused, const char *framework, const char *reason)
{
    json_t *body = json_pack("{s:I, s:I, s:o, s:b, s:s}", "lineage", (json_int_t)attempt->lineage,
                             "attempt", (json_int_t)attempt->number, "exit", exit_json(attempt),
                             "completed", (int)attempt->exit.finished, "framework", framework);

    if (!body)
        return NULL;
    if (attempt->ended_by_signal && !attempt->exit.finished)
        json_object_set_new(body, "ended_by", json_string("signal"));
    if (attempt->ended_ago_ms > 0)
        json_object_set_new(body, "ended_ago_ms", json_integer(attempt->ended_ago_ms));
    if (reason)
        json_object_set_new(body, "reason", oom_json_text(reason));
    if (values)
        json_object_set_new(body, "values", oom_values_to_json(values));
    if (refused)
        json_object_set_new(body, "refused", json_deep_copy(refused));
    if (incident) {
        json_object_set_new(body, "incident", oom_incident_to_json(incident));
        json_object_set_new(body, "windows", oom_classifier_windows(run->classifier));
        json_object_set_new(body, "explain", oom_classifier_explain(run->classifier));
    }
    return body;
}

void body_overlay(struct oom_values *values, const struct oom_edits *edits)
{
    for (size_t i = 0; i < edits->count; i++) {
        const struct oom_edit *edit = &edits->items[i];
        oom_values_set(values, edit->knob, edit->new_value, OOM_SOURCE_SCRIPT, edit->where);
    }
}

void body_facts(const struct run *run, const struct attempt *attempt, struct oom_values *values)
{
    char number[32];

    oom_values_set(values, "scheduler", run->sched ? run->sched->name : "none",
                   OOM_SOURCE_SCHEDULER, NULL);
    snprintf(number, sizeof(number), "%lld",
             (long long)(attempt->ended_ms - attempt->started_ms) / 1000);
    oom_values_set(values, "attempt.seconds", number, OOM_SOURCE_SCHEDULER, NULL);
    if (run->after)
        oom_values_set(values, "allocation", "gone", OOM_SOURCE_SCHEDULER, NULL);
    if (attempt->exit.cgroup_oom_kills >= 0) {
        snprintf(number, sizeof(number), "%lld", (long long)attempt->exit.cgroup_oom_kills);
        oom_values_set(values, "attempt.oom_kills", number, OOM_SOURCE_SCHEDULER, NULL);
    }
}

int body_max_attempts(const struct run *run)
{
    int retries = run->options.max_retries >= 0 ? run->options.max_retries
                                                : service_default_limits.default_retries;

    return retries + 1;
}
