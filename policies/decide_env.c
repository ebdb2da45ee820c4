/* SPDX-License-Identifier: Apache-2.0
 *
 * What a name in an expression stands for: a setting, a parameter of the rung, a let, a fact. */
#include <string.h>

#include "policies/decide_impl.h"

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

    if (facts_is_word(text, yes))
        oom_expr_set_bool(out, true);
    else if (facts_is_word(text, no))
        oom_expr_set_bool(out, false);
    else
        oom_expr_set_string(out, text); /* axolotl: gradient_checkpointing: offload */
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
                ? facts_read_mem_mib(text, &number)
                : oom_expr_read_number(text, &number))
            oom_expr_set_number(out, number);
        else if (facts_is_word(text, nulls) || text[0] == '\0')
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
        facts_of_incident(env->incident, name + 9, out);
        return;
    }
    if (strncmp(name, "message.", 8) == 0) {
        facts_of_message(env, name, out);
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
    facts_of_job(env, name, out);
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
