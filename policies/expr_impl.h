/* SPDX-License-Identifier: Apache-2.0
 *
 * The tree of an expression, between the parser (expr_parse.c) and the evaluation (expr.c). */
#ifndef POLICIES_EXPR_IMPL_H
#define POLICIES_EXPR_IMPL_H

#include "policies/expr.h"
#include "policies/expr_call.h"

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

void oom_expr_node_free(struct node *node);

#endif
