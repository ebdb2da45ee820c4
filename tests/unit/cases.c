/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/cases.h"

char *cases_joined(const json_t *lines, size_t *length)
{
    size_t size = 1;
    size_t i;
    const json_t *line;

    json_array_foreach(lines, i, line) size += json_string_length(line) + 1;
    char *text = malloc(size);
    assert_non_null(text);
    *length = 0;
    json_array_foreach(lines, i, line)
    {
        memcpy(text + *length, json_string_value(line), json_string_length(line));
        *length += json_string_length(line);
        text[(*length)++] = '\n';
    }
    return text;
}

void cases_read_exit(const json_t *exit, struct oom_exit *out)
{
    const json_t *value;

    oom_exit_init(out);
    if ((value = json_object_get(exit, "exit_code")))
        out->exit_code = (int)json_integer_value(value);
    if ((value = json_object_get(exit, "signal")))
        out->signal = (int)json_integer_value(value);
    if ((value = json_object_get(exit, "derived_exit_code")))
        out->derived_exit_code = (int)json_integer_value(value);
    if ((value = json_object_get(exit, "oom_kills")))
        out->cgroup_oom_kills = json_integer_value(value);
    if ((value = json_object_get(exit, "state")))
        snprintf(out->state, sizeof(out->state), "%s", json_string_value(value));
}
