/* SPDX-License-Identifier: Apache-2.0
 *
 * Configuration texts through reading and editing. The first byte picks the format, which of the
 * text's own settings is changed, and to what; what is said of each edit must hold. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policies/confedit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *edited(const char *text, size_t length, enum oom_config_format format,
                    const char *path, const char *value, size_t *out_length)
{
    struct oom_confedit edit = {path, value, NULL};
    struct oom_error err;
    char *out = NULL;

    if (oom_confedit_apply("f", text, length, format, &edit, 1, &out, out_length, &err) != 0)
        return NULL;
    if (strlen(out) != *out_length)
        abort();
    return out;
}

/* What was set is there, and the same again changes nothing. */
static void check_set(const char *text, size_t length, enum oom_config_format format,
                      const char *path, const char *value)
{
    struct oom_config after;
    size_t out_length, again_length;
    char *out = edited(text, length, format, path, value, &out_length);

    if (!out)
        return;
    oom_config_parse(out, out_length, format, &after);
    const struct oom_conffile_entry *entry = oom_config_find(&after, path);
    if (!entry || !oom_confedit_same(entry->value, value))
        abort();
    oom_config_free(&after);
    char *again = edited(out, out_length, format, path, value, &again_length);
    if (!again || again_length != out_length || memcmp(again, out, out_length) != 0)
        abort();
    free(again);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const values[] = {"3", "text", "a: 'b'\n\"c\"", "null", "True", "1e-5"};
    struct oom_config config;

    if (size < 2 || size > 4096)
        return 0;
    enum oom_config_format format = data[0] & 1 ? OOM_CONFIG_JSON : OOM_CONFIG_YAML;
    const char *value = values[(data[0] >> 1) % 6];
    const char *text = (const char *)data + 1;
    size_t out_length;
    size--;
    if (oom_config_parse(text, size, format, &config) == 0) {
        const char *path = config.items[(data[0] >> 4) % config.count].path;
        check_set(text, size, format, path, value);
        free(edited(text, size, format, path, NULL, &out_length));
        /* The whole group, and a setting beside it. */
        char *group = malloc(strlen(path) + sizeof(".x"));
        char *dot = group ? strrchr(strcpy(group, path), '.') : NULL;
        if (dot) {
            *dot = '\0';
            free(edited(text, size, format, group, NULL, &out_length));
            strcpy(dot, ".x");
            check_set(text, size, format, group, value);
        }
        free(group);
    }
    oom_config_free(&config);
    check_set(text, size, format, "new.group.key", value);
    return 0;
}
