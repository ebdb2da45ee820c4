/* SPDX-License-Identifier: Apache-2.0
 *
 * Parallel layouts written as one string, "fsdp:d4t2": an engine, an optional name in brackets,
 * then dimensions (d data, t tensor, p pipeline, c context, e expert) with their degrees. */
#ifndef POLICIES_LAYOUT_H
#define POLICIES_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

#define LAYOUT_DIMS 5

struct layout {
    char engine[32];
    char name[64];            /* "" when there is none */
    long degree[LAYOUT_DIMS]; /* 0: not written, counts as 1; order "dtpce" */
    char order[LAYOUT_DIMS + 1];
};

/* 0, or -1 when the text is not of this form (also the attn|ffn form, which has two layouts). */
int layout_parse(const char *text, struct layout *out);
long layout_degree(const struct layout *layout, char dim); /* -1: no such dimension */

/* Moves the smallest prime factor of `from` to `to`: the number of processes stays as it is.
 * -1 when `from` has none. */
int layout_shift(struct layout *layout, char from, char to);
/* Doubles a dimension that does not count as processes (experts), while it still divides them. */
int layout_widen(struct layout *layout, char dim);
int layout_format(const struct layout *layout, char *out, size_t size);

#endif
