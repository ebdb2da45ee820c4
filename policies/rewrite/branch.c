/* SPDX-License-Identifier: Apache-2.0
 *
 * Branches: which way a world goes. A way that leaves the script ("usage; exit 1") is not taken by
 * default, so that the usual worlds reach the end. */
#include <ctype.h>
#include <string.h>

#include "policies/rewrite/walk.h"

#define MAX_WAYS 64

static struct rw_decision *find_decision(const struct rw *rw, uint64_t key)
{
    for (size_t i = rw->decision_buckets[key % RW_DECISION_BUCKETS]; i;
         i = rw->decisions[i - 1].next)
        if (rw->decisions[i - 1].key == key)
            return &rw->decisions[i - 1];
    return NULL;
}

struct rw_decision *rw_decision_at(struct rw *rw, uint64_t key, int choices, const char *name)
{
    size_t *bucket = &rw->decision_buckets[key % RW_DECISION_BUCKETS];
    struct rw_decision *known = find_decision(rw, key);

    if (known)
        return known;
    rw->decisions = rw_more(&rw->arena, rw->decisions, rw->decision_count, &rw->decision_capacity,
                            sizeof(*rw->decisions));
    struct rw_decision *decision = &rw->decisions[rw->decision_count++];
    memset(decision, 0, sizeof(*decision));
    decision->key = key;
    decision->choices = choices;
    decision->name = name;
    decision->next = *bucket;
    *bucket = rw->decision_count;
    return decision;
}

int rw_choose(struct rw *rw, uint64_t key, const char *name, int choices, uint64_t avoid)
{
    const struct rw_decision *decision = rw_decision_at(rw, key, choices, name);
    size_t index = (size_t)(decision - rw->decisions);

    if (index == rw->flip)
        return rw->flip_choice;
    for (int i = 0; i < choices; i++) {
        int choice = rw->last ? choices - 1 - i : i;
        if (choice >= 64 || !(avoid >> choice & 1))
            return choice;
    }
    return rw->last ? choices - 1 : 0;
}

static void add_var(struct rw *rw, struct rw_vars *vars, struct rw_var *var)
{
    for (size_t i = 0; i < vars->count; i++)
        if (vars->items[i] == var)
            return;
    vars->items =
        rw_more(&rw->arena, vars->items, vars->count, &vars->capacity, sizeof(*vars->items));
    vars->items[vars->count++] = var;
}

static bool name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The variables of a condition, and those that their values came through. */
static void note_read(struct rw *rw, const struct rw_buf *buf, struct rw_decision *decision,
                      const struct rw_node *condition)
{
    const char *b = buf->bytes;

    for (uint32_t at = condition->start; at + 1 < condition->end; at++) {
        if (b[at] != '$')
            continue;
        uint32_t start = at + (b[at + 1] == '{' ? 2 : 1), end = start;
        while (end < condition->end && name_char(b[end]))
            end++;
        if (end == start)
            continue;
        struct rw_var *var = rw_var_at(rw, b + start, end - start);
        add_var(rw, &decision->read, var);
        for (size_t i = 0; var->value && i < var->value->count && i < MAX_WAYS; i++) {
            const struct rw_text *text = &var->value->items[i].text;
            for (size_t f = 0; f < text->count; f++)
                for (const struct rw_via *via = text->frags[f].via; via; via = via->next)
                    if (via->name && *via->name)
                        add_var(rw, &decision->read, rw_var_at(rw, via->name, strlen(via->name)));
        }
    }
}

/* Whether a command may lead to a program, or to assignments that are not in sight here. */
static bool may_start(struct rw *rw, const struct rw_buf *buf, const struct rw_node *node)
{
    static const char *const words[] = {"python", "run",  "launch", "speed", "ray",
                                        "sbatch", "-cli", "bash",   ".sh",   "axolotl",
                                        "trl",    "vllm", "source", "eval",  NULL};
    /* What changes variables or arguments without an assignment. */
    static const char *const setters[] = {"set",     "shift",     "read",   "mapfile", ".",
                                          "getopts", "readarray", "printf", "let",     NULL};
    const char *bytes = buf->bytes + node->start;
    size_t length = node->end - node->start;
    size_t name = 0;

    for (size_t i = 0; words[i]; i++)
        if (memmem(bytes, length, words[i], strlen(words[i])))
            return true;
    while (name < length && bytes[name] != ' ' && bytes[name] != '\n')
        name++;
    for (size_t i = 0; setters[i]; i++)
        if (strlen(setters[i]) == name && memcmp(bytes, setters[i], name) == 0 &&
            (bytes[0] != 'p' || memmem(bytes, length, " -v ", 4)))
            return true;
    if (memchr(bytes, '$', name))
        return true;
    return rw_function_find(rw, rw_strndup(&rw->arena, bytes, name)) != NULL;
}

/* Notes what a way could change, so that branches without influence need no world. */
static void note(struct rw *rw, const struct rw_buf *buf, struct rw_decision *decision,
                 uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i && i != to; i = buf->nodes[i].next) {
        const struct rw_node *node = &buf->nodes[i];
        if (node->type == RW_N_ASSIGNMENT && node->first) {
            const struct rw_node *name = &buf->nodes[node->first];
            size_t length = 0;
            while (name->start + length < name->end && buf->bytes[name->start + length] != '[')
                length++;
            add_var(rw, &decision->assigned, rw_var_at(rw, buf->bytes + name->start, length));
        } else if (node->type == RW_N_COMMAND) {
            decision->commands |= may_start(rw, buf, node);
        } else if (node->type == RW_N_FUNCTION || node->type == RW_N_UNSET ||
                   buf->bytes[node->start] == '(') { /* ((…)) assigns too */
            decision->commands = true;
        }
        if (node->first)
            note(rw, buf, decision, node->first, 0);
    }
}

/* The decision at a key, with what its condition reads and what each of its ways could change. */
static void note_ways(struct rw *rw, const struct rw_buf *buf, uint64_t key, int choices,
                      uint32_t condition, const uint32_t *from, const uint32_t *to, int ways)
{
    size_t before = rw->decision_count;
    struct rw_decision *decision = rw_decision_at(rw, key, choices, NULL);

    if (rw->decision_count == before)
        return;
    if (condition)
        note_read(rw, buf, decision, &buf->nodes[condition]);
    for (int i = 0; i < ways; i++)
        note(rw, buf, decision, from[i], to[i]);
}

/* A condition that is settled in this world may be settled otherwise in another. */
static uint64_t settled_key(uint64_t key)
{
    return rw_hash(key, UINT64_C(0x5e771ed));
}

static void take(struct rw *rw, struct rw_buf *buf, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i && i != to; i = buf->nodes[i].next)
        rw_walk_node(rw, buf, i, NULL);
}

/* Whether a run of statements ends the script or function. */
static bool leaves(const struct rw_buf *buf, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i && i != to; i = buf->nodes[i].next) {
        const struct rw_node *node = &buf->nodes[i];
        const char *bytes = buf->bytes + node->start;
        uint32_t length = node->end - node->start;
        if (node->type == RW_N_COMPOUND && leaves(buf, node->first, 0))
            return true;
        if (node->type == RW_N_COMMAND && ((length >= 4 && memcmp(bytes, "exit", 4) == 0) ||
                                           (length >= 6 && memcmp(bytes, "return", 6) == 0)))
            return true;
    }
    return false;
}

/* The bodies of an if statement, in order. */
struct bodies {
    uint32_t from[MAX_WAYS], to[MAX_WAYS];
    int count;
    bool otherwise;     /* there is an else */
    uint32_t condition; /* when it is a single statement */
};

static void find_bodies(const struct rw_buf *buf, const struct rw_node *node, struct bodies *b)
{
    bool then = false;
    int conditions = 0;

    memset(b, 0, sizeof(*b));
    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        const struct rw_node *child = &buf->nodes[i];
        if (child->type == RW_N_ELIF || child->type == RW_N_ELSE) {
            if (b->count && !b->to[b->count - 1])
                b->to[b->count - 1] = i;
            uint32_t first = child->first;
            if (child->type == RW_N_ELIF)
                while (first && !rw_is_token(buf, &buf->nodes[first], "then"))
                    first = buf->nodes[first].next;
            b->otherwise |= child->type == RW_N_ELSE;
            if (b->count < MAX_WAYS) {
                b->from[b->count] = first ? buf->nodes[first].next : 0;
                b->to[b->count++] = UINT32_MAX;
            }
        } else if (!then && rw_is_token(buf, child, "then")) {
            then = true;
            b->from[b->count] = child->next;
            b->to[b->count++] = 0;
        } else if (!then && child->type != RW_N_TOKEN && child->type != RW_N_COMMENT) {
            b->condition = conditions++ ? 0 : i;
        }
    }
    for (int i = 0; i < b->count; i++)
        if (b->to[i] == UINT32_MAX)
            b->to[i] = 0;
}

/* In the worlds that differ in one decision from those walked before, a branch that cannot matter
 * is passed by: what it does was seen there. */
static bool idle(const struct rw *rw, const struct rw_buf *buf, uint64_t key, uint32_t condition)
{
    if (rw->flip == SIZE_MAX || !condition || buf->nodes[condition].type != RW_N_TEST ||
        find_decision(rw, settled_key(key)))
        return false;
    const struct rw_decision *decision = find_decision(rw, key);
    return decision && !decision->relevant;
}

void rw_conditional(struct rw *rw, struct rw_buf *buf, const struct rw_node *node)
{
    uint64_t key = rw_hash(buf->key, node->order), avoid = 0;
    struct bodies b;

    find_bodies(buf, node, &b);
    if (idle(rw, buf, key, b.condition))
        return;
    for (uint32_t i = node->first; i && !rw_is_token(buf, &buf->nodes[i], "then");
         i = buf->nodes[i].next)
        rw_walk_node(rw, buf, i, NULL);
    int settled = b.condition ? rw_condition(rw, buf, &buf->nodes[b.condition]) : -1;
    int first = settled == 0 ? 1 : 0;
    int ways = (settled == 1 ? 1 : b.count + (b.otherwise ? 0 : 1)) - first;
    for (int i = first; i < b.count; i++)
        if (leaves(buf, b.from[i], b.to[i]))
            avoid |= UINT64_C(1) << (i - first);
    if (settled >= 0)
        note_ways(rw, buf, settled_key(key), 1, b.condition, b.from, b.to, b.count);
    if (ways > 1)
        note_ways(rw, buf, key, ways, b.condition, b.from + first, b.to + first, b.count - first);
    int choice = first + (ways > 1 ? rw_choose(rw, key, NULL, ways, avoid) : 0);
    if (choice < b.count)
        take(rw, buf, b.from[choice], b.to[choice]);
}

void rw_selection(struct rw *rw, struct rw_buf *buf, const struct rw_node *node)
{
    uint64_t key = rw_hash(buf->key, node->order), avoid = 0;
    uint32_t bodies[MAX_WAYS], ends[MAX_WAYS] = {0};
    int count = 0;

    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        if (buf->nodes[i].type != RW_N_CASE_ITEM || count == MAX_WAYS)
            continue;
        uint32_t k = buf->nodes[i].first;
        while (k && !rw_is_token(buf, &buf->nodes[k], ")"))
            k = buf->nodes[k].next;
        bodies[count] = k ? buf->nodes[k].next : 0;
        if (leaves(buf, bodies[count], 0))
            avoid |= UINT64_C(1) << count;
        count++;
    }
    if (!count)
        return;
    note_ways(rw, buf, key, count, 0, bodies, ends, count);
    int choice = count > 1 ? rw_choose(rw, key, NULL, count, avoid) : 0;
    take(rw, buf, bodies[choice], 0);
}

void rw_list(struct rw *rw, struct rw_buf *buf, const struct rw_node *node,
             const struct rw_text *input)
{
    uint64_t key = rw_hash(buf->key, node->order);
    int settled = -1;
    uint32_t tested = 0;
    char op = '\0';

    for (uint32_t i = node->first; i; i = buf->nodes[i].next) {
        const struct rw_node *child = &buf->nodes[i];
        if (rw_is_token(buf, child, "&&") || rw_is_token(buf, child, "||")) {
            op = buf->bytes[child->start];
            continue;
        }
        if (child->type == RW_N_TOKEN || child->type == RW_N_COMMENT)
            continue;
        if (!op) {
            rw_walk_node(rw, buf, i, input);
            settled = rw_condition(rw, buf, child);
            tested = i;
            continue;
        }
        bool run;
        if (settled >= 0) {
            note_ways(rw, buf, settled_key(key), 1, tested, &i, &child->next, 1);
            run = settled == (op == '&');
        } else {
            note_ways(rw, buf, key, 2, tested, &i, &child->next, 1);
            run = rw_choose(rw, key, NULL, 2, leaves(buf, i, child->next) ? 1 : 0) == 0;
        }
        if (run)
            take(rw, buf, i, child->next);
        op = '\0';
        settled = -1;
    }
}
