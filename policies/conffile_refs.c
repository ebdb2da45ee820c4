/* SPDX-License-Identifier: Apache-2.0
 *
 * OmegaConf's references between settings: ${other.path}, ${mul:a,b}, ${oc.select:a,b}. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/conffile.h"

#define MAX_PATH_BYTES 512
#define MAX_REFERENCES 12

struct lookup {
    const struct oom_config *config;
    oom_conffile_override_f *override;
    void *arg;
    int left; /* references that may still be followed */
};

static bool expand(struct lookup *l, const char *text, char *scratch, size_t size,
                   const char **value);

static bool path_value(struct lookup *l, const char *path, char *scratch, size_t size,
                       const char **value)
{
    const char *set = l->override ? l->override(l->arg, path) : NULL;

    if (set) {
        *value = set;
        return true;
    }
    const struct oom_conffile_entry *entry = oom_config_find(l->config, path);
    if (!entry)
        return false;
    *value = entry->value;
    return !entry->value || expand(l, entry->value, scratch, size, value);
}

/* "${mul:a,b}": splits at the comma outside of braces. */
static bool product(struct lookup *l, char *args, char *scratch, size_t size, const char **value)
{
    char *comma = NULL, inner[MAX_PATH_BYTES];
    long long result = 1;
    int depth = 0;

    for (char *c = args; *c && !comma; c++) {
        depth += *c == '{';
        depth -= *c == '}';
        if (*c == ',' && depth == 0)
            comma = c;
    }
    if (!comma)
        return false;
    *comma = '\0';
    for (char *part = args; part; part = part == args ? comma + 1 : NULL) {
        const char *number;
        while (isspace((unsigned char)*part))
            part++;
        if (!expand(l, part, inner, sizeof(inner), &number) || !number)
            return false;
        char *end;
        long long factor = strtoll(number, &end, 10);
        if (end == number || *end || factor < 0 || __builtin_mul_overflow(result, factor, &result))
            return false;
    }
    snprintf(scratch, size, "%lld", result);
    *value = scratch;
    return true;
}

static bool reference(struct lookup *l, char *body, char *scratch, size_t size, const char **value)
{
    char *colon = strchr(body, ':');

    if (!colon)
        return body[0] != '.' && path_value(l, body, scratch, size, value);
    *colon = '\0';
    char *args = colon + 1;
    if (strcmp(body, "mul") == 0)
        return product(l, args, scratch, size, value);
    if (strcmp(body, "oc.select") != 0)
        return false;
    char *comma = strchr(args, ',');
    if (comma)
        *comma = '\0';
    if (path_value(l, args, scratch, size, value))
        return true;
    if (!comma)
        return false;
    for (comma++; isspace((unsigned char)*comma);)
        comma++;
    snprintf(scratch, size, "%s", comma);
    *value = scratch;
    return true;
}

static bool expand(struct lookup *l, const char *text, char *scratch, size_t size,
                   const char **value)
{
    char body[MAX_PATH_BYTES];
    size_t length = strlen(text);

    *value = text;
    if (!strstr(text, "${"))
        return true;
    /* only a value that is one reference; text around it is a name or a path */
    if (strncmp(text, "${", 2) != 0 || text[length - 1] != '}' || length >= sizeof(body) ||
        l->left-- <= 0)
        return false;
    memcpy(body, text + 2, length - 3);
    body[length - 3] = '\0';
    return reference(l, body, scratch, size, value);
}

bool oom_config_value(const struct oom_config *config, const char *path,
                      oom_conffile_override_f *override, void *arg, char *scratch, size_t size,
                      const char **value)
{
    struct lookup l = {.config = config, .override = override, .arg = arg, .left = MAX_REFERENCES};
    const struct oom_conffile_entry *entry = oom_config_find(config, path);

    *value = NULL;
    if (!entry)
        return false;
    return !entry->value || expand(&l, entry->value, scratch, size, value);
}
