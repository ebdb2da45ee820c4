/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "policies/conffile.h"

#define MAX_ENTRIES     20000
#define MAX_DEPTH       24
#define MAX_PATH_BYTES  512
#define MAX_VALUE_BYTES 4096
#define MAX_REFERENCES  12

struct level {
    bool sequence, has_key;
    size_t index;
    size_t path_length; /* of the path up to and with this level's key */
};

struct reader {
    struct oom_config *out;
    size_t capacity;
    struct level levels[MAX_DEPTH];
    size_t depth;
    char path[MAX_PATH_BYTES];
};

static int add(struct reader *r, const char *value, size_t length, uint32_t line)
{
    struct oom_config *out = r->out;

    if (out->count == MAX_ENTRIES)
        return -1;
    if (out->count == r->capacity) {
        size_t more = r->capacity ? r->capacity * 2 : 64;
        struct oom_conffile_entry *items = realloc(out->items, more * sizeof(*items));
        if (!items)
            return -1;
        out->items = items;
        r->capacity = more;
    }
    struct oom_conffile_entry *entry = &out->items[out->count];
    entry->path = strdup(r->path);
    entry->value = value ? strndup(value, length) : NULL;
    entry->line = line;
    if (!entry->path || (value && !entry->value)) {
        free(entry->path);
        free(entry->value);
        return -1;
    }
    out->count++;
    return 0;
}

/* Puts a key behind the path of the level above. False when it does not fit. */
static bool set_key(struct reader *r, const char *key, size_t length)
{
    struct level *here = &r->levels[r->depth - 1];
    size_t base = r->depth > 1 ? r->levels[r->depth - 2].path_length : 0;
    int n = snprintf(r->path + base, sizeof(r->path) - base, "%s%.*s", base ? "." : "", (int)length,
                     key);

    if (n < 0 || (size_t)n >= sizeof(r->path) - base)
        return false;
    here->path_length = base + (size_t)n;
    here->has_key = true;
    return true;
}

/* Before a value: in a sequence its index is the key. False where no value may stand. */
static bool open_value(struct reader *r)
{
    if (r->depth == 0)
        return true;
    struct level *here = &r->levels[r->depth - 1];
    if (here->sequence) {
        char index[24];
        int n = snprintf(index, sizeof(index), "%zu", here->index++);
        return set_key(r, index, (size_t)n);
    }
    return here->has_key;
}

static bool is_null(const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;

    return event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (!*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0 ||
            strcmp(text, "Null") == 0 || strcmp(text, "NULL") == 0);
}

static int scalar(struct reader *r, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;

    if (r->depth == 0)
        return 0;
    struct level *here = &r->levels[r->depth - 1];
    if (!here->sequence && !here->has_key)
        return set_key(r, text, length) ? 0 : -1;
    if (!open_value(r))
        return -1;
    here->has_key = false;
    if (length > MAX_VALUE_BYTES || memchr(text, '\0', length))
        return 0;
    return add(r, is_null(event) ? NULL : text, length, (uint32_t)event->start_mark.line + 1);
}

/* -1 ends the reading; what was read stays. */
static int on_event(struct reader *r, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return scalar(r, event);
    case YAML_ALIAS_EVENT:
        if (r->depth && open_value(r))
            r->levels[r->depth - 1].has_key = false;
        return 0;
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        if (!open_value(r) || r->depth == MAX_DEPTH)
            return -1;
        r->levels[r->depth] = (struct level){.sequence = event->type == YAML_SEQUENCE_START_EVENT};
        r->depth++;
        return 0;
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        r->depth--;
        if (r->depth)
            r->levels[r->depth - 1].has_key = false;
        return 0;
    default:
        return 0;
    }
}

static void read_yaml(struct reader *r, const char *bytes, size_t length)
{
    yaml_parser_t parser;
    yaml_event_t event;
    bool more = true;

    if (!yaml_parser_initialize(&parser))
        return;
    yaml_parser_set_input_string(&parser, (const unsigned char *)bytes, length);
    while (more && yaml_parser_parse(&parser, &event)) {
        more = event.type != YAML_DOCUMENT_END_EVENT && event.type != YAML_STREAM_END_EVENT &&
               on_event(r, &event) == 0;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
}

/* --- TOML: [section] and key = value, which is all that such files of ours hold ------------------
 */

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

static int toml_line(struct reader *r, const char *line, size_t length, uint32_t number)
{
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
        r->depth = 1;
        return set_key(r, line, length) ? 0 : -1;
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
    r->depth = 2;
    if (size > MAX_VALUE_BYTES || !set_key(r, key, key_length))
        return 0;
    return add(r, value, size, number);
}

static void read_toml(struct reader *r, const char *bytes, size_t length)
{
    uint32_t number = 1;

    r->depth = 1;
    for (size_t at = 0; at < length; number++) {
        const char *end = memchr(bytes + at, '\n', length - at);
        size_t stop = end ? (size_t)(end - bytes) : length;
        if (toml_line(r, bytes + at, stop - at, number) != 0)
            return;
        at = stop + 1;
    }
}

int oom_config_parse(const char *bytes, size_t length, bool toml, struct oom_config *out)
{
    struct reader r = {.out = out};

    memset(out, 0, sizeof(*out));
    if (toml)
        read_toml(&r, bytes, length);
    else
        read_yaml(&r, bytes, length);
    return out->count ? 0 : -1;
}

void oom_config_free(struct oom_config *config)
{
    for (size_t i = 0; i < config->count; i++) {
        free(config->items[i].path);
        free(config->items[i].value);
    }
    free(config->items);
    memset(config, 0, sizeof(*config));
}

const struct oom_conffile_entry *oom_config_find(const struct oom_config *config, const char *path)
{
    /* the last of two wins, as the loaders have it */
    for (size_t i = config->count; i-- > 0;)
        if (strcmp(config->items[i].path, path) == 0)
            return &config->items[i];
    return NULL;
}

/* --- interpolation ------------------------------------------------------------------------------
 */

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
