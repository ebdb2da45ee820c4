/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/expr.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/expr_call.h"
#include "policies/near.h"

#define MAX_DEPTH  48
#define MAX_LENGTH 2000
#define MAX_WORD   128

enum node_kind { NODE_VALUE, NODE_NAME, NODE_CALL, NODE_UNARY, NODE_BINARY };

enum op {
    OP_OR,
    OP_AND,
    OP_NOT,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_MOD,
    OP_NEG
};

struct node {
    enum node_kind kind;
    enum op op;
    int column;
    struct oom_expr_value *value; /* NODE_VALUE */
    char *name;                   /* NODE_NAME */
    const struct oom_expr_function *function;
    struct node *children[OOM_EXPR_MAX_ARGS];
    int child_count;
};

struct oom_expr {
    char *text;
    struct node *root;
};

struct parser {
    const char *text;
    size_t at;
    int depth;
    struct oom_error *err;
};

static struct node *parse_or(struct parser *p);

static void node_free(struct node *node)
{
    if (!node)
        return;
    for (int i = 0; i < node->child_count; i++)
        node_free(node->children[i]);
    free(node->value);
    free(node->name);
    free(node);
}

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
        node_free(node);
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
        node_free(node);
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
                node_free(node);
                return fail(p, "too many arguments");
            }
            struct node *argument = parse_or(p);
            if (!argument) {
                node_free(node);
                return NULL;
            }
            node->children[node->child_count++] = argument;
        } while (accept(p, ","));
        if (!accept(p, ")")) {
            node_free(node);
            return fail(p, "expected \",\" or \")\" here");
        }
    }
    if (node->child_count < function->min_args || node->child_count > function->max_args) {
        node_free(node);
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
        node_free(node);
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
        node_free(child);
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
        node_free(left);
        node_free(right);
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
            node_free(inner);
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

void oom_expr_free(struct oom_expr *expr)
{
    if (!expr)
        return;
    node_free(expr->root);
    free(expr->text);
    free(expr);
}

const char *oom_expr_text(const struct oom_expr *expr)
{
    return expr->text;
}

void oom_expr_set_number(struct oom_expr_value *value, double number)
{
    value->kind = isfinite(number) ? OOM_EXPR_NUMBER : OOM_EXPR_UNKNOWN;
    value->number = number;
}

void oom_expr_set_bool(struct oom_expr_value *value, bool truth)
{
    value->kind = OOM_EXPR_BOOL;
    value->truth = truth;
}

void oom_expr_set_string(struct oom_expr_value *value, const char *text)
{
    size_t length = strlen(text);

    if (length >= sizeof(value->text)) {
        value->kind = OOM_EXPR_UNKNOWN;
        return;
    }
    value->kind = OOM_EXPR_STRING;
    memcpy(value->text, text, length + 1);
}

bool oom_expr_read_number(const char *text, double *out)
{
    char *end;

    while (isspace((unsigned char)*text))
        text++;
    /* strtod also reads "nan", "inf" and hexadecimal, which no framework means. */
    const char *digits = text + (*text == '-' || *text == '+');
    if (!isdigit((unsigned char)*digits) && *digits != '.')
        return false;
    if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'))
        return false;
    *out = strtod(text, &end);
    if (end == text)
        return false;
    while (*end == '_' && isdigit((unsigned char)end[1])) { /* Python's 1_000 */
        char *next;
        double more = strtod(end + 1, &next);
        for (const char *c = end + 1; c < next; c++)
            *out *= 10.0;
        *out += more;
        end = next;
    }
    while (isspace((unsigned char)*end))
        end++;
    return *end == '\0' && isfinite(*out);
}

/* Kleene's logic: 1 yes, 0 no, -1 unknown. */
static int truth_of(const struct oom_expr_value *value)
{
    switch (value->kind) {
    case OOM_EXPR_BOOL:
        return value->truth;
    case OOM_EXPR_NUMBER:
        return value->number != 0.0;
    case OOM_EXPR_STRING:
        return value->text[0] != '\0';
    case OOM_EXPR_NULL:
        return 0;
    case OOM_EXPR_UNKNOWN:
        break;
    }
    return -1;
}

static void set_truth(struct oom_expr_value *out, int truth)
{
    out->kind = truth < 0 ? OOM_EXPR_UNKNOWN : OOM_EXPR_BOOL;
    out->truth = truth > 0;
}

static int equal(const struct oom_expr_value *a, const struct oom_expr_value *b)
{
    if (a->kind == OOM_EXPR_UNKNOWN || b->kind == OOM_EXPR_UNKNOWN)
        return -1;
    if (a->kind != b->kind)
        return 0;
    switch (a->kind) {
    case OOM_EXPR_BOOL:
        return a->truth == b->truth;
    case OOM_EXPR_NUMBER:
        return fabs(a->number - b->number) <= 1e-9 * fmax(1.0, fabs(a->number));
    case OOM_EXPR_STRING:
        return strcmp(a->text, b->text) == 0;
    default:
        return 1;
    }
}

static void eval_logic(enum op op, int a, int b, struct oom_expr_value *out)
{
    int decided = op == OP_OR ? 1 : 0;

    if (a == decided || b == decided)
        set_truth(out, decided);
    else
        set_truth(out, a < 0 || b < 0 ? -1 : !decided);
}

static void eval_arithmetic(enum op op, double a, double b, struct oom_expr_value *out)
{
    switch (op) {
    case OP_LT:
        set_truth(out, a < b);
        return;
    case OP_LE:
        set_truth(out, a <= b);
        return;
    case OP_GT:
        set_truth(out, a > b);
        return;
    case OP_GE:
        set_truth(out, a >= b);
        return;
    case OP_ADD:
        oom_expr_set_number(out, a + b);
        return;
    case OP_SUB:
        oom_expr_set_number(out, a - b);
        return;
    case OP_MUL:
        oom_expr_set_number(out, a * b);
        return;
    case OP_DIV:
        oom_expr_set_number(out, a / b); /* by 0: not finite, so unknown */
        return;
    default:
        oom_expr_set_number(out, fmod(a, b));
        return;
    }
}

static void eval_node(const struct node *node, oom_expr_resolve_f *resolve, void *arg,
                      struct oom_expr_value *out);

static void eval_binary(const struct node *node, oom_expr_resolve_f *resolve, void *arg,
                        struct oom_expr_value *out)
{
    struct oom_expr_value a, b;

    eval_node(node->children[0], resolve, arg, &a);
    eval_node(node->children[1], resolve, arg, &b);
    out->kind = OOM_EXPR_UNKNOWN;
    if (node->op == OP_AND || node->op == OP_OR) {
        eval_logic(node->op, truth_of(&a), truth_of(&b), out);
    } else if (node->op == OP_EQ) {
        set_truth(out, equal(&a, &b));
    } else if (node->op == OP_NE) {
        int same = equal(&a, &b);
        set_truth(out, same < 0 ? -1 : !same);
    } else if (a.kind == OOM_EXPR_NUMBER && b.kind == OOM_EXPR_NUMBER) {
        eval_arithmetic(node->op, a.number, b.number, out);
    }
}

static void eval_call(const struct node *node, oom_expr_resolve_f *resolve, void *arg,
                      struct oom_expr_value *out)
{
    struct oom_expr_value args[OOM_EXPR_MAX_ARGS];

    for (int i = 0; i < node->child_count; i++)
        eval_node(node->children[i], resolve, arg, &args[i]);
    out->kind = OOM_EXPR_UNKNOWN;
    node->function->call(args, node->child_count, out);
}

static void eval_node(const struct node *node, oom_expr_resolve_f *resolve, void *arg,
                      struct oom_expr_value *out)
{
    out->kind = OOM_EXPR_UNKNOWN;
    switch (node->kind) {
    case NODE_VALUE:
        *out = *node->value;
        break;
    case NODE_NAME:
        resolve(arg, node->name, out);
        break;
    case NODE_CALL:
        eval_call(node, resolve, arg, out);
        break;
    case NODE_UNARY:
        eval_node(node->children[0], resolve, arg, out);
        if (node->op == OP_NOT) {
            int truth = truth_of(out);
            set_truth(out, truth < 0 ? -1 : !truth);
        } else if (out->kind == OOM_EXPR_NUMBER) {
            out->number = -out->number;
        } else {
            out->kind = OOM_EXPR_UNKNOWN;
        }
        break;
    case NODE_BINARY:
        eval_binary(node, resolve, arg, out);
        break;
    }
}

void oom_expr_eval(const struct oom_expr *expr, oom_expr_resolve_f *resolve, void *arg,
                   struct oom_expr_value *out)
{
    eval_node(expr->root, resolve, arg, out);
}

static int names_of(const struct node *node, int (*each)(void *, const char *, int), void *arg)
{
    if (node->kind == NODE_NAME) {
        int rc = each(arg, node->name, node->column);
        if (rc != 0)
            return rc;
    }
    for (int i = 0; i < node->child_count; i++) {
        int rc = names_of(node->children[i], each, arg);
        if (rc != 0)
            return rc;
    }
    return 0;
}

int oom_expr_names(const struct oom_expr *expr,
                   int (*each)(void *arg, const char *name, int column), void *arg)
{
    return names_of(expr->root, each, arg);
}
