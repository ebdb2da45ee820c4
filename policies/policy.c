/* SPDX-License-Identifier: Apache-2.0 */
#include "oomretry/policy.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy_impl.h"
#include "policies/regex.h"

#define MAX_NAME 200

static const char *const family_names[] = {
    [OOM_FAMILY_ARGPARSE] = "argparse",
    [OOM_FAMILY_HYDRA] = "hydra",
    [OOM_FAMILY_OMEGACONF] = "omegaconf",
    [OOM_FAMILY_TYRO] = "tyro",
    [OOM_FAMILY_HF] = "hf",
    [OOM_FAMILY_AXOLOTL] = "axolotl",
    [OOM_FAMILY_ENV] = "env",
};
#define FAMILY_COUNT (sizeof(family_names) / sizeof(family_names[0]))

int oom_family_parse(const char *name, enum oom_family *out)
{
    for (size_t i = 0; i < FAMILY_COUNT; i++) {
        if (strcmp(family_names[i], name) == 0) {
            *out = (enum oom_family)i;
            return 0;
        }
    }
    return -1;
}

struct oom_policy *oom_policy_from_json(const json_t *document, const char *name,
                                        struct oom_error *err)
{
    struct oom_policy *policy = calloc(1, sizeof(*policy));

    if (!policy || !(policy->document = json_deep_copy(document))) {
        oom_errorf(err, "out of memory");
        free(policy);
        return NULL;
    }
    if (policy_parse(policy, name, err) != 0) {
        oom_policy_free(policy);
        return NULL;
    }
    return policy;
}

static void guards_free(struct guard *guards, size_t count)
{
    for (size_t i = 0; i < count; i++)
        oom_expr_free(guards[i].require);
    free(guards);
}

static void rung_free(struct rung *rung)
{
    for (size_t i = 0; i < rung->edit_count; i++) {
        free(rung->edits[i].set_text);
        oom_expr_free(rung->edits[i].to);
        oom_expr_free(rung->edits[i].when);
    }
    free(rung->edits);
    guards_free(rung->guards, rung->guard_count);
    oom_expr_free(rung->frees);
}

void oom_policy_free(struct oom_policy *policy)
{
    if (!policy)
        return;
    for (size_t i = 0; i < policy->knob_count; i++) {
        free(policy->knobs[i].id);
        free(policy->knobs[i].default_text);
        free(policy->knobs[i].aliases);
        oom_expr_free(policy->knobs[i].floor);
        oom_expr_free(policy->knobs[i].ceiling);
    }
    for (size_t i = 0; i < policy->rung_count; i++)
        rung_free(&policy->rungs[i]);
    for (size_t i = 0; i < policy->ladder_count; i++)
        free(policy->ladders[i].entries);
    for (size_t i = 0; i < policy->let_count; i++)
        oom_expr_free(policy->lets[i].expr);
    for (size_t i = 0; i < policy->capture_count; i++)
        oom_regex_free(policy->captures[i].regex);
    guards_free(policy->rules, policy->rule_count);
    free(policy->knobs);
    free(policy->rungs);
    free(policy->ladders);
    free(policy->lets);
    free(policy->captures);
    json_decref(policy->document);
    free(policy);
}

const char *oom_policy_name(const struct oom_policy *policy)
{
    return policy->name;
}

enum oom_family oom_policy_family(const struct oom_policy *policy)
{
    return policy->family;
}

const json_t *oom_policy_json(const struct oom_policy *policy)
{
    return policy->document;
}

int oom_policy_order(const struct oom_policy *policy)
{
    return policy->order;
}

int oom_policy_version(const struct oom_policy *policy)
{
    return policy->version;
}

void oom_policy_set_version(struct oom_policy *policy, int version)
{
    policy->version = version;
}

const char *oom_policy_overrides(const struct oom_policy *policy)
{
    return policy->overrides;
}

void oom_policy_set_overrides(struct oom_policy *policy, const char *overrides)
{
    snprintf(policy->overrides, sizeof(policy->overrides), "%s", overrides);
}

enum oom_consent oom_policy_consent(const struct oom_policy *policy)
{
    return policy->consent;
}

int oom_policy_max_retries(const struct oom_policy *policy)
{
    return policy->max_retries;
}

size_t oom_policy_knob_count(const struct oom_policy *policy)
{
    return policy->knob_count;
}

const struct oom_knob *oom_policy_knob_at(const struct oom_policy *policy, size_t index)
{
    return index < policy->knob_count ? &policy->knobs[index].info : NULL;
}

static const char *without_dashes(const char *name)
{
    if (strncmp(name, "--", 2) == 0)
        return name + 2;
    return name;
}

static bool same_name(const struct oom_policy *policy, const char *a, const char *b)
{
    if (policy->family == OOM_FAMILY_OMEGACONF) {
        a = without_dashes(a);
        b = without_dashes(b);
    }
    for (; *a && *b; a++, b++) {
        char x = policy->dash_alike && *a == '-' ? '_' : *a;
        char y = policy->dash_alike && *b == '-' ? '_' : *b;
        if (x != y)
            return false;
    }
    return *a == *b;
}

const struct knob *policy_knob(const struct oom_policy *policy, const char *name)
{
    for (size_t i = 0; i < policy->knob_count; i++) {
        const struct knob *knob = &policy->knobs[i];
        if (same_name(policy, knob->info.name, name))
            return knob;
        for (const char *const *alias = knob->info.aliases; alias && *alias; alias++)
            if (same_name(policy, *alias, name))
                return knob;
    }
    return NULL;
}

const struct oom_knob *oom_policy_knob(const struct oom_policy *policy, const char *name)
{
    const struct knob *knob = policy_knob(policy, name);
    return knob ? &knob->info : NULL;
}

const struct knob *policy_knob_by_id(const struct oom_policy *policy, const char *id)
{
    for (size_t i = 0; i < policy->knob_count; i++)
        if (strcmp(policy->knobs[i].id, id) == 0)
            return &policy->knobs[i];
    return NULL;
}

const struct rung *policy_rung(const struct oom_policy *policy, const char *name)
{
    for (size_t i = 0; i < policy->rung_count; i++)
        if (strcmp(policy->rungs[i].name, name) == 0)
            return &policy->rungs[i];
    return NULL;
}

static const struct ladder *ladder_exact(const struct oom_policy *policy, enum oom_domain domain,
                                         bool any, enum oom_phase phase)
{
    for (size_t i = 0; i < policy->ladder_count; i++) {
        const struct ladder *ladder = &policy->ladders[i];
        if (ladder->domain == domain && !ladder->before && ladder->any_phase == any &&
            (any || ladder->phase == phase))
            return ladder;
    }
    return NULL;
}

const struct ladder *policy_ladder(const struct oom_policy *policy, enum oom_domain domain,
                                   enum oom_phase phase)
{
    const struct ladder *ladder = ladder_exact(policy, domain, false, phase);
    if (!ladder)
        ladder = ladder_exact(policy, domain, true, OOM_PHASE_UNKNOWN);
    if (!ladder)
        ladder = ladder_exact(policy, domain, false, OOM_PHASE_UNKNOWN);
    return ladder;
}

const struct ladder *policy_before(const struct oom_policy *policy, enum oom_domain domain)
{
    for (size_t i = 0; i < policy->ladder_count; i++)
        if (policy->ladders[i].domain == domain && policy->ladders[i].before)
            return &policy->ladders[i];
    return NULL;
}

struct rung_params policy_entry_params(const struct rung *rung, const struct ladder_entry *entry)
{
    struct rung_params params = rung->params;
    const char *key;
    json_t *value;

    if (entry->overrides)
        json_object_foreach((json_t *)entry->overrides, key, value)
            policy_param_set(&params, key, value);
    return params;
}

/* Globs of a recogniser; an argument matches up to its '='. */
static bool any_matches(const json_t *globs, const char *text)
{
    size_t index;
    const json_t *glob;

    json_array_foreach((json_t *)globs, index,
                       glob) if (fnmatch(json_string_value(glob), text, 0) == 0) return true;
    return false;
}

static bool any_argument(const json_t *globs, const char *const *args, size_t count)
{
    char name[MAX_NAME];

    for (size_t i = 0; i < count; i++) {
        size_t length = strcspn(args[i], "=");
        if (length == 0 || length >= sizeof(name))
            continue;
        memcpy(name, args[i], length);
        name[length] = '\0';
        if (any_matches(globs, name))
            return true;
    }
    return false;
}

bool oom_policy_excludes(const struct oom_policy *policy, const char *program)
{
    const json_t *recognise = json_object_get(policy->document, "recognise");

    return any_matches(json_object_get(recognise, "not_programs"), program);
}

bool oom_policy_recognises(const struct oom_policy *policy, const char *program,
                           const char *const *args, size_t args_count)
{
    const json_t *recognise = json_object_get(policy->document, "recognise");
    const json_t *programs = json_object_get(recognise, "programs");
    const json_t *with = json_object_get(recognise, "with_argument");
    const json_t *without = json_object_get(recognise, "without_argument");

    if (!programs || !any_matches(programs, program) || oom_policy_excludes(policy, program))
        return false;
    if (with && !any_argument(with, args, args_count))
        return false;
    return !without || !any_argument(without, args, args_count);
}
