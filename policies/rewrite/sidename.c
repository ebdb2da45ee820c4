/* SPDX-License-Identifier: Apache-2.0
 *
 * How a command names a file that holds settings: behind a flag of the program, behind one of its
 * launcher, as its first argument, or in another configuration. */
#include <string.h>

#include "policies/rewrite/config.h"
#include "policies/rewrite/sides.h"

static const json_t *entry_of(const struct oom_policy *policy, const char *file)
{
    return json_object_get(json_object_get(oom_policy_json(policy), "files"), file);
}

const char *rw_file_of(const struct oom_policy *policy, const char *knob, const char **path)
{
    const json_t *files = json_object_get(oom_policy_json(policy), "files");
    const char *name;
    json_t *entry;

    json_object_foreach((json_t *)files, name, entry)
    {
        size_t n = strlen(name);
        if (strncmp(knob, name, n) == 0 && knob[n] == ':') {
            *path = knob + n + 1;
            return name;
        }
    }
    return NULL;
}

static bool same_flag(const char *text, size_t length, const char *flag)
{
    if (strlen(flag) != length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (text[i] != flag[i] &&
            !((text[i] == '-' || text[i] == '_') && (flag[i] == '-' || flag[i] == '_')))
            return false;
    return true;
}

/* Among the words of the launcher, which stand in front of the program's arguments. */
static bool in_launcher(const struct rw_cmd *cmd, const json_t *flags, struct rw_ref *ref)
{
    size_t end = cmd->arg0 < cmd->fields.count ? cmd->arg0 : cmd->fields.count, k;
    const json_t *flag;
    bool found = false;

    for (size_t i = cmd->launch; i < end; i++) {
        const char *text = cmd->fields.items[i].string;
        size_t length = strcspn(text, "=");
        json_array_foreach((json_t *)flags, k, flag)
        {
            if (!same_flag(text, length, json_string_value(flag)))
                continue;
            ref->field = text[length] ? i : i + 1;
            ref->from = text[length] ? (uint32_t)length + 1 : 0;
            found = ref->field < end;
        }
    }
    return found;
}

static bool in_arguments(struct rw *rw, const struct oom_policy *policy, const struct rw_cmd *cmd,
                         const json_t *flags, struct rw_ref *ref)
{
    const json_t *flag;
    bool found = false;
    size_t i;

    json_array_foreach((json_t *)flags, i, flag)
    {
        struct rw_knob knob = {.name = json_string_value(flag)};
        struct rw_hit hit;
        if (!rw_find_hit(rw, policy, cmd, &knob, &hit, NULL, NULL) || hit.form == RW_FORM_SWITCH ||
            hit.form == RW_FORM_NEGATED || (found && hit.value_field < ref->field))
            continue;
        found = true;
        ref->field = hit.value_field;
        ref->from = hit.form == RW_FORM_SEPARATE ? 0 : hit.from;
    }
    return found;
}

/* The command's own configuration sets the flag, under its name. */
static bool in_config(struct rw *rw, const struct oom_policy *policy, const struct rw_cmd *cmd,
                      const json_t *flags, struct rw_ref *ref)
{
    struct rw_config *config = rw_config_open(rw, policy, cmd, NULL);
    const json_t *flag;
    const char *value = NULL, *where;
    size_t i;

    json_array_foreach((json_t *)flags, i, flag)
    {
        if (!value &&
            rw_config_get(config, rw, policy, cmd, json_string_value(flag), &value, &where) &&
            value)
            ref->flag = json_string_value(flag);
    }
    rw_config_close(config);
    ref->path = value;
    ref->field = RW_NO_FIELD;
    return value != NULL;
}

/* Another file of the policy holds the name. */
static bool in_other(struct rw *rw, const struct oom_policy *policy, const struct rw_cmd *cmd,
                     const char *key, struct rw_ref *ref)
{
    const char *path, *outer = key ? rw_file_of(policy, key, &path) : NULL;
    struct rw_config *config = outer ? rw_config_open(rw, policy, cmd, outer) : NULL;
    const char *value = NULL, *where;

    if (config && !rw_config_get(config, rw, policy, cmd, path, &value, &where))
        value = NULL;
    rw_config_close(config);
    if (!value)
        return false;
    *ref = (struct rw_ref){.path = value, .field = RW_NO_FIELD, .outer = outer, .outer_key = path};
    return true;
}

bool rw_ref_find(struct rw *rw, const struct oom_policy *policy, const struct rw_cmd *cmd,
                 const char *file, struct rw_ref *ref)
{
    const json_t *entry = entry_of(policy, file), *flags = json_object_get(entry, "flags");
    bool launcher = json_is_true(json_object_get(entry, "launcher"));
    bool found;

    memset(ref, 0, sizeof(*ref));
    ref->flag = launcher ? NULL : json_string_value(json_array_get(flags, 0));
    found = launcher ? in_launcher(cmd, flags, ref) : in_arguments(rw, policy, cmd, flags, ref);
    if (!found && json_is_true(json_object_get(entry, "positional")) &&
        cmd->arg0 < cmd->fields.count) {
        ref->field = cmd->arg0;
        ref->flag = NULL;
        found = true;
    }
    if (!found)
        return in_other(rw, policy, cmd, json_string_value(json_object_get(entry, "key")), ref) ||
               (!launcher && in_config(rw, policy, cmd, flags, ref));
    const struct rw_field *field = &cmd->fields.items[ref->field];
    ref->to = field->text.length;
    ref->path = field->string + ref->from;
    /* A JSON object in place of a name holds the settings itself. */
    return rw_text_known(&field->text) && ref->to > ref->from && *ref->path != '{' &&
           *ref->path != '-';
}

void rw_ref_mark(struct rw *rw, const struct oom_policy *policy, const struct rw_cmd *cmd,
                 const char *file, bool *skip)
{
    const json_t *entry = entry_of(policy, file), *flag;
    struct rw_hit *hits = rw_alloc(&rw->arena, RW_MAX_HITS * sizeof(*hits));
    struct rw_hit last;
    struct rw_ref ref;
    size_t count, i;

    if (rw_ref_find(rw, policy, cmd, file, &ref) && ref.field != RW_NO_FIELD)
        skip[ref.field] = true;
    json_array_foreach(json_object_get(entry, "flags"), i, flag)
    {
        struct rw_knob knob = {.name = json_string_value(flag)};
        rw_find_hit(rw, policy, cmd, &knob, &last, hits, &count);
        for (size_t h = 0; h < count; h++)
            for (size_t f = hits[h].field; f <= hits[h].value_field; f++)
                skip[f] = true;
    }
}
