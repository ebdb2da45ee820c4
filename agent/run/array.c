/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/run/array.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN",
                                    "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_STEP"};
enum { NAMES = sizeof(names) / sizeof(names[0]), MAX_DIGITS = 10 };

static bool is_number(const char *text, size_t length)
{
    return length > 0 && length <= MAX_DIGITS && strspn(text, "0123456789") >= length;
}

void array_put(FILE *out)
{
    const char *values[NAMES];

    for (size_t i = 0; i < NAMES; i++) {
        values[i] = getenv(names[i]);
        if (!values[i] || !is_number(values[i], strlen(values[i])))
            return;
    }
    fprintf(out, ARRAY_VARIABLE "=%s,%s,%s,%s%c", values[0], values[1], values[2], values[3], 0);
}

void array_restore(void)
{
    const char *text = getenv("SLURM_ARRAY_TASK_ID") ? getenv(ARRAY_VARIABLE) : NULL;

    for (size_t i = 0; text && i < NAMES; i++) {
        size_t length = strcspn(text, ",");
        char value[MAX_DIGITS + 1] = "";

        if (!is_number(text, length))
            return;
        memcpy(value, text, length);
        setenv(names[i], value, 1);
        text += length + (text[length] == ',');
    }
}
