/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/near.h"

#include <string.h>

#define MAX_NAME 96

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Levenshtein's distance over one row; '-' and '_' are the same letter. */
static size_t distance(const char *a, const char *b)
{
    size_t row[MAX_NAME + 1];
    size_t a_length = strlen(a);
    size_t b_length = strlen(b);

    if (a_length > MAX_NAME || b_length > MAX_NAME)
        return MAX_NAME;
    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            char x = a[i - 1] == '-' ? '_' : a[i - 1];
            char y = b[j - 1] == '-' ? '_' : b[j - 1];
            size_t cost = smaller(smaller(row[j] + 1, row[j - 1] + 1), diagonal + (x != y));
            diagonal = row[j];
            row[j] = cost;
        }
    }
    return row[b_length];
}

void near_init(struct near *near, const char *wanted)
{
    near->wanted = wanted;
    near->best = NULL;
    near->best_distance = 1 + strlen(wanted) / 3;
    if (near->best_distance > 6)
        near->best_distance = 6;
}

void near_offer(struct near *near, const char *candidate)
{
    size_t far = distance(near->wanted, candidate);

    if (far < near->best_distance || (far == near->best_distance && !near->best)) {
        near->best = candidate;
        near->best_distance = far;
    }
}
