/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/run/findings.h"

#include <string.h>

#include "agent/run/body.h"
#include "agent/run/packages.h"
#include "agent/run/program.h"
#include "agent/run/seen.h"

int findings_policies(struct run *run, const struct attempt *attempt, struct policy_set *set,
                      struct oom_error *err)
{
    char path[64];

    if (run->prefetched.count > 0) {
        *set = run->prefetched;
        run->prefetched = (struct policy_set){NULL, 0};
        return 0;
    }
    snprintf(path, sizeof(path), "/v1/lineages/%lld/policies", (long long)attempt->lineage);
    return policy_set_fetch(run->api, path, set, err);
}

static bool is_general(const struct policy_set *set, int index)
{
    return index >= 0 && strcmp(oom_policy_name(set->items[index]), "pytorch") == 0;
}

/* The framework is what the user says, else what the log and the script say. Where they leave it
 * open, it is that of the program that was last seen to start: of make, a launcher in Python or
 * xargs only the general policy is known, and of two trainings in one script the second never ran
 * when the first failed. */
static int choose(struct run *run, const struct policy_set *set, const struct oom_script *script,
                  const char *log_framework)
{
    int index = policy_set_choose(set, script, run->options.policy, log_framework);
    size_t specific = set->count;

    if (!run->seen || index < 0 ||
        strcmp(run->options.policy, oom_policy_name(set->items[index])) == 0)
        return index;
    while (specific > 0 && is_general(set, (int)specific - 1))
        specific--;
    int seen = seen_last(run->seen, set->items, specific);
    if (seen < 0 || seen == index ||
        (log_framework[0] && strcmp(oom_policy_name(set->items[seen]), log_framework) != 0))
        return index;
    if (is_general(set, index)) {
        run->launch.starts_unseen = true;
        return seen;
    }
    const struct oom_policy *policy = set->items[seen];
    bool never_ran = script && oom_script_recognise(script, &policy, 1) == 0 &&
                     !seen_recognises(run->seen, set->items[index]);
    return never_ran ? seen : index;
}

/* A program behind the training, or before it: the training's settings would not help that one. */
static void find_program(const struct run *run, const struct oom_script *script,
                         const struct oom_incident *incident, struct findings *out)
{
    const struct oom_line *cause = &incident->cause;
    int stream = output_stream(run->output, cause->file);

    if (!incident->oom || !run->seen || !out->policy || stream < 0 || cause->line <= 0 ||
        run->launch.starts_unseen || is_general(&out->set, out->index) ||
        oom_script_recognise(script, &out->policy, 1) != 0)
        return;
    json_t *windows = oom_classifier_windows(run->classifier);
    program_elsewhere(run->seen, out->policy, cause, stream, windows, out->program,
                      sizeof(out->program));
    json_decref(windows);
}

int findings_resume(struct run *run, const struct policy_set *set, const struct oom_script *script,
                    const char *framework)
{
    int index = policy_set_choose(set, script, framework, framework);

    run->launch.for_what_ran = true;
    run->launch.starts_unseen = strcmp(run->options.policy, framework) != 0 &&
                                !is_general(set, index) &&
                                is_general(set, policy_set_choose(set, script, "auto", ""));
    return index;
}

int findings_collect(struct run *run, const struct attempt *attempt, struct oom_script *script,
                     const struct oom_incident *incident, struct findings *out,
                     struct oom_error *err)
{
    *out = (struct findings){.index = -1};
    if (findings_policies(run, attempt, &out->set, err) < 0)
        return -1;
    out->index = choose(run, &out->set, script, incident->framework);
    out->policy = out->index >= 0 && script ? out->set.items[out->index] : NULL;
    find_program(run, script, incident, out);
    if (out->policy && run->seen) {
        run->launch.ran = program_ran(run->seen, out->policy, incident->cause.line,
                                      output_stream(run->output, incident->cause.file));
        run->launch.for_what_ran = run->launch.ran != NULL;
        oom_script_ran(script, run->launch.ran);
    }
    if (out->policy)
        oom_script_values(script, out->policy, &out->values, NULL);
    if (out->policy && run->seen)
        seen_values(run->seen, out->policy, &out->values);
    if (out->policy)
        proof_values(run, out->policy, &out->values);
    body_overlay(&out->values, &attempt->edits);
    if (run->sched && incident->cause.node)
        oom_values_set(&out->values, "failed.node", incident->cause.node, OOM_SOURCE_LOG, NULL);
    if (run->sched && incident->cause.text)
        oom_values_set(&out->values, "failed.message", incident->cause.text, OOM_SOURCE_LOG, NULL);
    if (run->sched && run->sched->describe)
        run->sched->describe(run->job, &out->values, NULL);
    /* It was for the scheduler; the incident has it, redacted. */
    if (oom_values_get(&out->values, "failed.message"))
        oom_values_set(&out->values, "failed.message", NULL, OOM_SOURCE_LOG, NULL);
    /* Slurm's answer takes a while, and only more memory could depend on it. */
    if (run->sched && run->sched->limits && incident->domain != OOM_DOMAIN_GPU)
        run->sched->limits(&out->values, NULL);
    body_facts(run, attempt, &out->values);
    json_t *windows = oom_classifier_windows(run->classifier);
    packages_facts(windows, &out->values);
    json_decref(windows);
    return 0;
}

void findings_free(struct findings *findings)
{
    oom_values_free(&findings->values);
    policy_set_free(&findings->set);
}
