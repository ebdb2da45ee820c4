/* SPDX-License-Identifier: Apache-2.0
 *
 * TOML: [section] and key = value, which is all that such files of ours hold. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "policies/conffile.h"

static void trim(const char **from, size_t *length)
{
    while (*length && isspace((unsigned char)**from)) {
        (*from)++;
        (*length)--;
    }
    while (*length && isspace((unsigned char)(*from)[*length - 1]))
        (*length)--;
}

static size_t value_length(const char *text, size_t length)
{
    char quote = 0;

    for (size_t i = 0; i < length; i++) {
        if (quote && text[i] == quote)
            quote = 0;
        else if (!quote && (text[i] == '"' || text[i] == '\''))
            quote = text[i];
        else if (!quote && text[i] == '#')
            return i;
    }
    return length;
}

/* `section` is the path that the line's keys are under, "" at the top. */
static int read_line(struct oom_config *out, char *section, size_t section_size, const char *line,
                     size_t length, uint32_t number)
{
    char path[OOM_CONFIG_MAX_PATH];

    trim(&line, &length);
    if (!length || line[0] == '#')
        return 0;
    if (line[0] == '[') {
        const char *close = memchr(line, ']', length);
        if (!close || line[1] == '[')
            return 0;
        line++;
        length = (size_t)(close - line);
        trim(&line, &length);
        if (length + 1 > section_size)
            return -1;
        snprintf(section, section_size, "%.*s", (int)length, line);
        return 0;
    }
    const char *equals = memchr(line, '=', length);
    if (!equals)
        return 0;
    const char *key = line, *value = equals + 1;
    size_t key_length = (size_t)(equals - line), size = length - key_length - 1;
    trim(&key, &key_length);
    size = value_length(value, size);
    trim(&value, &size);
    if (size >= 2 && (value[0] == '"' || value[0] == '\'') && value[size - 1] == value[0]) {
        value++;
        size -= 2;
    }
    int n = snprintf(path, sizeof(path), "%s%s%.*s", section, *section ? "." : "", (int)key_length,
                     key);
    if (n < 0 || (size_t)n >= sizeof(path))
        return 0;
    return oom_config_add(out, path, value, size, number);
}

void oom_config_read_toml(struct oom_config *out, const char *bytes, size_t length)
{
    char section[OOM_CONFIG_MAX_PATH] = "";
    uint32_t number = 1;

    for (size_t at = 0; at < length; number++) {
        const char *end = memchr(bytes + at, '\n', length - at);
        size_t stop = end ? (size_t)(end - bytes) : length;
        if (read_line(out, section, sizeof(section), bytes + at, stop - at, number) != 0)
            return;
        at = stop + 1;
    }
}
