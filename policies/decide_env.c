/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "policies/decide_impl.h"
#include "policies/regex.h"

#define MIB 1048576.0

void env_init(struct decide_env *env, const struct oom_policy *policy,
              const struct oom_policy *framework, const struct oom_case *input,
              const struct oom_incident *incident)
{
    memset(env, 0, sizeof(*env));
    env->policy = policy;
    env->framework = framework;
    env->input = input;
    env->incident = incident;
    env->lets = policy->let_count;
}

static const struct oom_edit *find_edit(const struct oom_edits *edits, const char *knob)
{
    const struct oom_edit *found = NULL;

    for (size_t i = 0; edits && i < edits->count; i++)
        if (strcmp(edits->items[i].knob, knob) == 0)
            found = &edits->items[i];
    return found;
}

static const struct oom_value *find_value(const struct decide_env *env, const struct knob *knob)
{
    const struct oom_value *value = oom_values_find(env->input->values, knob->info.name);

    for (const char *const *alias = knob->info.aliases; !value && alias && *alias; alias++)
        value = oom_values_find(env->input->values, *alias);
    return value;
}

const char *env_knob_text(const struct decide_env *env, const struct knob *knob, bool old)
{
    const struct oom_edit *edit = old ? NULL : find_edit(env->edits, knob->info.name);

    if (!edit)
        edit = find_edit(env->base, knob->info.name);
    if (edit)
        return edit->new_value;
    const struct oom_value *value = env->input->values ? find_value(env, knob) : NULL;
    return value ? value->value : knob->info.default_value;
}

static bool is_word(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcasecmp(text, *words) == 0)
            return true;
    return false;
}

/* Text whose value only the shell, OmegaConf or the program itself knows. */
static bool is_opaque(const char *text)
{
    return strchr(text, '`') || strstr(text, "${") || strstr(text, "$(") || text[0] == '$' ||
           strcmp(text, "???") == 0;
}

static void typed_bool(const char *text, struct oom_expr_value *out)
{
    static const char *const yes[] = {"true", "1", "yes", "on", "y", "t", "", NULL};
    static const char *const no[] = {"false", "0", "no", "off", "n", "f", NULL};

    if (is_word(text, yes))
        oom_expr_set_bool(out, true);
    else if (is_word(text, no))
        oom_expr_set_bool(out, false);
    else
        oom_expr_set_string(out, text); /* axolotl: gradient_checkpointing: offload */
}

bool env_read_mem_mib(const char *text, double *out)
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

static void typed(const struct knob *knob, const char *text, struct oom_expr_value *out)
{
    static const char *const nulls[] = {"null", "none", "~", NULL};
    const char *type = knob->info.type;
    double number;

    if (!text) {
        if (strcmp(type, "switch") == 0)
            oom_expr_set_bool(out, false);
        else
            out->kind = OOM_EXPR_NULL;
    } else if (is_opaque(text)) {
        out->kind = OOM_EXPR_UNKNOWN;
    } else if (strcmp(type, "switch") == 0 || strcmp(type, "bool") == 0) {
        typed_bool(text, out);
    } else if (strcmp(type, "int") == 0 || strcmp(type, "float") == 0) {
        if (strncmp(knob->info.name, NAME_SLURM_MEM, strlen(NAME_SLURM_MEM)) == 0
                ? env_read_mem_mib(text, &number)
                : oom_expr_read_number(text, &number))
            oom_expr_set_number(out, number);
        else if (is_word(text, nulls) || text[0] == '\0')
            out->kind = OOM_EXPR_NULL;
        else
            oom_expr_set_string(out, text);
    } else if (strcmp(text, "null") == 0 || strcmp(text, "None") == 0) {
        out->kind = OOM_EXPR_NULL;
    } else {
        oom_expr_set_string(out, text);
    }
}

void env_knob_value(const struct decide_env *env, const struct knob *knob, bool old,
                    struct oom_expr_value *out)
{
    typed(knob, env_knob_text(env, knob, old), out);
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

static void resolve_incident(const struct oom_incident *incident, const char *name,
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

static bool resolve_param(const struct rung_params *params, const char *name,
                          struct oom_expr_value *out)
{
    const struct {
        const char *name;
        double value;
    } rows[] = {
        {"scale", params->scale}, {"factor", params->factor}, {"target", params->target},
        {"least", params->least}, {"share", params->share},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            oom_expr_set_number(out, rows[i].value);
            return true;
        }
    }
    return false;
}

/* Log text is untrusted: only a number gets out of it, which the knob's bounds then check. */
static void resolve_capture(const struct decide_env *env, const char *name,
                            struct oom_expr_value *out)
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

static void resolve_mem(const struct decide_env *env, const char *mib, const char *bytes,
                        struct oom_expr_value *out)
{
    double number;
    const char *text = fact_text(env, mib);

    if (text && oom_expr_read_number(text, &number)) {
        oom_expr_set_number(out, number);
        return;
    }
    text = fact_text(env, bytes);
    if (text && oom_expr_read_number(text, &number)) {
        oom_expr_set_number(out, number / MIB);
        return;
    }
    text = fact_text(env, NAME_SLURM_MEM);
    if (strcmp(mib, "slurm.mem_mib") == 0 && text && env_read_mem_mib(text, &number))
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
    while (colon && open && colon > open) {
        const char *before = NULL;
        for (const char *c = text; c < open; c++)
            if (*c == ':')
                before = c;
        colon = before;
        break;
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

static void resolve_fact(const struct decide_env *env, const char *name, struct oom_expr_value *out)
{
    static const char *const yes[] = {"true", "yes", NULL};
    static const char *const no[] = {"false", "no", NULL};
    double number;

    if (strcmp(name, "slurm.mem_mib") == 0) {
        resolve_mem(env, name, "slurm.mem_bytes", out);
        return;
    }
    if (strcmp(name, "slurm.mem_max_mib") == 0) {
        resolve_mem(env, name, "slurm.mem_max_bytes", out);
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
    else if (is_word(text, yes) || is_word(text, no))
        oom_expr_set_bool(out, is_word(text, yes));
    else
        oom_expr_set_string(out, text);
}

/* Whether an inference engine shares the trainer's GPUs is the framework's to say; one that does
 * not say never does. */
static void resolve_colocated(const struct decide_env *env, struct oom_expr_value *out)
{
    const struct oom_policy *framework = env->framework;

    oom_expr_set_bool(out, false);
    for (size_t i = 0; framework && i < framework->let_count; i++) {
        if (strcmp(framework->lets[i].name, "colocated") != 0)
            continue;
        struct decide_env theirs = *env;
        theirs.policy = framework;
        theirs.lets = i;
        oom_expr_eval(framework->lets[i].expr, env_resolve, &theirs, out);
    }
}

void env_resolve(void *arg, const char *name, struct oom_expr_value *out)
{
    const struct decide_env *env = arg;
    bool old = strncmp(name, "old.", 4) == 0;

    out->kind = OOM_EXPR_UNKNOWN;
    if (old)
        name += 4;
    const struct knob *knob = policy_knob_by_id(env->policy, name);
    if (knob) {
        env_knob_value(env, knob, old, out);
        return;
    }
    if (env->params && resolve_param(env->params, name, out))
        return;
    if (strncmp(name, "incident.", 9) == 0) {
        resolve_incident(env->incident, name + 9, out);
        return;
    }
    if (strncmp(name, "message.", 8) == 0) {
        resolve_capture(env, name, out);
        return;
    }
    for (size_t i = 0; i < env->lets; i++) {
        if (strcmp(env->policy->lets[i].name, name) != 0)
            continue;
        struct decide_env below = *env;
        below.lets = i; /* a let sees only those before it: no cycles */
        if (old)
            below.edits = NULL;
        oom_expr_eval(env->policy->lets[i].expr, env_resolve, &below, out);
        return;
    }
    if (strcmp(name, "colocated") == 0) {
        resolve_colocated(env, out);
        return;
    }
    resolve_fact(env, name, out);
}

int env_truth(struct decide_env *env, const struct oom_expr *expr)
{
    struct oom_expr_value value;

    oom_expr_eval(expr, env_resolve, env, &value);
    switch (value.kind) {
    case OOM_EXPR_BOOL:
        return value.truth;
    case OOM_EXPR_NUMBER:
        return value.number != 0.0;
    case OOM_EXPR_STRING:
        return value.text[0] != '\0';
    case OOM_EXPR_NULL:
        return 0;
    case OOM_EXPR_UNKNOWN:
        break;
    }
    return -1;
}

bool env_number(struct decide_env *env, const struct oom_expr *expr, double *out)
{
    struct oom_expr_value value;

    oom_expr_eval(expr, env_resolve, env, &value);
    *out = value.number;
    return value.kind == OOM_EXPR_NUMBER;
}
