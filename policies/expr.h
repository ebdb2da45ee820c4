/* SPDX-License-Identifier: Apache-2.0
 *
 * The small language of policies: floors, ceilings, guards and new values are expressions over
 * the present values of knobs.
 *
 *   ceil(rollout_max_context_len / context_parallel_size)
 *   set(colocate) and not set(use_dynamic_batch_size)
 *   incident.short_bytes < 2 GiB
 *
 * Values are numbers, strings, booleans, null (known not to be set) and unknown (cannot be read).
 * Logic is three-valued: what depends on something unknown is unknown, so that a guard can tell
 * "no" from "cannot know". Evaluation never fails, never loops and never allocates. */
#ifndef POLICIES_EXPR_H
#define POLICIES_EXPR_H

#include <stdbool.h>
#include <stddef.h>

#include "oomretry/error.h"

#define OOM_EXPR_TEXT 1024

enum oom_expr_kind {
    OOM_EXPR_UNKNOWN,
    OOM_EXPR_NULL,
    OOM_EXPR_BOOL,
    OOM_EXPR_NUMBER,
    OOM_EXPR_STRING,
};

struct oom_expr_value {
    enum oom_expr_kind kind;
    bool truth;
    double number;
    char text[OOM_EXPR_TEXT];
};

struct oom_expr;

/* Gives a name's value; unknown names give OOM_EXPR_UNKNOWN. */
typedef void oom_expr_resolve_f(void *arg, const char *name, struct oom_expr_value *out);

/* NULL and err, naming the column, when the text does not parse. */
struct oom_expr *oom_expr_parse(const char *text, struct oom_error *err);
void oom_expr_free(struct oom_expr *expr);
const char *oom_expr_text(const struct oom_expr *expr); /* as it was written */

void oom_expr_eval(const struct oom_expr *expr, oom_expr_resolve_f *resolve, void *arg,
                   struct oom_expr_value *out);

/* Calls back for each name used, with its column (from 1). Stops when the callback does not
 * return 0, and returns what it returned. */
int oom_expr_names(const struct oom_expr *expr,
                   int (*each)(void *arg, const char *name, int column), void *arg);

void oom_expr_set_number(struct oom_expr_value *value, double number);
void oom_expr_set_bool(struct oom_expr_value *value, bool truth);
/* UNKNOWN when the text does not fit. */
void oom_expr_set_string(struct oom_expr_value *value, const char *text);

/* The number that the whole of `text` spells, as "1e9" or "0.8". False when it is none. */
bool oom_expr_read_number(const char *text, double *out);

#endif
