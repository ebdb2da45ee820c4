/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that expressions may call. */
#ifndef POLICIES_EXPR_CALL_H
#define POLICIES_EXPR_CALL_H

#include "policies/expr.h"

#define OOM_EXPR_MAX_ARGS 8

struct oom_expr_function {
    const char *name;
    int min_args;
    int max_args;
    void (*call)(const struct oom_expr_value *args, int count, struct oom_expr_value *out);
};

const struct oom_expr_function *oom_expr_function(const char *name); /* NULL: no such function */
const char *oom_expr_function_name(size_t index);                    /* NULL behind the last */

#endif
