/* SPDX-License-Identifier: Apache-2.0
 *
 * Environment variables behind `ray job submit`. Ray starts the workers from its own daemons: what
 * the entrypoint has in its environment does not reach them, what the job's runtime environment
 * says in "env_vars" does. So that is where they are read and written, byte-exactly as in any other
 * JSON; a command without a runtime environment gets one. One that is a file, or that is no JSON on
 * paper, is left alone, and the variable stays with the entrypoint. */
#include <stdlib.h>
#include <string.h>

#include "policies/confedit.h"
#include "policies/conftree.h"
#include "policies/rewrite/plan.h"

static const char option[] = "--runtime-env-json";
static const char file_option[] = "--runtime-env";

/* The JSON in a field of the command. */
struct runtime_env {
    size_t field;
    uint32_t from;
    const char *json; /* NULL: there is none */
};

static bool is_option(const char *word, const char *name)
{
    size_t n = strlen(name);

    return strncmp(word, name, n) == 0 && (!word[n] || word[n] == '=');
}

/* False: the variables of the workers are out of reach. */
static bool find(const struct rw_cmd *cmd, struct runtime_env *out)
{
    memset(out, 0, sizeof(*out));
    for (size_t i = cmd->ray_from; i < cmd->ray_to; i++) {
        const char *word = cmd->fields.items[i].string;
        if (is_option(word, file_option))
            return false;
        if (!is_option(word, option))
            continue;
        bool apart = !word[strlen(option)];
        out->field = i + apart;
        out->from = apart ? 0 : (uint32_t)sizeof(option);
        if (out->field >= cmd->ray_to || cmd->fields.items[out->field].text.wild)
            return false;
        out->json = cmd->fields.items[out->field].string + out->from;
        i += apart;
    }
    return cmd->ray;
}

/* Where the variable's value stands in the JSON, with its quotes. */
static bool find_entry(const char *json, const char *name, struct conf_tree *tree,
                       const struct conf_node **entry)
{
    char path[OOM_CONFIG_MAX_PATH];
    uint32_t node = 0;

    snprintf(path, sizeof(path), "env_vars.%s", name);
    if (conf_tree_read(tree, option, json, strlen(json), true, NULL) == 0)
        node = conf_at(tree, path);
    *entry = node ? &tree->nodes[node] : NULL;
    return node && (*entry)->kind == CONF_SCALAR;
}

static bool has_entry(const struct runtime_env *env, const char *name)
{
    struct conf_tree tree = {0};
    const struct conf_node *entry;

    if (!env->json || !strstr(env->json, name))
        return false;
    bool found = find_entry(env->json, name, &tree, &entry);
    conf_tree_free(&tree);
    return found;
}

bool rw_ray_reaches(const struct rw_cmd *cmd)
{
    struct runtime_env env;
    json_t *json;

    if (!cmd->ray || !find(cmd, &env))
        return false;
    if (!env.json)
        return true;
    json = json_loads(env.json, 0, NULL);
    bool object = json_is_object(json);
    const json_t *vars = json_object_get(json, "env_vars");
    object = object && (!vars || json_is_object(vars));
    json_decref(json);
    return object;
}

bool rw_ray_value(struct rw *rw, const struct rw_cmd *cmd, const char *name, struct rw_text *out)
{
    struct conf_tree tree = {0};
    const struct conf_node *entry;
    struct runtime_env env;

    memset(out, 0, sizeof(*out));
    if (!cmd->ray || !find(cmd, &env) || !env.json || !strstr(env.json, name))
        return false;
    bool found = find_entry(env.json, name, &tree, &entry);
    bool plain = found && entry->style == '"' && entry->end - entry->start - 2 == entry->length;
    uint32_t start = found ? entry->start : 0, end = found ? entry->end : 0;
    char *decoded = found ? strndup(entry->text, entry->length) : NULL;
    conf_tree_free(&tree);
    if (!decoded)
        return false;
    const char *text = rw_strndup(&rw->arena, decoded, strlen(decoded));
    free(decoded);
    if (plain) {
        rw_text_slice(rw, &cmd->fields.items[env.field].text, env.from + start + 1,
                      env.from + end - 1, out);
    } else {
        struct rw_frag frag = {
            text, (uint32_t)strlen(text), RW_DERIVED, RW_DQ, rw->root, 0, 0, NULL, false};
        rw_text_push(rw, out, &frag);
    }
    return true;
}

/* The JSON with the edits, in the arena; NULL: it cannot be edited. */
static const char *edited(struct rw *rw, const char *json, const struct oom_confedit *edits,
                          size_t count)
{
    char *bytes;
    size_t length;

    if (oom_confedit_apply(option, json, strlen(json), OOM_CONFIG_JSON, edits, count, &bytes,
                           &length, NULL) != 0)
        return NULL;
    char *copy = rw_strndup(&rw->arena, bytes, length);
    free(bytes);
    return copy;
}

/* Only what differs is replaced; a byte that stays is taken with it where nothing would be. */
static void replace(struct rw *rw, const struct rw_cmd *cmd, const struct runtime_env *env,
                    const char *json, struct rw_places *out)
{
    size_t old = strlen(env->json), new = strlen(json), head = 0, tail = 0;
    struct rw_text slice;

    while (head < old && head < new && env->json[head] == json[head])
        head++;
    while (tail < old - head && tail < new - head &&
           env->json[old - 1 - tail] == json[new - 1 - tail])
        tail++;
    if (old - tail == head && head)
        head--;
    rw_text_slice(rw, &cmd->fields.items[env->field].text, env->from + (uint32_t)head,
                  env->from + (uint32_t)(old - tail), &slice);
    rw_places_replace(rw, &slice, rw_strndup(&rw->arena, json + head, new - tail - head), out);
}

void rw_ray_places(struct rw *rw, const struct rw_cmd *cmd, const struct rw_knob *knob,
                   const struct rw_knob *knobs, size_t knob_count, struct rw_places *out)
{
    struct oom_confedit *edits = rw_alloc(&rw->arena, (knob_count + 1) * sizeof(*edits));
    const char *name = knob->name + strlen("env:");
    struct runtime_env env;
    size_t count = 0;

    if (!find(cmd, &env))
        return;
    bool present = has_entry(&env, name);
    /* All that are new go in together: they would meet at one place. */
    for (size_t k = 0; k < knob_count; k++) {
        const char *other = knobs[k].env ? knobs[k].name + strlen("env:") : NULL;
        if (!other ||
            (present ? strcmp(other, name) != 0 : !knobs[k].value || has_entry(&env, other)))
            continue;
        edits[count++] = (struct oom_confedit){rw_printf(&rw->arena, "env_vars.%s", other),
                                               knobs[k].value, "string"};
    }
    const char *json = edited(rw, env.json ? env.json : "{}", edits, count);
    if (!json)
        return;
    if (env.json) {
        replace(rw, cmd, &env, json, out);
        return;
    }
    bool dashes =
        cmd->ray_to > cmd->ray_from && strcmp(cmd->fields.items[cmd->ray_to - 1].string, "--") == 0;
    rw_places_add(rw, cmd, dashes ? cmd->ray_to - 1 : cmd->ray_from,
                  rw_printf(&rw->arena, "%s=%s", option, rw_shell_word(rw, json)), out);
}

void rw_ray_mark(const struct rw_cmd *cmd, bool *skip)
{
    struct runtime_env env;

    if (!cmd->ray || !find(cmd, &env) || !env.json)
        return;
    skip[env.field] = true;
    if (!env.from)
        skip[env.field - 1] = true;
}

/* The runtime environment without the knobs; NULL: none, or no JSON. */
static json_t *rest_of(const struct rw_cmd *cmd, const struct rw_knob *knobs, size_t knob_count)
{
    struct runtime_env env;

    if (!find(cmd, &env))
        return NULL;
    json_t *json = env.json ? json_loads(env.json, 0, NULL) : json_object();
    json_t *vars = json_object_get(json, "env_vars");
    for (size_t k = 0; k < knob_count; k++)
        if (knobs[k].env)
            json_object_del(vars, knobs[k].name + strlen("env:"));
    if (json_object_size(vars) == 0)
        json_object_del(json, "env_vars");
    return json;
}

bool rw_ray_same(const struct rw_cmd *old, const struct rw_cmd *new, const struct rw_knob *knobs,
                 size_t knob_count)
{
    if (!old->ray || !new->ray)
        return old->ray == new->ray;
    json_t *a = rest_of(old, knobs, knob_count), *b = rest_of(new, knobs, knob_count);
    struct runtime_env x, y;
    bool same = a && b ? json_equal(a, b)
                       : find(old, &x) == find(new, &y) &&
                             (!x.json || !y.json ? x.json == y.json : strcmp(x.json, y.json) == 0);

    json_decref(a);
    json_decref(b);
    return same;
}
