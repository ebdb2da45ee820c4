/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "policies/expr_impl.h"
#include "policies/near.h"

#define MAX_DEPTH  48
#define MAX_LENGTH 2000
#define MAX_WORD   128

struct parser {
    const char *text;
    size_t at;
    int depth;
    struct oom_error *err;
};

static struct node *parse_or(struct parser *p);

static struct node *fail(struct parser *p, const char *what)
{
    oom_errorf(p->err, "column %zu of \"%s\": %s", p->at + 1, p->text, what);
    return NULL;
}

static struct node *node_new(struct parser *p, enum node_kind kind)
{
    struct node *node = calloc(1, sizeof(*node));
    if (!node)
        return fail(p, "out of memory");
    node->kind = kind;
    node->column = (int)p->at + 1;
    return node;
}

static void skip_space(struct parser *p)
{
    while (isspace((unsigned char)p->text[p->at]))
        p->at++;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Takes `token` when it comes next; a word must not go on behind it. */
static bool accept(struct parser *p, const char *token)
{
    size_t length = strlen(token);

    skip_space(p);
    if (strncmp(p->text + p->at, token, length) != 0)
        return false;
    if (is_word(token[0]) && (is_word(p->text[p->at + length]) || p->text[p->at + length] == '.'))
        return false;
    p->at += length;
    return true;
}

static struct node *literal(struct parser *p, enum oom_expr_kind kind)
{
    struct node *node = node_new(p, NODE_VALUE);
    if (!node)
        return NULL;
    node->value = calloc(1, sizeof(*node->value));
    if (!node->value) {
        oom_expr_node_free(node);
        return fail(p, "out of memory");
    }
    node->value->kind = kind;
    return node;
}

static double unit_behind(struct parser *p)
{
    static const struct {
        const char *name;
        double factor;
    } units[] = {{"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}};

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (accept(p, units[i].name))
            return units[i].factor;
    return 1.0;
}

static struct node *parse_number(struct parser *p)
{
    char *end;
    struct node *node = literal(p, OOM_EXPR_NUMBER);
    if (!node)
        return NULL;
    double number = strtod(p->text + p->at, &end);
    p->at = (size_t)(end - p->text);
    if (is_word(*end)) {
        oom_expr_node_free(node);
        return fail(p, "a number ends here, but a letter follows");
    }
    node->value->number = number * unit_behind(p);
    return node;
}

static struct node *parse_string(struct parser *p)
{
    char quote = p->text[p->at];
    const char *start = p->text + p->at + 1;
    const char *end = strchr(start, quote);
    if (!end)
        return fail(p, "this string has no closing quote");
    if ((size_t)(end - start) >= OOM_EXPR_TEXT)
        return fail(p, "this string is too long");
    struct node *node = literal(p, OOM_EXPR_STRING);
    if (!node)
        return NULL;
    memcpy(node->value->text, start, (size_t)(end - start));
    p->at = (size_t)(end - p->text) + 1;
    return node;
}

static struct node *unknown_function(struct parser *p, const char *name)
{
    struct near near;

    near_init(&near, name);
    for (size_t i = 0; oom_expr_function_name(i); i++)
        near_offer(&near, oom_expr_function_name(i));
    if (near.best)
        oom_errorf(p->err, "column %zu of \"%s\": no function \"%s\" (did you mean \"%s\"?)",
                   p->at + 1, p->text, name, near.best);
    else
        oom_errorf(p->err, "column %zu of \"%s\": no function \"%s\"", p->at + 1, p->text, name);
    return NULL;
}

static struct node *parse_call(struct parser *p, const char *name, size_t name_at)
{
    const struct oom_expr_function *function = oom_expr_function(name);
    if (!function) {
        p->at = name_at;
        return unknown_function(p, name);
    }
    struct node *node = node_new(p, NODE_CALL);
    if (!node)
        return NULL;
    node->function = function;
    node->column = (int)name_at + 1;
    if (!accept(p, ")")) {
        do {
            if (node->child_count == OOM_EXPR_MAX_ARGS) {
                oom_expr_node_free(node);
                return fail(p, "too many arguments");
            }
            struct node *argument = parse_or(p);
            if (!argument) {
                oom_expr_node_free(node);
                return NULL;
            }
            node->children[node->child_count++] = argument;
        } while (accept(p, ","));
        if (!accept(p, ")")) {
            oom_expr_node_free(node);
            return fail(p, "expected \",\" or \")\" here");
        }
    }
    if (node->child_count < function->min_args || node->child_count > function->max_args) {
        oom_expr_node_free(node);
        p->at = name_at;
        return fail(p, "wrong number of arguments for this function");
    }
    return node;
}

static struct node *parse_name(struct parser *p)
{
    char name[MAX_WORD];
    size_t start = p->at;
    size_t length = 0;

    while (is_word(p->text[p->at]) || (p->text[p->at] == '.' && is_word(p->text[p->at + 1]))) {
        if (length + 1 == sizeof(name))
            return fail(p, "this name is too long");
        name[length++] = p->text[p->at++];
    }
    name[length] = '\0';

    struct node *node = NULL;
    if (strcmp(name, "true") == 0 || strcmp(name, "false") == 0) {
        node = literal(p, OOM_EXPR_BOOL);
        if (node)
            node->value->truth = name[0] == 't';
        return node;
    }
    if (strcmp(name, "null") == 0)
        return literal(p, OOM_EXPR_NULL);
    if (accept(p, "("))
        return parse_call(p, name, start);
    node = node_new(p, NODE_NAME);
    if (!node)
        return NULL;
    node->column = (int)start + 1;
    node->name = strdup(name);
    if (!node->name) {
        oom_expr_node_free(node);
        return fail(p, "out of memory");
    }
    return node;
}

static struct node *unary(struct parser *p, enum op op, struct node *child)
{
    if (!child)
        return NULL;
    struct node *node = node_new(p, NODE_UNARY);
    if (!node) {
        oom_expr_node_free(child);
        return NULL;
    }
    node->op = op;
    node->children[node->child_count++] = child;
    return node;
}

static struct node *binary(struct parser *p, enum op op, struct node *left, struct node *right)
{
    struct node *node = left && right ? node_new(p, NODE_BINARY) : NULL;
    if (!node) {
        oom_expr_node_free(left);
        oom_expr_node_free(right);
        return NULL;
    }
    node->op = op;
    node->children[node->child_count++] = left;
    node->children[node->child_count++] = right;
    return node;
}

static struct node *parse_primary(struct parser *p)
{
    skip_space(p);
    char c = p->text[p->at];
    if (accept(p, "(")) {
        struct node *inner = parse_or(p);
        if (inner && !accept(p, ")")) {
            oom_expr_node_free(inner);
            return fail(p, "expected \")\" here");
        }
        return inner;
    }
    if (c == '"' || c == '\'')
        return parse_string(p);
    if (isdigit((unsigned char)c))
        return parse_number(p);
    if (isalpha((unsigned char)c) || c == '_')
        return parse_name(p);
    return fail(p, c ? "expected a value here" : "the expression ends too early");
}

static struct node *parse_unary(struct parser *p)
{
    struct node *node;

    if (++p->depth > MAX_DEPTH)
        return fail(p, "nested too deeply");
    if (accept(p, "-"))
        node = unary(p, OP_NEG, parse_unary(p));
    else if (accept(p, "not"))
        node = unary(p, OP_NOT, parse_unary(p));
    else
        node = parse_primary(p);
    p->depth--;
    return node;
}

struct operator_row {
    const char *token;
    enum op op;
};

/* One level of left-associative operators. */
static struct node *parse_level(struct parser *p, struct node *(*next)(struct parser *),
                                const struct operator_row *rows)
{
    struct node *left = next(p);

    while (left) {
        const struct operator_row *row = rows;
        while (row->token && !accept(p, row->token))
            row++;
        if (!row->token)
            break;
        left = binary(p, row->op, left, next(p));
    }
    return left;
}

static struct node *parse_product(struct parser *p)
{
    static const struct operator_row rows[] = {
        {"*", OP_MUL}, {"/", OP_DIV}, {"%", OP_MOD}, {NULL, OP_MUL}};
    return parse_level(p, parse_unary, rows);
}

static struct node *parse_sum(struct parser *p)
{
    static const struct operator_row rows[] = {{"+", OP_ADD}, {"-", OP_SUB}, {NULL, OP_ADD}};
    return parse_level(p, parse_product, rows);
}

static struct node *parse_comparison(struct parser *p)
{
    static const struct operator_row rows[] = {{"==", OP_EQ}, {"!=", OP_NE}, {"<=", OP_LE},
                                               {">=", OP_GE}, {"<", OP_LT},  {">", OP_GT},
                                               {NULL, OP_EQ}};
    return parse_level(p, parse_sum, rows);
}

/* "not a == b" means not (a == b), as in Python. */
static struct node *parse_not(struct parser *p)
{
    if (++p->depth > MAX_DEPTH)
        return fail(p, "nested too deeply");
    struct node *node = accept(p, "not") ? unary(p, OP_NOT, parse_not(p)) : parse_comparison(p);
    p->depth--;
    return node;
}

static struct node *parse_and(struct parser *p)
{
    static const struct operator_row rows[] = {{"and", OP_AND}, {NULL, OP_AND}};
    return parse_level(p, parse_not, rows);
}

static struct node *parse_or(struct parser *p)
{
    static const struct operator_row rows[] = {{"or", OP_OR}, {NULL, OP_OR}};
    return parse_level(p, parse_and, rows);
}

struct oom_expr *oom_expr_parse(const char *text, struct oom_error *err)
{
    struct parser p = {.text = text, .err = err};

    if (strlen(text) > MAX_LENGTH) {
        oom_errorf(err, "an expression may have at most %d characters", MAX_LENGTH);
        return NULL;
    }
    struct oom_expr *expr = calloc(1, sizeof(*expr));
    if (!expr || !(expr->text = strdup(text))) {
        oom_errorf(err, "out of memory");
        goto fail;
    }
    expr->root = parse_or(&p);
    if (!expr->root)
        goto fail;
    skip_space(&p);
    if (text[p.at]) {
        fail(&p, "expected an operator or the end here");
        goto fail;
    }
    return expr;
fail:
    oom_expr_free(expr);
    return NULL;
}
