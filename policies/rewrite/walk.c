/* SPDX-License-Identifier: Apache-2.0
 *
 * Goes through a script the way bash would, in one world: every statement is looked at, a branch
 * is taken or not as the world says, a loop runs over what is known and else once. */
#include "policies/rewrite/rw.h"

#include <string.h>

#define MAX_DEPTH      40
#define MAX_ITERATIONS 256

static void walk(struct rw *rw, struct rw_buf *buf, uint32_t index, const struct rw_text *input);

static bool is_token(const struct rw_buf *buf, const struct rw_node *node, const char *text)
{
    size_t length = strlen(text);

    return node->type == RW_N_TOKEN && node->end - node->start == length &&
           memcmp(buf->bytes + node->start, text, length) == 0;
}

/* ---- decisions */

static struct rw_decision *decision_at(struct rw *rw, uint64_t key, int choices, const char *name)
{
    for (size_t i = 0; i < rw->decision_count; i++)
        if (rw->decisions[i].key == key)
            return &rw->decisions[i];
    rw->decisions = rw_more(&rw->arena, rw->decisions, rw->decision_count, &rw->decision_capacity,
                            sizeof(*rw->decisions));
    struct rw_decision *decision = &rw->decisions[rw->decision_count++];
    memset(decision, 0, sizeof(*decision));
    decision->key = key;
    decision->choices = choices;
    decision->name = name;
    return decision;
}

int rw_choose(struct rw *rw, uint64_t key, const char *name, int choices)
{
    const struct rw_decision *decision = decision_at(rw, key, choices, name);
    size_t index = (size_t)(decision - rw->decisions);

    if (index == rw->flip)
        return rw->flip_choice;
    return rw->last ? choices - 1 : 0;
}

/* Notes what a branch changed, so that branches without influence need no world. */
static void note_branch(struct rw *rw, uint64_t key, size_t trail, size_t cmds)
{
    struct rw_decision *decision = decision_at(rw, key, 0, NULL);

    decision->commands |= rw->cmd_count > cmds;
    for (size_t i = trail; i < rw->trail_count; i++) {
        const char *name = rw->trail[i].var->name;
        bool known = false;
        for (size_t j = 0; j < decision->assigned_count && !known; j++)
            known = decision->assigned[j] == name;
        if (known)
            continue;
        decision->assigned = rw_more(&rw->arena, decision->assigned, decision->assigned_count,
                                     &decision->assigned_capacity, sizeof(*decision->assigned));
        decision->assigned[decision->assigned_count++] = name;
    }
}

/* ---- assignments */

/* The words of a node's children: ranges that touch are one word. */
static uint32_t word_end(const struct rw_buf *buf, const struct rw_node *node, uint32_t *index)
{
    uint32_t end = node->end;

    while (node->next && buf->nodes[node->next].start == end) {
        *index = node->next;
        node = &buf->nodes[*index];
        if (is_token(buf, node, ")") || is_token(buf, node, ";") || is_token(buf, node, "&"))
            break;
        end = node->end;
    }
    return end;
}

static void array_value(struct rw *rw, struct rw_buf *buf, const struct rw_node *array,
                        struct rw_fields *out)
{
    uint32_t close = array->end ? array->end - 1 : 0;

    for (uint32_t i = array->first; i; i = buf->nodes[i].next) {
        const struct rw_node *node = &buf->nodes[i];
        if (node->type == RW_N_COMMENT || is_token(buf, node, "(") || is_token(buf, node, ")"))
            continue;
        uint32_t end = word_end(buf, node, &i);
        rw_expand_word(rw, buf, node->start, end < close ? end : close, true, out);
    }
}

/* What stands in for a variable of the environment that is appended to. */
static void push_self(struct rw *rw, const struct rw_buf *buf, const struct rw_var *var,
                      uint32_t at, struct rw_text *out)
{
    const char *bytes = rw_env_get(rw, var->name);
    struct rw_frag frag = {.kind = bytes ? RW_DERIVED : RW_UNKNOWN,
                           .quote = RW_DQ,
                           .buf = buf,
                           .start = at,
                           .end = at};

    if (!bytes && rw->source->environ_list && !rw->opaque_env)
        return;
    if (!bytes)
        bytes = rw_printf(&rw->arena, "$%s", var->name);
    frag.bytes = bytes;
    frag.length = (uint32_t)strlen(bytes);
    rw_text_push(rw, out, &frag);
    out->wild = frag.kind == RW_UNKNOWN;
}

static void set_element(struct rw *rw, struct rw_var *var, const char *index, size_t length,
                        const struct rw_text *text)
{
    int64_t at;

    if (!rw_arithmetic(rw, index, length, &at) || at < 0 || at > 4096 ||
        (var->value && var->value->unknown)) {
        rw_var_set_unknown(rw, var->name);
        return;
    }
    struct rw_value *value = rw_alloc(&rw->arena, sizeof(*value));
    size_t old = var->value ? var->value->count : 0;
    value->array = true;
    value->count = (size_t)at + 1 > old ? (size_t)at + 1 : old;
    value->items = rw_alloc(&rw->arena, value->count * sizeof(*value->items));
    for (size_t i = 0; i < old; i++)
        value->items[i] = var->value->items[i];
    value->items[at].text = *text;
    rw_var_set(rw, var, value);
}

static void assign(struct rw *rw, struct rw_buf *buf, const struct rw_node *node, bool opaque)
{
    const struct rw_node *target = &buf->nodes[node->first];
    uint32_t name_end = target->start;
    const char *b = buf->bytes;

    while (name_end < target->end && b[name_end] != '[' && b[name_end] != '=' && b[name_end] != '+')
        name_end++;
    struct rw_var *var = rw_var_at(rw, b + target->start, name_end - target->start);
    uint32_t at = target->end;
    bool append = at < node->end && b[at] == '+';
    at += append ? 2 : 1;
    if (opaque || at > node->end) {
        rw_var_set_unknown(rw, var->name);
        return;
    }
    const struct rw_node *array = NULL;
    for (uint32_t i = target->next; i; i = buf->nodes[i].next)
        if (buf->nodes[i].type == RW_N_ARRAY)
            array = &buf->nodes[i];
    struct rw_fields fields = {0};
    if (array)
        array_value(rw, buf, array, &fields);
    else
        rw_expand_word(rw, buf, at, node->end, false, &fields);
    if (target->type == RW_N_SUBSCRIPT && fields.count == 1) {
        set_element(rw, var, b + name_end + 1, target->end - name_end - 2, &fields.items[0].text);
        return;
    }
    struct rw_value *value = rw_alloc(&rw->arena, sizeof(*value));
    value->array = array != NULL;
    const struct rw_value *old = append ? var->value : NULL;
    if (append && (!old || old->unknown || old->unset)) {
        struct rw_value *self = rw_alloc(&rw->arena, sizeof(*self));
        self->items = rw_alloc(&rw->arena, sizeof(*self->items));
        if (!old || old->unknown)
            push_self(rw, buf, var, node->start, &self->items[0].text);
        self->count = array && !self->items[0].text.length ? 0 : 1;
        self->array = value->array;
        old = self;
    }
    if (append && !array && old->count) {
        value->array = old->array;
        value->count = old->count;
        value->items = rw_alloc(&rw->arena, value->count * sizeof(*value->items));
        memcpy(value->items, old->items, value->count * sizeof(*value->items));
        struct rw_text joined = {0};
        rw_text_append(rw, &joined, &old->items[0].text);
        rw_text_append(rw, &joined, &fields.items[0].text);
        value->items[0].text = joined;
        value->items[0].string = NULL;
    } else {
        size_t before = append ? old->count : 0;
        value->count = before + fields.count;
        value->items = rw_alloc(&rw->arena, (value->count + 1) * sizeof(*value->items));
        if (before)
            memcpy(value->items, old->items, before * sizeof(*value->items));
        if (fields.count)
            memcpy(value->items + before, fields.items, fields.count * sizeof(*value->items));
        value->array |= append && old->array;
    }
    rw_var_set(rw, var, value);
}

static void declare(struct rw *rw, struct rw_buf *buf, const struct rw_node *node)
{
    bool export = buf->bytes[node->start] == 'e', opaque = false;

    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        const struct rw_node *child = &buf->nodes[i];
        uint32_t length = child->end - child->start;
        const char *bytes = buf->bytes + child->start;
        size_t before = rw->trail_count;
        if (child->type == RW_N_ASSIGNMENT) {
            assign(rw, buf, child, opaque);
        } else if (child->type == RW_N_VARIABLE_NAME) {
            if (export)
                rw_var_at(rw, bytes, length)->exported = true;
        } else if (child->type == RW_N_OTHER && *bytes == '-') {
            opaque |= memchr(bytes, 'A', length) != NULL;
            export |= memchr(bytes, 'x', length) != NULL;
        } else if (child->type == RW_N_OTHER) {
            struct rw_fields fields = {0};
            rw_expand_word(rw, buf, child->start, word_end(buf, child, &i), true, &fields);
            for (size_t f = 0; f < fields.count; f++) {
                const char *equals = strchr(fields.items[f].string, '=');
                struct rw_text value;
                if (!equals || fields.items[f].text.wild)
                    continue;
                uint32_t at = (uint32_t)(equals - fields.items[f].string);
                rw_text_slice(rw, &fields.items[f].text, at + 1, fields.items[f].text.length,
                              &value);
                rw_var_set_text(rw, rw_strndup(&rw->arena, fields.items[f].string, at), &value);
            }
        }
        if (export && rw->trail_count > before)
            rw->trail[rw->trail_count - 1].var->exported = true;
    }
}

/* ---- commands */

static void add_env(struct rw *rw, struct rw_cmd *cmd, const char *name,
                    const struct rw_text *value)
{
    struct rw_env *env = rw_alloc(&rw->arena, sizeof(*env));

    env->name = name;
    env->value = *value;
    env->next = cmd->env;
    cmd->env = env;
}

static void command(struct rw *rw, struct rw_buf *buf, const struct rw_node *node,
                    const struct rw_text *input)
{
    struct rw_cmd cmd = {.buf = buf, .start = node->start, .end = node->start};
    struct rw_text here;
    bool named = false;

    cmd.key = rw_hash(buf->key, node->order);
    if (buf == rw->root)
        rw->root_at = node->start;
    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        const struct rw_node *child = &buf->nodes[i];
        if (child->type == RW_N_COMMENT || child->type == RW_N_FILE_REDIRECT)
            continue;
        if (child->type == RW_N_HERESTRING) {
            uint32_t at = child->start;
            while (at < child->end && (buf->bytes[at] == '<' || buf->bytes[at] == ' '))
                at++;
            rw_expand_text(rw, buf, at, child->end, RW_BARE, &here);
            input = &here;
            continue;
        }
        if (child->type == RW_N_ASSIGNMENT && !named) {
            const struct rw_node *name = &buf->nodes[child->first];
            struct rw_fields value = {0};
            if (name->end + 1 > child->end)
                continue;
            rw_expand_word(rw, buf, name->end + 1, child->end, false, &value);
            add_env(rw, &cmd,
                    rw_strndup(&rw->arena, buf->bytes + name->start, name->end - name->start),
                    &value.items[0].text);
            continue;
        }
        named = true;
        uint32_t end = word_end(buf, child, &i);
        rw_expand_word(rw, buf, child->start, end, true, &cmd.fields);
        if (end > cmd.end)
            cmd.end = end;
    }
    if (cmd.fields.count)
        rw_run(rw, &cmd, input);
}

/* The text that a command puts out, where that is known: echo, printf, cat with a heredoc. */
static bool output_of(struct rw *rw, struct rw_buf *buf, uint32_t index,
                      const struct rw_text *input, struct rw_text *out)
{
    const struct rw_node *node = &buf->nodes[index];
    struct rw_fields fields = {0};

    if (node->type == RW_N_REDIRECTED && node->first) {
        for (uint32_t i = buf->nodes[node->first].next; i; i = buf->nodes[i].next) {
            const struct rw_node *child = &buf->nodes[i];
            const struct rw_heredoc *doc = rw_heredoc_at(buf, child->start);
            if (!doc)
                continue;
            struct rw_text *body = rw_alloc(&rw->arena, sizeof(*body));
            rw_expand_heredoc(rw, buf, doc, body);
            input = body;
        }
        index = node->first;
        node = &buf->nodes[index];
    }
    if (node->type != RW_N_COMMAND)
        return false;
    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        const struct rw_node *child = &buf->nodes[i];
        if (child->type == RW_N_COMMENT || child->type == RW_N_FILE_REDIRECT ||
            child->type == RW_N_HERESTRING)
            continue;
        rw_expand_word(rw, buf, child->start, word_end(buf, child, &i), true, &fields);
    }
    return rw_output(rw, &fields, input, out);
}

bool rw_output(struct rw *rw, const struct rw_fields *fields, const struct rw_text *input,
               struct rw_text *out)
{
    const char *name = fields->count ? fields->items[0].string : "";
    size_t from = 1;

    memset(out, 0, sizeof(*out));
    if (strcmp(name, "cat") == 0 && input &&
        (fields->count == 1 || strcmp(fields->items[1].string, "-") == 0)) {
        *out = *input;
        return true;
    }
    if (strcmp(name, "echo") == 0) {
        while (from < fields->count && fields->items[from].string[0] == '-' &&
               strspn(fields->items[from].string + 1, "neE") + 1 ==
                   strlen(fields->items[from].string))
            from++;
        rw_join(rw, fields, from, fields->count, out);
        return true;
    }
    if (strcmp(name, "printf") == 0 && fields->count >= 2) {
        const char *format = fields->items[1].string;
        bool quote = strncmp(format, "%q", 2) == 0;
        if (!quote && strncmp(format, "%s", 2) != 0)
            return false;
        struct rw_frag mark = {"'", 1, RW_DERIVED, RW_DQ, rw->root, 0, 0, NULL};
        for (size_t i = 2; i < fields->count; i++) {
            /* %q puts quotes only where they are needed, but quotes never hurt. */
            bool bare = strspn(fields->items[i].string, RW_PLAIN) == fields->items[i].text.length;
            mark.bytes = i > 2 ? " '" : "'";
            mark.length = i > 2 ? (bare || !quote ? 1 : 2) : (bare || !quote ? 0 : 1);
            rw_text_push(rw, out, &mark);
            rw_text_append(rw, out, &fields->items[i].text);
            mark.bytes = "'";
            mark.length = quote && !bare ? 1 : 0;
            rw_text_push(rw, out, &mark);
        }
        return true;
    }
    return false;
}

bool rw_output_of_buf(struct rw *rw, struct rw_buf *buf, struct rw_text *out)
{
    uint32_t only = buf->node_count > 1 ? buf->nodes[1].first : 0;

    return only && !buf->nodes[only].next && output_of(rw, buf, only, NULL, out);
}

static void write_file(struct rw *rw, const char *path, const struct rw_text *text)
{
    struct rw_written *file = rw_alloc(&rw->arena, sizeof(*file));

    file->path = path;
    file->text = text;
    file->next = rw->written;
    rw->written = file;
}

static void note_log(struct rw *rw, const char *path)
{
    for (size_t i = 0; i < rw->log_count; i++)
        if (strcmp(rw->logs[i], path) == 0)
            return;
    rw->logs = rw_more(&rw->arena, rw->logs, rw->log_count, &rw->log_capacity, sizeof(*rw->logs));
    rw->logs[rw->log_count++] = path;
}

/* Where a redirection writes to; NULL for input, descriptors and what is not known. */
static const char *output_path(struct rw *rw, const struct rw_buf *buf, const struct rw_node *node)
{
    uint32_t at = node->start;
    struct rw_text text;

    while (at < node->end && (buf->bytes[at] >= '0' && buf->bytes[at] <= '9'))
        at++;
    uint32_t op_at = at;
    while (at < node->end && strchr("&>|", buf->bytes[at]))
        at++;
    if (at == op_at || !memchr(buf->bytes + op_at, '>', at - op_at) || (buf->bytes[at - 1] == '&'))
        return NULL;
    while (at < node->end && (buf->bytes[at] == ' ' || buf->bytes[at] == '\t'))
        at++;
    if (at < node->end && buf->bytes[at] == '>')
        return NULL;
    rw_expand_text(rw, buf, at, node->end, RW_BARE, &text);
    if (!text.length || !rw_text_known(&text))
        return NULL;
    const char *path = rw_text_string(rw, &text);
    return strncmp(path, "/dev/", 5) == 0 ? NULL : path;
}

static void redirected(struct rw *rw, struct rw_buf *buf, const struct rw_node *node,
                       const struct rw_text *input)
{
    const char *path = NULL;
    uint32_t body = 0;

    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        const struct rw_node *child = &buf->nodes[i];
        if (child->type == RW_N_FILE_REDIRECT) {
            uint32_t at = child->start;
            while (at < child->end && buf->bytes[at] >= '0' && buf->bytes[at] <= '9')
                at++;
            const struct rw_heredoc *doc = rw_heredoc_at(buf, at);
            if (doc) {
                struct rw_text *text = rw_alloc(&rw->arena, sizeof(*text));
                rw_expand_heredoc(rw, buf, doc, text);
                input = text;
            } else {
                const char *to = output_path(rw, buf, child);
                path = to ? to : path;
            }
        } else if (child->type == RW_N_HERESTRING) {
            struct rw_text *text = rw_alloc(&rw->arena, sizeof(*text));
            uint32_t at = child->start;
            while (at < child->end && (buf->bytes[at] == '<' || buf->bytes[at] == ' '))
                at++;
            rw_expand_text(rw, buf, at, child->end, RW_BARE, text);
            input = text;
        } else if (!body && child->type != RW_N_TOKEN && child->type != RW_N_COMMENT) {
            body = i;
        }
    }
    if (!body)
        return;
    size_t before = rw->cmd_count;
    struct rw_text out;
    if (path && output_of(rw, buf, body, input, &out)) {
        struct rw_text *text = rw_alloc(&rw->arena, sizeof(*text));
        *text = out;
        write_file(rw, path, text);
    }
    walk(rw, buf, body, input);
    for (size_t i = before; path && i < rw->cmd_count; i++)
        if (rw->cmds[i].program || rw->cmds[i].file)
            note_log(rw, path);
}

static void pipeline(struct rw *rw, struct rw_buf *buf, const struct rw_node *node,
                     const struct rw_text *input)
{
    size_t before = rw->cmd_count;
    struct rw_text carry;
    bool carries = false, program = false;

    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        if (buf->nodes[i].type == RW_N_TOKEN || buf->nodes[i].type == RW_N_COMMENT)
            continue;
        struct rw_text out;
        const struct rw_text *in = carries ? &carry : input;
        bool known = output_of(rw, buf, i, in, &out);
        bool hides = !rw->pipefail && buf->nodes[i].next != 0;
        size_t here = rw->cmd_count;
        rw->piped += hides;
        walk(rw, buf, i, in);
        rw->piped -= hides;
        for (size_t c = here; c < rw->cmd_count; c++) {
            const struct rw_fields *fields = &rw->cmds[c].fields;
            if (strcmp(fields->items[0].string, "tee") != 0 || !program)
                continue;
            for (size_t f = 1; f < fields->count; f++)
                if (fields->items[f].string[0] != '-' && rw_text_known(&fields->items[f].text))
                    note_log(rw, fields->items[f].string);
        }
        for (size_t c = before; c < rw->cmd_count; c++)
            program |= rw->cmds[c].program || rw->cmds[c].file;
        carries = known;
        if (known)
            carry = out;
    }
}

/* ---- control flow */

/* Whether a run of statements ends the script or function. */
static bool leaves(const struct rw_buf *buf, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i && i != to; i = buf->nodes[i].next) {
        const struct rw_node *node = &buf->nodes[i];
        const char *bytes = buf->bytes + node->start;
        uint32_t length = node->end - node->start;
        if (node->type == RW_N_COMMAND && ((length >= 4 && memcmp(bytes, "exit", 4) == 0) ||
                                           (length >= 6 && memcmp(bytes, "return", 6) == 0)))
            return true;
    }
    return false;
}

static void branch(struct rw *rw, struct rw_buf *buf, uint64_t key, uint32_t from, uint32_t to)
{
    size_t mark = rw_trail_mark(rw), cmds = rw->cmd_count;

    for (uint32_t i = from; i && i != to; i = buf->nodes[i].next)
        walk(rw, buf, i, NULL);
    note_branch(rw, key, mark, cmds);
    if (leaves(buf, from, to))
        rw_trail_undo(rw, mark);
}

static void conditional(struct rw *rw, struct rw_buf *buf, const struct rw_node *node)
{
    uint64_t key = rw_hash(buf->key, node->order);
    uint32_t bodies[64], stops[64];
    int count = 0;
    bool otherwise = false, then = false;

    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        const struct rw_node *child = &buf->nodes[i];
        if (child->type == RW_N_ELIF || child->type == RW_N_ELSE) {
            if (count && !stops[count - 1])
                stops[count - 1] = i;
            uint32_t first = child->first;
            if (child->type == RW_N_ELIF)
                while (first && !is_token(buf, &buf->nodes[first], "then"))
                    first = buf->nodes[first].next;
            otherwise |= child->type == RW_N_ELSE;
            if (count < 64) {
                bodies[count] = first ? buf->nodes[first].next : 0;
                stops[count++] = UINT32_MAX;
            }
        } else if (!then && is_token(buf, child, "then")) {
            then = true;
            bodies[count] = child->next;
            stops[count++] = 0;
        } else if (!then && child->type != RW_N_TOKEN) {
            walk(rw, buf, i, NULL);
        }
    }
    int choice = rw_choose(rw, key, NULL, count + (otherwise ? 0 : 1));
    if (choice >= 0 && choice < count)
        branch(rw, buf, key, bodies[choice], stops[choice] == UINT32_MAX ? 0 : stops[choice]);
}

static void selection(struct rw *rw, struct rw_buf *buf, const struct rw_node *node)
{
    uint64_t key = rw_hash(buf->key, node->order);
    uint32_t items[64];
    int count = 0;

    for (uint32_t i = node->first; i; i = buf->nodes[i].next)
        if (buf->nodes[i].type == RW_N_CASE_ITEM && count < 64)
            items[count++] = i;
    int choice = rw_choose(rw, key, NULL, count);
    if (choice < 0 || choice >= count)
        return;
    uint32_t i = buf->nodes[items[choice]].first;
    while (i && !is_token(buf, &buf->nodes[i], ")"))
        i = buf->nodes[i].next;
    if (i)
        branch(rw, buf, key, buf->nodes[i].next, 0);
}

static void list(struct rw *rw, struct rw_buf *buf, const struct rw_node *node,
                 const struct rw_text *input)
{
    uint64_t key = rw_hash(buf->key, node->order);
    bool conditional_part = false;

    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        const struct rw_node *child = &buf->nodes[i];
        if (is_token(buf, child, "&&") || is_token(buf, child, "||")) {
            conditional_part = true;
            continue;
        }
        if (child->type == RW_N_TOKEN || child->type == RW_N_COMMENT)
            continue;
        if (!conditional_part) {
            walk(rw, buf, i, input);
            continue;
        }
        conditional_part = false;
        if (rw_choose(rw, key, NULL, 2) == 0)
            branch(rw, buf, key, i, child->next);
    }
}

static void loop(struct rw *rw, struct rw_buf *buf, const struct rw_node *node)
{
    const char *name = NULL;
    struct rw_fields words = {0};
    uint32_t body = 0;
    bool in = false;

    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        const struct rw_node *child = &buf->nodes[i];
        if (child->type == RW_N_DO || child->type == RW_N_COMPOUND)
            body = i;
        else if (child->type == RW_N_VARIABLE_NAME && !name)
            name = rw_strndup(&rw->arena, buf->bytes + child->start, child->end - child->start);
        else if (is_token(buf, child, "in"))
            in = true;
        else if (in && child->type != RW_N_TOKEN && child->type != RW_N_COMMENT)
            rw_expand_word(rw, buf, child->start, word_end(buf, child, &i), true, &words);
    }
    if (!body)
        return;
    if (!name || (in && !words.count)) {
        walk(rw, buf, body, NULL);
        return;
    }
    const struct rw_fields *over = in ? &words : &rw->positional;
    struct rw_fields copy = *over;
    if (!in && !rw->positional_known)
        copy.count = 0;
    bool wild = !copy.count;
    for (size_t i = 0; i < copy.count && !wild; i++)
        wild = copy.items[i].text.wild;
    if (wild) {
        rw_var_set_unknown(rw, name);
        walk(rw, buf, body, NULL);
        return;
    }
    for (size_t i = 0; i < copy.count && i < MAX_ITERATIONS; i++) {
        rw_var_set_text(rw, name, &copy.items[i].text);
        rw_var_at(rw, name, strlen(name))->loop = copy.count > 1;
        walk(rw, buf, body, NULL);
    }
}

static void define(struct rw *rw, struct rw_buf *buf, const struct rw_node *node)
{
    struct rw_function *function = rw_alloc(&rw->arena, sizeof(*function));

    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        const struct rw_node *child = &buf->nodes[i];
        if (child->type == RW_N_OTHER && !function->name)
            function->name =
                rw_strndup(&rw->arena, buf->bytes + child->start, child->end - child->start);
        else if (child->type == RW_N_COMPOUND || child->type == RW_N_SUBSHELL)
            function->node = i;
    }
    function->buf = buf;
    function->next = rw->functions;
    if (function->name && function->node)
        rw->functions = function;
}

struct rw_function *rw_function_find(struct rw *rw, const char *name)
{
    for (struct rw_function *f = rw->functions; f; f = f->next)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

void rw_walk_function(struct rw *rw, struct rw_function *function, const struct rw_fields *args,
                      size_t first)
{
    struct rw_fields saved = rw->positional;
    bool known = rw->positional_known;

    function->called = true;
    memset(&rw->positional, 0, sizeof(rw->positional));
    if (args) {
        rw->positional.items = args->items + first;
        rw->positional.count = args->count - first;
    }
    rw->positional_known = args != NULL;
    walk(rw, (struct rw_buf *)(uintptr_t)function->buf, function->node, NULL);
    rw->positional = saved;
    rw->positional_known = known;
}

static void children(struct rw *rw, struct rw_buf *buf, const struct rw_node *node,
                     const struct rw_text *input)
{
    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        uint32_t next = buf->nodes[i].next;
        bool hides = next && is_token(buf, &buf->nodes[next], "&");
        rw->background += hides;
        walk(rw, buf, i, input);
        rw->background -= hides;
    }
}

static void walk(struct rw *rw, struct rw_buf *buf, uint32_t index, const struct rw_text *input)
{
    const struct rw_node *node = &buf->nodes[index];
    size_t mark = rw_trail_mark(rw);

    if (rw->depth >= MAX_DEPTH || ++rw->steps > rw->step_limit)
        return;
    rw->depth++;
    switch (node->type) {
    case RW_N_SUBSHELL:
        children(rw, buf, node, input);
        rw_trail_undo(rw, mark);
        break;
    case RW_N_PROGRAM:
    case RW_N_COMPOUND:
    case RW_N_DO:
    case RW_N_WHILE:
    case RW_N_NEGATED:
    case RW_N_ASSIGNMENTS:
    case RW_N_ERROR:
    case RW_N_ELSE:
        children(rw, buf, node, input);
        break;
    case RW_N_LIST:
        list(rw, buf, node, input);
        break;
    case RW_N_PIPELINE:
        pipeline(rw, buf, node, input);
        break;
    case RW_N_REDIRECTED:
        redirected(rw, buf, node, input);
        break;
    case RW_N_IF:
        conditional(rw, buf, node);
        break;
    case RW_N_CASE:
        selection(rw, buf, node);
        break;
    case RW_N_FOR:
    case RW_N_CFOR:
        loop(rw, buf, node);
        break;
    case RW_N_FUNCTION:
        define(rw, buf, node);
        break;
    case RW_N_ASSIGNMENT:
        assign(rw, buf, node, false);
        break;
    case RW_N_DECLARATION:
        declare(rw, buf, node);
        break;
    case RW_N_UNSET:
        for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
            if (buf->nodes[i].type != RW_N_VARIABLE_NAME)
                continue;
            struct rw_value *value = rw_alloc(&rw->arena, sizeof(*value));
            value->unset = true;
            rw_var_set(rw,
                       rw_var_at(rw, buf->bytes + buf->nodes[i].start,
                                 buf->nodes[i].end - buf->nodes[i].start),
                       value);
        }
        break;
    case RW_N_COMMAND:
        command(rw, buf, node, input);
        break;
    default:
        break;
    }
    rw->depth--;
}

void rw_walk_buf(struct rw *rw, struct rw_buf *buf)
{
    rw_parse(rw, buf);
    if (buf->node_count > 1)
        walk(rw, buf, 1, NULL);
}

void rw_walk(struct rw *rw)
{
    rw_trail_undo(rw, 0);
    rw->functions = NULL;
    rw->written = NULL;
    rw->cmds = NULL;
    rw->cmd_count = rw->cmd_capacity = 0;
    rw->depth = rw->piped = rw->background = 0;
    rw->opaque_env = rw->pipefail = rw->errexit = false;
    memset(&rw->positional, 0, sizeof(rw->positional));
    rw->positional_known = rw->source->args != NULL;
    for (const char *const *a = rw->source->args; a && *a; a++) {
        struct rw_field *field = rw_fields_add(rw, &rw->positional);
        struct rw_frag frag = {*a, (uint32_t)strlen(*a), RW_DERIVED, RW_BARE, rw->root, 0, 0, NULL};
        rw_text_push(rw, &field->text, &frag);
        field->string = *a;
    }
    rw_walk_buf(rw, rw->root);
    /* What nothing calls in sight may still be called: from a trap, by `export -f`. */
    for (struct rw_function *f = rw->functions; f; f = f->next)
        if (!f->called)
            rw_walk_function(rw, f, NULL, 0);
}
