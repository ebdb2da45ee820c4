/* SPDX-License-Identifier: Apache-2.0
 *
 * From an out-of-memory failure to the next submission. The head stores the decision and the new
 * submission's id before Ray hears of it; the id follows from the attempt's number, and Ray takes
 * an id only once: so doing this again after any interruption ends with the one submission. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lib/jsonget.h"
#include "agent/lib/log.h"
#include "agent/lib/policy_set.h"
#include "agent/lib/textdiff.h"
#include "agent/node/ray_watch.h"
#include "agent/sched/sched.h"
#include "oomretry/decide.h"
#include "oomretry/redact.h"
#include "policies/jsontext.h"

enum { MAX_REFUSED = 32, MAX_TRIES = 8, MAX_PACKAGE_BYTES = 96 * 1024 * 1024 };

struct again {
    struct ray_cluster *cluster;
    struct ray_follow *follow;
    const json_t *job;
    const struct oom_exit *exit;
    const struct oom_incident *incident;
    const char *failure; /* NULL: it ran out of memory */
    struct policy_set policies;
    const struct oom_policy *policy; /* NULL: none knows the entrypoint */
    struct ray_script script;
    bool script_open;
    struct oom_values values;
    struct oom_decision decision;
    struct oom_edits total;         /* relative to what the user submitted */
    struct ray_rewritten rewritten; /* with the total */
    int64_t number;                 /* of the next attempt */
};

/* Not of the command line: resources of the submission, variables of the runtime environment. */
static bool is_submissions(const char *knob)
{
    return strncmp(knob, "ray:", 4) == 0 || strncmp(knob, "env:", 4) == 0;
}

static bool of_the_script(const struct again *a, const char *knob)
{
    const struct oom_value *value = oom_values_find(&a->values, knob);

    if (strncmp(knob, "slurm:", 6) == 0 || strncmp(knob, "ray:", 4) == 0)
        return false;
    /* Workers get variables from the runtime environment only; the entrypoint's own setting would
     * win over that in the driver, so it is changed as well. */
    if (strncmp(knob, "env:", 4) == 0)
        return value && value->source == OOM_SOURCE_SCRIPT;
    return true;
}

static int split(const struct again *a, bool script, struct oom_edits *out)
{
    for (size_t i = 0; i < a->total.count; i++) {
        const struct oom_edit *e = &a->total.items[i];
        if ((script ? of_the_script(a, e->knob) : is_submissions(e->knob)) &&
            oom_edits_add(out, e->knob, e->old_value, e->new_value, e->where) < 0)
            return -1;
    }
    return 0;
}

static void read_values(struct again *a)
{
    char path[64], number[32];
    struct oom_error err = {""};
    int64_t start = json_get_int(a->job, "start_time", 0),
            end = json_get_int(a->job, "end_time", 0);

    snprintf(path, sizeof(path), "/v1/lineages/%lld/policies", (long long)a->follow->lineage);
    a->script_open = ray_script_open(a->job, a->cluster, &a->script, &err) == 0;
    if (!a->script_open)
        log_line(LOG_WARNING, "ray job %s: %s", a->follow->id, err.text);
    if (policy_set_fetch(a->cluster->head, path, &a->policies, &err) == 0) {
        int index = policy_set_choose(&a->policies, a->script.parsed, a->follow->wish.policy,
                                      a->incident->framework);
        a->policy = index >= 0 && a->script_open ? a->policies.items[index] : NULL;
    }
    if (a->policy)
        oom_script_values(a->script.parsed, a->policy, &a->values, &err);
    for (size_t i = 0; i < a->follow->edits.count; i++) {
        const struct oom_edit *e = &a->follow->edits.items[i];
        /* A variable that the runtime environment has is not the script's. */
        oom_values_set(&a->values, e->knob, e->new_value,
                       is_submissions(e->knob) ? OOM_SOURCE_ENV : OOM_SOURCE_SCRIPT, e->where);
    }
    ray_use(a->cluster->client);
    sched_ray.describe(a->follow->id, &a->values, NULL);
    oom_values_set(&a->values, "scheduler", "ray", OOM_SOURCE_SCHEDULER, NULL);
    if (end > start && start > 0) {
        snprintf(number, sizeof(number), "%lld", (long long)(end - start) / 1000);
        oom_values_set(&a->values, "attempt.seconds", number, OOM_SOURCE_SCHEDULER, NULL);
    }
}

static int prepare(struct again *a, struct oom_error *err)
{
    struct oom_edits inside = {NULL, 0};
    int rc = -1;

    ray_rewritten_free(&a->rewritten);
    for (size_t i = 0; i < a->total.count; i++)
        if (strcmp(a->total.items[i].knob, "ray:object_store_memory") == 0)
            return oom_errorf(err, "the object store's size is fixed by `ray start`");
    if (!a->policy && strcmp(a->follow->wish.policy, "auto") != 0)
        return oom_errorf(err, "there is no policy \"%s\" (oomctl policy list)",
                          a->follow->wish.policy);
    if (!a->policy)
        return oom_errorf(err, "no policy knows the entrypoint");
    if (split(a, true, &inside) == 0)
        rc = ray_script_rewrite(&a->script, a->policy, &inside, &a->rewritten, err);
    oom_edits_free(&inside);
    return rc;
}

/* 0: the next attempt is decided and prepared, 1: stop, -1: no answer. */
static int decide(struct again *a, char *reason, size_t size)
{
    json_t *refused = json_array(), *reply = NULL;
    int result = -1;

    for (int i = 0; i < MAX_REFUSED; i++) {
        struct oom_error err = {""};
        struct ray_end end = {.exit = a->exit,
                              .incident = a->incident,
                              .values = &a->values,
                              .refused = refused,
                              .framework = a->policy ? oom_policy_name(a->policy) : "",
                              .reason = a->failure,
                              .rejected = a->failure != NULL};
        json_t *body = ray_follow_end_body(a->follow, &end);
        json_decref(reply);
        reply = NULL;
        int status =
            body ? api_call(a->cluster->head, "POST", "/v1/attempts/end", body, &reply, &err) : -1;
        json_decref(body);
        result = -1;
        snprintf(reason, size, "%s", err.text);
        if (status != 200)
            break;
        result = 1;
        snprintf(reason, size, "%s", json_get_string(reply, "reason", "no reason was given"));
        if (strcmp(json_get_string(reply, "action", ""), "retry") != 0)
            break;
        oom_decision_free(&a->decision);
        oom_edits_free(&a->total);
        if (oom_decision_from_json(reply, &a->decision, &err) < 0 ||
            oom_edits_from_json(json_object_get(reply, "total_edits"), &a->total) < 0)
            break;
        a->number = json_get_int(reply, "attempt", a->follow->attempt + 1);
        if (prepare(a, &err) == 0) {
            result = 0;
            break;
        }
        json_array_append_new(refused, json_pack("{s:s, s:o}", "rung", a->decision.rung, "why",
                                                 oom_json_text(err.text)));
    }
    json_decref(refused);
    json_decref(reply);
    return result;
}

static int note(struct again *a, const char *key, const char *text, const char *job,
                struct oom_error *err)
{
    json_t *body = json_pack("{s:I, s:I, s:o}", "lineage", (json_int_t)a->follow->lineage,
                             "attempt", (json_int_t)a->number, key, oom_json_text(text));
    json_t *reply = NULL;

    if (body && job)
        json_object_set_new(body, "job", json_string(job));
    int status =
        body ? api_call(a->cluster->head, "POST", "/v1/attempts/note", body, &reply, err) : -1;
    json_decref(body);
    json_decref(reply);
    return status == 200 ? 0 : -1;
}

/* The submission as a text, for the diff that people read; `edits` as they are before or after. */
static char *as_text(const json_t *record, const struct oom_edits *edits, bool after)
{
    const json_t *env = json_object_get(json_object_get(record, "runtime_env"), "env_vars");
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    if (!out)
        return NULL;
    fprintf(out, "entrypoint: %s\n", json_get_string(record, "entrypoint", ""));
    for (size_t i = 0; i < edits->count; i++) {
        const struct oom_edit *e = &edits->items[i];
        bool variable = strncmp(e->knob, "env:", 4) == 0;
        const char *value = variable ? json_get_string(env, e->knob + 4, NULL)
                            : after  ? e->new_value
                                     : e->old_value;
        if (value)
            fprintf(out, variable ? "env_vars: %s=%s\n" : "entrypoint_%s: %s\n", e->knob + 4,
                    value);
    }
    fclose(out);
    return text;
}

static void note_diff(struct again *a, const json_t *request, const struct oom_edits *edits)
{
    char *before = as_text(a->job, edits, false), *after = as_text(request, edits, true);
    char *diff = before && after ? textdiff_unified("submission", "submission", before,
                                                    strlen(before), after, strlen(after))
                                 : NULL;
    char *all = NULL;

    if (diff && asprintf(&all, "%s%s", diff, a->rewritten.diff ? a->rewritten.diff : "") >= 0) {
        char *clean = oom_redact(all, strlen(all));
        if (clean)
            note(a, "diff", clean, NULL, NULL);
        free(clean);
        free(all);
    }
    free(diff);
    free(before);
    free(after);
}

/* The working directory with the rewritten script, as a package of its own. */
static int upload(struct again *a, char *uri, size_t size, struct oom_error *err)
{
    char *zip, name[64];
    size_t length;

    if (ray_package_make(a->script.working_dir, a->rewritten.file, a->rewritten.bytes,
                         a->rewritten.length, MAX_PACKAGE_BYTES, &zip, &length, name, err) < 0)
        return -1;
    int rc = ray_package_put(a->cluster->client, name, zip, length, err);
    free(zip);
    snprintf(uri, size, "gcs://%s", name);
    return rc;
}

/* Ray has deleted the working directory with its last job: put it back under its name. */
static void restore_package(struct again *a)
{
    char package[128], file[140], made[64], *zip;
    size_t length;
    struct oom_error err = {""};

    if (!a->script.uri || !ray_package_name(a->script.uri, package, sizeof(package)))
        return;
    snprintf(file, sizeof(file), "%s.zip", package);
    if (ray_package_keep(a->cluster->client, file, &err) != 1)
        return;
    if (ray_script_fetch(&a->script, &err) == 0 &&
        ray_package_make(a->script.working_dir, NULL, NULL, 0, MAX_PACKAGE_BYTES, &zip, &length,
                         made, &err) == 0) {
        int rc = ray_package_put(a->cluster->client, file, zip, length, &err);
        free(zip);
        if (rc == 0)
            return;
    }
    /* Nodes that have run the job still have it. */
    log_line(LOG_WARNING, "ray job %s: Ray has deleted its working directory: %s", a->follow->id,
             err.text);
}

static int submit(struct again *a, char *id, size_t size, struct oom_error *err)
{
    struct oom_edits outside = {NULL, 0};
    json_t *resources = NULL, *labels = NULL, *request = NULL;
    char uri[80] = "", doing[400];
    int rc = split(a, false, &outside);

    ray_next_id(a->job, a->number, id, size);
    if (rc == 0)
        rc = ray_entrypoint_resources(a->cluster->client, a->follow->id, &resources, &labels, err);
    if (rc >= 0 && a->rewritten.file)
        rc = upload(a, uri, sizeof(uri), err);
    else if (rc >= 0 && a->script_open)
        restore_package(a);
    if (rc >= 0) {
        struct ray_next next = {.id = id,
                                .entrypoint = a->rewritten.entrypoint,
                                .package = uri[0] ? uri : NULL,
                                .resources = resources,
                                .labels = labels,
                                .edits = &outside,
                                .lineage = a->follow->lineage,
                                .attempt = a->number};
        request = ray_next_request(a->job, &next, err);
        rc = request ? 0 : -1;
    }
    if (rc == 0) {
        note_diff(a, request, &outside);
        snprintf(doing, sizeof(doing), "submitting it to Ray as %s", id);
        rc = note(a, "acted", doing, id, err);
    }
    if (rc == 0) {
        struct sched_submission submission = {.script = a->rewritten.entrypoint, .record = request};
        ray_use(a->cluster->client);
        rc = sched_ray.submit(&submission, id, size, err);
    }
    json_decref(request);
    json_decref(resources);
    json_decref(labels);
    oom_edits_free(&outside);
    return rc;
}

/* The submission failed: tried again with the next looks, but not for ever. */
static bool give_up(struct again *a, const char *why)
{
    char reason[700];
    struct oom_error err = {""};

    log_line(LOG_WARNING, "ray job %s: attempt %lld cannot be submitted: %s", a->follow->id,
             (long long)a->number, why);
    if (++a->follow->tries < MAX_TRIES)
        return false;
    snprintf(reason, sizeof(reason), "attempt %lld could not be submitted to Ray: %s",
             (long long)a->number, why);
    note(a, "acted", reason, NULL, NULL);
    return ray_follow_lost(a->cluster, a->follow->lineage, a->number, reason, &err) == 0;
}

static void tell(const struct again *a, const char *id)
{
    char changes[512] = "";
    size_t used = 0;

    for (size_t i = 0; i < a->decision.edits.count && used < sizeof(changes) - 1; i++) {
        const struct oom_edit *e = &a->decision.edits.items[i];
        int n = snprintf(changes + used, sizeof(changes) - used, "%s%s %s -> %s", i ? ", " : "",
                         e->knob, e->old_value ? e->old_value : "(not set)",
                         e->new_value ? e->new_value : "(taken away)");
        used += n > 0 ? (size_t)n : 0;
    }
    log_line(LOG_NOTICE, "ray job %s: %s; %s; attempt %lld is %s", a->follow->id,
             a->incident->summary, changes, (long long)a->number, id);
}

bool ray_again(struct ray_cluster *cluster, struct ray_follow *follow, const json_t *job,
               const struct oom_exit *exit_data, const struct oom_incident *incident,
               const char *failure)
{
    struct again a = {.cluster = cluster,
                      .follow = follow,
                      .job = job,
                      .exit = exit_data,
                      .incident = incident,
                      .failure = failure};
    char reason[600] = "", id[300];
    struct oom_error err = {""};
    bool done = false;

    oom_decision_init(&a.decision);
    read_values(&a);
    int verdict = decide(&a, reason, sizeof(reason));
    if (verdict == 0) {
        done = submit(&a, id, sizeof(id), &err) == 0;
        if (done) {
            char acted[400];
            snprintf(acted, sizeof(acted), "submitted to Ray as %s", id);
            note(&a, "acted", acted, NULL, NULL);
            tell(&a, id);
        } else {
            done = give_up(&a, err.text);
        }
    } else if (verdict == 1) {
        log_line(LOG_NOTICE, "ray job %s: %s; not retried: %s", follow->id, incident->summary,
                 reason);
        done = true;
    } else {
        log_line(LOG_WARNING, "ray job %s: no decision yet: %s", follow->id, reason);
    }
    ray_rewritten_free(&a.rewritten);
    if (a.script_open)
        ray_script_close(&a.script);
    oom_edits_free(&a.total);
    oom_values_free(&a.values);
    oom_decision_free(&a.decision);
    policy_set_free(&a.policies);
    return done;
}
