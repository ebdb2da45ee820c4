/* SPDX-License-Identifier: Apache-2.0
 *
 * read and mapfile: variables from what stands on standard input. */
#include <string.h>

#include "policies/rewrite/rw.h"

static void set_fields(struct rw *rw, const char *name, struct rw_fields *fields)
{
    struct rw_value *value = rw_alloc(&rw->arena, sizeof(*value));

    rw_finish_fields(rw, fields, 0);
    value->array = true;
    value->items = fields->items;
    value->count = fields->count;
    rw_var_set(rw, rw_var_at(rw, name, strlen(name)), value);
}

static bool is_one_of(const char *set, char c)
{
    return c && strchr(set, c);
}

/* A separator that is no blank stays where it is: it stands for an empty value. */
static bool trimmed(const char *ifs, char c)
{
    return is_one_of(" \t\n", c) && is_one_of(ifs, c);
}

static void trim(struct rw *rw, struct rw_text *text, const char *ifs)
{
    const char *string = rw_text_string(rw, text);
    uint32_t from = 0, to = text->length;
    struct rw_text out;

    while (from < to && trimmed(ifs, string[from]))
        from++;
    while (to > from && trimmed(ifs, string[to - 1]))
        to--;
    rw_text_slice(rw, text, from, to, &out);
    *text = out;
}

/* The next value of `text`, which keeps the rest. */
static void take_value(struct rw *rw, struct rw_text *text, const char *ifs, struct rw_text *out)
{
    const char *string = rw_text_string(rw, text);
    uint32_t stop = (uint32_t)strcspn(string, ifs), next = stop;
    struct rw_text rest;

    rw_text_slice(rw, text, 0, stop, out);
    while (next < text->length && trimmed(ifs, string[next]))
        next++;
    if (next < text->length && is_one_of(ifs, string[next]) && !trimmed(ifs, string[next]))
        next++;
    rw_text_slice(rw, text, next, text->length, &rest);
    trim(rw, &rest, ifs);
    *text = rest;
}

/* `IFS=, read …`: what splits this one line. */
static const char *separators(struct rw *rw, const struct rw_cmd *cmd)
{
    for (const struct rw_env *env = cmd->env; env; env = env->next)
        if (strcmp(env->name, "IFS") == 0)
            return rw_text_string(rw, &env->value);
    return rw_ifs(rw);
}

void rw_builtin_read(struct rw *rw, const struct rw_cmd *cmd, const struct rw_text *input)
{
    bool array = false, whole = false;
    size_t i = 1;

    for (; i < cmd->fields.count && cmd->fields.items[i].string[0] == '-'; i++) {
        const char *option = cmd->fields.items[i].string;
        if (strchr(option, 'a'))
            array = true;
        if (strchr(option, 'd')) {
            whole = true;
            i++;
        } else if (strpbrk(option, "nNptui") && !strchr(option, 'a')) {
            i++;
        }
    }
    if (!input) {
        for (; i < cmd->fields.count; i++)
            rw_var_set_unknown(rw, cmd->fields.items[i].string);
        return;
    }
    struct rw_text text = *input;
    const char *ifs = separators(rw, cmd);
    if (!whole) {
        const char *string = rw_text_string(rw, input);
        rw_text_slice(rw, input, 0, (uint32_t)strcspn(string, "\n"), &text);
    }
    trim(rw, &text, ifs);
    if (array && i < cmd->fields.count) {
        struct rw_fields fields = {0};
        struct rw_sink sink = {.fields = &fields, .split = true, .ifs = ifs};
        rw_sink_put(rw, &sink, &text, false);
        set_fields(rw, cmd->fields.items[i].string, &fields);
        return;
    }
    for (; i < cmd->fields.count; i++) {
        struct rw_text value = text;
        if (i + 1 < cmd->fields.count)
            take_value(rw, &text, ifs, &value);
        rw_var_set_text(rw, cmd->fields.items[i].string, &value);
    }
}

void rw_builtin_mapfile(struct rw *rw, const struct rw_cmd *cmd, const struct rw_text *input)
{
    const char *name = cmd->fields.items[cmd->fields.count - 1].string;
    struct rw_fields fields = {0};

    if (cmd->fields.count < 2 || *name == '-')
        return;
    if (!input) {
        rw_var_set_unknown(rw, name);
        return;
    }
    const char *string = rw_text_string(rw, input);
    for (uint32_t at = 0; at < input->length;) {
        uint32_t stop = at + (uint32_t)strcspn(string + at, "\n");
        struct rw_text line;
        rw_text_slice(rw, input, at, stop, &line);
        rw_fields_add(rw, &fields)->text = line;
        at = stop + 1;
    }
    set_fields(rw, name, &fields);
}
