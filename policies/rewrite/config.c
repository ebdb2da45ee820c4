/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration file behind a training command: what it sets when the command line does not.
 * The policy's "config" says which flags name such a file, and whether the first argument may. */
#include <stdlib.h>
#include <string.h>

#include "policies/conffile.h"
#include "policies/rewrite/config.h"
#include "policies/rewrite/sides.h"

struct rw_config {
    struct oom_config parsed;
    const char *path;
    bool own; /* the command's, so that its command line can override it */
};

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n > m && strcmp(text + n - m, end) == 0;
}

static bool names_file(const char *text)
{
    return ends_with(text, ".yaml") || ends_with(text, ".yml") || ends_with(text, ".json") ||
           ends_with(text, ".toml");
}

/* The word that names the file, or NULL: the last of the flags wins. */
static const char *config_path(struct rw *rw, const struct oom_policy *policy,
                               const struct rw_cmd *cmd)
{
    const json_t *config = json_object_get(oom_policy_json(policy), "config");
    const json_t *flag;
    const char *found = NULL;
    size_t i;

    json_array_foreach(json_object_get(config, "flags"), i, flag)
    {
        struct rw_knob knob = {.name = json_string_value(flag)};
        struct rw_hit hit;
        if (knob.name && rw_find_hit(rw, policy, cmd, &knob, &hit, NULL, NULL) &&
            rw_text_known(&cmd->fields.items[hit.value_field].text))
            found = rw_hit_value(rw, cmd, &hit);
    }
    if (!found && json_is_true(json_object_get(config, "positional")) &&
        cmd->arg0 < cmd->fields.count && rw_text_known(&cmd->fields.items[cmd->arg0].text))
        found = cmd->fields.items[cmd->arg0].string;
    return found && names_file(found) ? found : NULL;
}

struct rw_config *rw_config_open(struct rw *rw, const struct oom_policy *policy,
                                 const struct rw_cmd *cmd, const char *file)
{
    struct rw_ref ref = {0};
    const char *path = !file                                      ? config_path(rw, policy, cmd)
                       : rw_ref_find(rw, policy, cmd, file, &ref) ? ref.path
                                                                  : NULL;
    struct rw_config *config;
    char *bytes = NULL;
    size_t length = 0;

    if (!path || !rw->source->read_side ||
        rw->source->read_side(rw->source->read_side_arg, path, &bytes, &length) != 0)
        return NULL;
    config = length <= RW_MAX_SCRIPT_BYTES ? calloc(1, sizeof(*config)) : NULL;
    if (config &&
        oom_config_parse(bytes, length, oom_config_format_of(path), &config->parsed) == 0) {
        config->path = path;
        config->own = !file;
    } else if (config) {
        oom_config_free(&config->parsed);
        free(config);
        config = NULL;
    }
    free(bytes);
    return config;
}

void rw_config_close(struct rw_config *config)
{
    if (!config)
        return;
    oom_config_free(&config->parsed);
    free(config);
}

struct overrides {
    struct rw *rw;
    const struct oom_policy *policy;
    const struct rw_cmd *cmd;
};

static const char * override(void *arg, const char *path)
{
    const struct overrides *o = arg;
    struct rw_knob knob = {.name = path, .known = oom_policy_knob(o->policy, path)};
    struct rw_hit hit;

    return rw_find_hit(o->rw, o->policy, o->cmd, &knob, &hit, NULL, NULL)
               ? rw_hit_value(o->rw, o->cmd, &hit)
               : NULL;
}

/* A knob's name as the file spells it: "--micro-batch-size" is micro_batch_size there. */
static bool file_name(const struct oom_policy *policy, const char *name, char *out, size_t size)
{
    enum oom_family family = oom_policy_family(policy);
    bool flag = name[0] == '-';

    while (*name == '-')
        name++;
    if (strlen(name) >= size)
        return false;
    strcpy(out, name);
    for (char *c = out; flag && family != OOM_FAMILY_HYDRA && *c; c++)
        if (*c == '-')
            *c = '_';
    return true;
}

bool rw_config_get(struct rw_config *config, struct rw *rw, const struct oom_policy *policy,
                   const struct rw_cmd *cmd, const char *knob, const char **value,
                   const char **where)
{
    struct overrides o = {.rw = rw, .policy = policy, .cmd = cmd};
    char path[256], scratch[512];

    if (!config || strlen(knob) >= sizeof(path))
        return false;
    if (!config->own)
        strcpy(path, knob);
    if ((config->own && !file_name(policy, knob, path, sizeof(path))) ||
        !oom_config_value(&config->parsed, path, config->own ? override : NULL, &o, scratch,
                          sizeof(scratch), value))
        return false;
    if (*value)
        *value = rw_strndup(&rw->arena, *value, strlen(*value));
    *where =
        rw_printf(&rw->arena, "%s:%u", config->path, oom_config_find(&config->parsed, path)->line);
    return true;
}
