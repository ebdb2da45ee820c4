/* SPDX-License-Identifier: Apache-2.0
 *
 * The shell's variables during a walk, with a trail of changes so that a subshell or a branch that
 * leaves the script can be undone. */
#include "policies/rewrite/rw.h"

#include <string.h>

#define MAX_REFERENCES 8

uint64_t rw_hash(uint64_t seed, uint64_t value)
{
    uint64_t h = (seed ^ value) * UINT64_C(0x9E3779B97F4A7C15);

    return h ^ (h >> 29);
}

uint64_t rw_hash_string(const char *text, size_t length)
{
    uint64_t h = UINT64_C(1469598103934665603);

    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
    return h;
}

struct rw_var *rw_var_slot(struct rw *rw, const char *name, size_t length)
{
    struct rw_var **slot = &rw->vars[rw_hash_string(name, length) % RW_VAR_BUCKETS];

    for (struct rw_var *var = *slot; var; var = var->next)
        if (strlen(var->name) == length && memcmp(var->name, name, length) == 0)
            return var;
    struct rw_var *var = rw_alloc(&rw->arena, sizeof(*var));
    var->name = rw_strndup(&rw->arena, name, length);
    var->next = *slot;
    *slot = var;
    return var;
}

struct rw_var *rw_var_at(struct rw *rw, const char *name, size_t length)
{
    struct rw_var *var = rw_var_slot(rw, name, length);

    for (int i = 0; i < MAX_REFERENCES && var->value && var->value->refers; i++)
        var = rw_var_slot(rw, var->value->refers, strlen(var->value->refers));
    return var;
}

void rw_var_localise(struct rw *rw, struct rw_var *var)
{
    if (!rw->scope)
        return;
    rw->locals =
        rw_more(&rw->arena, rw->locals, rw->local_count, &rw->local_capacity, sizeof(*rw->locals));
    rw->locals[rw->local_count++] =
        (struct rw_local){var, var->value, var->loop, var->exported, rw->scope};
}

void rw_scope_enter(struct rw *rw)
{
    rw->scope++;
}

void rw_scope_leave(struct rw *rw)
{
    while (rw->local_count && rw->locals[rw->local_count - 1].scope == rw->scope) {
        const struct rw_local *local = &rw->locals[--rw->local_count];
        rw_var_set(rw, local->var, local->old);
        local->var->loop = local->old_loop;
        local->var->exported = local->old_exported;
    }
    rw->scope--;
}

const char *rw_ifs(struct rw *rw)
{
    const struct rw_value *value = rw_var_at(rw, "IFS", 3)->value;

    if (!value || value->unset || value->unknown || value->count != 1 ||
        !rw_text_known(&value->items[0].text))
        return " \t\n";
    return rw_text_string(rw, &value->items[0].text);
}

void rw_var_set(struct rw *rw, struct rw_var *var, const struct rw_value *value)
{
    rw->trail =
        rw_more(&rw->arena, rw->trail, rw->trail_count, &rw->trail_capacity, sizeof(*rw->trail));
    rw->trail[rw->trail_count++] = (struct rw_trail){var, var->value, var->loop, var->exported};
    var->value = value;
    var->loop = false;
}

void rw_var_set_text(struct rw *rw, const char *name, const struct rw_text *text)
{
    struct rw_value *value = rw_alloc(&rw->arena, sizeof(*value));

    value->items = rw_alloc(&rw->arena, sizeof(*value->items));
    value->items[0].text = *text;
    value->count = 1;
    rw_var_set(rw, rw_var_at(rw, name, strlen(name)), value);
}

void rw_var_set_unknown(struct rw *rw, const char *name)
{
    struct rw_value *value = rw_alloc(&rw->arena, sizeof(*value));

    value->unknown = true;
    rw_var_set(rw, rw_var_at(rw, name, strlen(name)), value);
}

size_t rw_trail_mark(const struct rw *rw)
{
    return rw->trail_count;
}

void rw_trail_undo(struct rw *rw, size_t mark)
{
    while (rw->trail_count > mark) {
        const struct rw_trail *entry = &rw->trail[--rw->trail_count];
        entry->var->value = entry->old;
        entry->var->loop = entry->old_loop;
        entry->var->exported = entry->old_exported;
    }
}

const char *rw_env_get(const struct rw *rw, const char *name)
{
    size_t length = strlen(name);

    for (const char *const *e = rw->source->environ_list; e && *e; e++)
        if (strncmp(*e, name, length) == 0 && (*e)[length] == '=')
            return *e + length + 1;
    return NULL;
}
