/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes as programs print them. Every unit is binary: PyTorch, Ray, JAX and vLLM all divide by
 * 1024 whatever they call the result. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/classify_private.h"

static double unit_scale(const char *unit, size_t length)
{
    static const char letters[] = "KMGTPE";
    double scale = 1.0;

    if (length == 0)
        return 1.0;
    const char *found = strchr(letters, toupper((unsigned char)unit[0]));
    if (!found || !*found)
        return 1.0;
    for (const char *p = letters; p <= found; p++)
        scale *= 1024.0;
    return scale;
}

int64_t oom_size_parse(const char *text, size_t length)
{
    char number[40];
    size_t n = 0;
    size_t i = 0;

    while (i < length && isspace((unsigned char)text[i]))
        i++;
    for (; i < length && n < sizeof(number) - 1; i++) {
        if (isdigit((unsigned char)text[i]) || text[i] == '.')
            number[n++] = text[i];
        else if (text[i] != ',')
            break;
    }
    number[n] = '\0';
    while (i < length && isspace((unsigned char)text[i]))
        i++;
    if (n == 0 || !isdigit((unsigned char)number[0]))
        return OOM_UNSTATED;
    double value = strtod(number, NULL) * unit_scale(text + i, length - i);
    /* "17179869184.00 GiB in use" is what a driver says when a counter wrapped. */
    if (!isfinite(value) || value < 0 || value >= 0x1p60)
        return OOM_UNSTATED;
    return (int64_t)llround(value);
}
