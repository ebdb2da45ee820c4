/* SPDX-License-Identifier: Apache-2.0
 *
 * What expressions can ask that is no setting: the incident, its message, the job. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "policies/decide_impl.h"
#include "policies/regex.h"

bool facts_is_word(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcasecmp(text, *words) == 0)
            return true;
    return false;
}

bool facts_read_mem_mib(const char *text, double *out)
{
    char *end;
    double factor = 1;
    double number = strtod(text, &end);

    if (end == text || number < 0)
        return false;
    switch (toupper((unsigned char)*end)) {
    case 'K':
        factor = 1.0 / 1024;
        break;
    case 'G':
        factor = 1024;
        break;
    case 'T':
        factor = 1024.0 * 1024;
        break;
    case 'M':
    case '\0':
        break;
    default:
        return false;
    }
    *out = number * factor;
    return true;
}

static const char *fact_text(const struct decide_env *env, const char *name)
{
    return env->input->values ? oom_values_get(env->input->values, name) : NULL;
}

static void set_bytes(int64_t bytes, struct oom_expr_value *out)
{
    if (bytes == OOM_UNSTATED)
        out->kind = OOM_EXPR_UNKNOWN;
    else
        oom_expr_set_number(out, (double)bytes);
}

/* The decisive line, as far as it fits. */
static void resolve_text(const struct oom_incident *incident, struct oom_expr_value *out)
{
    out->kind = OOM_EXPR_STRING;
    snprintf(out->text, sizeof(out->text), "%s", incident->cause.text ? incident->cause.text : "");
}

void facts_of_incident(const struct oom_incident *incident, const char *name,
                       struct oom_expr_value *out)
{
    const struct oom_numbers *n = &incident->numbers;

    if (strcmp(name, "domain") == 0)
        oom_expr_set_string(out, oom_domain_name(incident->domain));
    else if (strcmp(name, "phase") == 0)
        oom_expr_set_string(out, oom_phase_name(incident->phase));
    else if (strcmp(name, "direction") == 0 && incident->direction == OOM_DIRECTION_NONE)
        out->kind = OOM_EXPR_NULL;
    else if (strcmp(name, "direction") == 0)
        oom_expr_set_string(out, oom_direction_name(incident->direction));
    else if (strcmp(name, "text") == 0)
        resolve_text(incident, out);
    else if (strcmp(name, "short_bytes") == 0)
        set_bytes(oom_numbers_short_bytes(n), out);
    else if (strcmp(name, "tried_bytes") == 0)
        set_bytes(n->tried_bytes, out);
    else if (strcmp(name, "total_bytes") == 0)
        set_bytes(n->total_bytes, out);
    else if (strcmp(name, "free_bytes") == 0)
        set_bytes(n->free_bytes, out);
    else if (strcmp(name, "in_use_bytes") == 0)
        set_bytes(n->in_use_bytes, out);
    else if (strcmp(name, "allocated_bytes") == 0)
        set_bytes(n->allocated_bytes, out);
    else if (strcmp(name, "reserved_unallocated_bytes") == 0)
        set_bytes(n->reserved_unallocated_bytes, out);
    else if (strcmp(name, "fragmented") == 0)
        oom_expr_set_bool(out, oom_numbers_fragmented(n));
    else if (strcmp(name, "other_bytes") == 0 && n->total_bytes != OOM_UNSTATED &&
             n->free_bytes != OOM_UNSTATED && n->in_use_bytes != OOM_UNSTATED)
        set_bytes(n->total_bytes - n->free_bytes - n->in_use_bytes, out);
}

/* Log text is untrusted: only a number gets out of it, which the knob's bounds then check. */
void facts_of_message(const struct decide_env *env, const char *name, struct oom_expr_value *out)
{
    double number;
    const struct oom_incident *incident = env->incident;

    out->kind = OOM_EXPR_NULL;
    for (size_t i = 0; i < env->policy->capture_count; i++) {
        const struct capture *capture = &env->policy->captures[i];
        if (strcmp(capture->name, name) != 0)
            continue;
        if (incident->cause.text &&
            oom_regex_number(capture->regex, incident->cause.text, &number)) {
            oom_expr_set_number(out, number);
            return;
        }
        for (size_t s = 0; s < incident->secondary_count; s++) {
            const char *text = incident->secondary[s].text;
            if (text && oom_regex_number(capture->regex, text, &number)) {
                oom_expr_set_number(out, number);
                return;
            }
        }
    }
}

/* What the scheduler says of the job's memory, else what its script asks for. */
static void resolve_mem(const struct decide_env *env, struct oom_expr_value *out)
{
    double number;
    const char *text = fact_text(env, "slurm.mem_mib");
    const char *asked = fact_text(env, NAME_SLURM_MEM);

    if ((text && oom_expr_read_number(text, &number)) ||
        (asked && facts_read_mem_mib(asked, &number)))
        oom_expr_set_number(out, number);
    else
        out->kind = OOM_EXPR_NULL;
}

/* "4", "a100:4", "gpu:a100:4", "gpu:4(S:0-1)": 4. */
static bool gpus_of(const char *text, double *out)
{
    if (!text)
        return false;
    const char *colon = strrchr(text, ':');
    const char *open = strchr(text, '(');
    if (colon && open && colon > open) {
        colon = NULL;
        for (const char *c = text; c < open; c++)
            if (*c == ':')
                colon = c;
    }
    const char *digits = colon ? colon + 1 : text;
    char *end;
    *out = strtod(digits, &end);
    return end > digits && (*end == '\0' || *end == '(') && *out >= 1;
}

/* How many GPUs the job has: what the scheduler says, or what the script asks it for, or what
 * its launcher starts. */
static void resolve_gpus(const struct decide_env *env, bool world, struct oom_expr_value *out)
{
    double gpus, nodes = 1;
    const char *text = fact_text(env, "slurm.nodes");

    out->kind = OOM_EXPR_NULL;
    if (!text)
        text = fact_text(env, "slurm:nodes");
    if (text && !oom_expr_read_number(text, &nodes))
        return; /* "2-4" */
    if (gpus_of(fact_text(env, "slurm.gpus"), &gpus) ||
        gpus_of(fact_text(env, "slurm:gpus"), &gpus))
        oom_expr_set_number(out, world ? gpus : gpus / nodes);
    else if (gpus_of(fact_text(env, "slurm:gpus-per-node"), &gpus) ||
             gpus_of(fact_text(env, "slurm:gres"), &gpus))
        oom_expr_set_number(out, world ? gpus * nodes : gpus);
    else if (world && gpus_of(fact_text(env, "launch.processes"), &gpus))
        oom_expr_set_number(out, gpus);
}

void facts_of_job(const struct decide_env *env, const char *name, struct oom_expr_value *out)
{
    static const char *const yes[] = {"true", "yes", NULL};
    static const char *const no[] = {"false", "no", NULL};
    double number;

    if (strcmp(name, "slurm.mem_mib") == 0) {
        resolve_mem(env, out);
        return;
    }
    if (strcmp(name, "world.gpus") == 0 || strcmp(name, "node.gpus") == 0) {
        resolve_gpus(env, name[0] == 'w', out);
        return;
    }
    if (strcmp(name, "framework") == 0) {
        oom_expr_set_string(out, env->framework->name);
        return;
    }
    if (strcmp(name, "mode") == 0) {
        oom_expr_set_string(out, oom_mode_name(env->input->mode));
        return;
    }
    const char *text = fact_text(env, name);
    if (!text)
        out->kind = OOM_EXPR_NULL;
    else if (oom_expr_read_number(text, &number))
        oom_expr_set_number(out, number);
    else if (facts_is_word(text, yes) || facts_is_word(text, no))
        oom_expr_set_bool(out, facts_is_word(text, yes));
    else
        oom_expr_set_string(out, text);
}
