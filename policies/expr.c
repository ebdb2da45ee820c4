/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/expr.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/expr_impl.h"

void oom_expr_node_free(struct node *node)
{
    if (!node)
        return;
    for (int i = 0; i < node->child_count; i++)
        oom_expr_node_free(node->children[i]);
    free(node->value);
    free(node->name);
    free(node);
}

void oom_expr_free(struct oom_expr *expr)
{
    if (!expr)
        return;
    oom_expr_node_free(expr->root);
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
