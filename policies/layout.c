/* SPDX-License-Identifier: Apache-2.0 */
#include "policies/layout.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEGREE 1000000L

static const char dims[] = "dtpce";

static int dim_index(char dim)
{
    const char *at = dim ? strchr(dims, dim) : NULL;
    return at ? (int)(at - dims) : -1;
}

static const char *skip_space(const char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

static const char *parse_head(const char *text, struct layout *out)
{
    size_t length = 0;

    text = skip_space(text);
    while (isalpha((unsigned char)*text) || *text == '_') {
        if (length + 1 == sizeof(out->engine))
            return NULL;
        out->engine[length++] = *text++;
    }
    text = skip_space(text);
    if (*text == '[') {
        size_t n = strcspn(++text, "]");
        if (!text[n] || n >= sizeof(out->name))
            return NULL;
        memcpy(out->name, text, n);
        text = skip_space(text + n + 1);
    }
    return length > 0 && *text == ':' ? text + 1 : NULL;
}

int layout_parse(const char *text, struct layout *out)
{
    size_t written = 0;

    memset(out, 0, sizeof(*out));
    text = parse_head(text, out);
    if (!text)
        return -1;
    for (text = skip_space(text); *text; text = skip_space(text)) {
        char *end;
        int i = dim_index(*text);
        if (i < 0 || !isdigit((unsigned char)text[1]))
            return -1;
        long degree = strtol(text + 1, &end, 10);
        if (degree < 1 || degree > MAX_DEGREE)
            return -1;
        if (!out->degree[i])
            out->order[written++] = *text;
        out->degree[i] = degree; /* of a repeated dimension the last wins */
        text = end;
    }
    return written > 0 ? 0 : -1;
}

long layout_degree(const struct layout *layout, char dim)
{
    int i = dim_index(dim);
    if (i < 0)
        return -1;
    return layout->degree[i] ? layout->degree[i] : 1;
}

static long smallest_factor(long number)
{
    for (long factor = 2; factor * factor <= number; factor++)
        if (number % factor == 0)
            return factor;
    return number;
}

int layout_shift(struct layout *layout, char from, char to)
{
    int source = dim_index(from);
    int target = dim_index(to);

    if (source < 0 || target < 0 || source == target || layout->degree[source] < 2)
        return -1;
    long factor = smallest_factor(layout->degree[source]);
    long moved = layout_degree(layout, to) * factor;
    if (moved > MAX_DEGREE)
        return -1;
    layout->degree[source] /= factor;
    if (!layout->degree[target])
        layout->order[strlen(layout->order)] = to;
    layout->degree[target] = moved;
    return 0;
}

int layout_widen(struct layout *layout, char dim)
{
    int target = dim_index(dim);
    if (target < 0 || dim != 'e')
        return -1;
    long processes = layout_degree(layout, 'd') * layout_degree(layout, 't') *
                     layout_degree(layout, 'p') * layout_degree(layout, 'c');
    long wider = 2 * layout_degree(layout, dim);
    if (processes % (layout_degree(layout, 'p') * layout_degree(layout, 't') * wider) != 0)
        return -1;
    if (!layout->degree[target])
        layout->order[strlen(layout->order)] = dim;
    layout->degree[target] = wider;
    return 0;
}

int layout_format(const struct layout *layout, char *out, size_t size)
{
    int n = layout->name[0] ? snprintf(out, size, "%s[%s]:", layout->engine, layout->name)
                            : snprintf(out, size, "%s:", layout->engine);

    for (const char *dim = layout->order; *dim && n >= 0 && (size_t)n < size; dim++)
        n += snprintf(out + n, size - (size_t)n, "%c%ld", *dim, layout_degree(layout, *dim));
    return n >= 0 && (size_t)n < size ? 0 : -1;
}
