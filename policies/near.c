/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/near.h"

#include <stdbool.h>
#include <string.h>

#define MAX_NAME 96

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool same_letter(char a, char b)
{
    return (a == '-' ? '_' : a) == (b == '-' ? '_' : b);
}

/* Edits from one to the other; two letters that changed places are one. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][MAX_NAME + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    size_t a_length = strlen(a);
    size_t b_length = strlen(b);

    if (a_length > MAX_NAME || b_length > MAX_NAME)
        return MAX_NAME;
    for (size_t j = 0; j <= b_length; j++)
        last[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t cost = last[j - 1] + !same_letter(a[i - 1], b[j - 1]);
            row[j] = smaller(smaller(last[j], row[j - 1]) + 1, cost);
            if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) &&
                same_letter(a[i - 2], b[j - 1]))
                row[j] = smaller(row[j], before[j - 2] + 1);
        }
        size_t *oldest = before;
        before = last;
        last = row;
        row = oldest;
    }
    return last[b_length];
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
