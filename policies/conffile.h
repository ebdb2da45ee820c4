/* SPDX-License-Identifier: Apache-2.0
 *
 * A framework's configuration file (YAML, JSON, TOML) as a flat list of settings. Pure: bytes in,
 * settings out. What is too large, too deep or not understood is left out, never an error: the
 * file is the user's, and the framework itself will judge it. */
#ifndef POLICIES_CONFFILE_H
#define POLICIES_CONFFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oom_conffile_entry {
    char *path;  /* "actor.mb_spec.max_tokens_per_mb", "actor.scheduling_spec.0.mem" */
    char *value; /* NULL: null */
    uint32_t line;
};

struct oom_config {
    struct oom_conffile_entry *items;
    size_t count;
};

/* What the command line sets a path to; NULL: nothing. */
typedef const char *oom_conffile_override_f(void *arg, const char *path);

/* JSON is read as the YAML that it is. -1 when out of memory or nothing could be read. */
int oom_config_parse(const char *bytes, size_t length, bool toml, struct oom_config *out);
void oom_config_free(struct oom_config *config);

const struct oom_conffile_entry *oom_config_find(const struct oom_config *config, const char *path);

/* The value of a path with ${other.path}, ${mul:a,b} and ${oc.select:a,b} followed, through
 * `override` first. False when the file does not set it or it cannot be known; *value is NULL for
 * null, and lives in `scratch` or in the configuration. */
bool oom_config_value(const struct oom_config *config, const char *path,
                      oom_conffile_override_f *override, void *arg, char *scratch, size_t size,
                      const char **value);

#endif
