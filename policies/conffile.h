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
    size_t count, capacity;
};

enum oom_config_format { OOM_CONFIG_YAML, OOM_CONFIG_JSON, OOM_CONFIG_TOML };

/* By the name's ending. */
enum oom_config_format oom_config_format_of(const char *path);

#define OOM_CONFIG_MAX_PATH 512

/* What the command line sets a path to; NULL: nothing. */
typedef const char *oom_conffile_override_f(void *arg, const char *path);

/* Of several YAML documents the first; of a text that breaks off what stands before that place.
 * -1 when out of memory or nothing could be read. */
int oom_config_parse(const char *bytes, size_t length, enum oom_config_format format,
                     struct oom_config *out);
void oom_config_free(struct oom_config *config);

const struct oom_conffile_entry *oom_config_find(const struct oom_config *config, const char *path);

/* The value of a path with ${other.path}, ${mul:a,b} and ${oc.select:a,b} followed, through
 * `override` first. False when the file does not set it or it cannot be known; *value is NULL for
 * null, and lives in `scratch` or in the configuration. */
bool oom_config_value(const struct oom_config *config, const char *path,
                      oom_conffile_override_f *override, void *arg, char *scratch, size_t size,
                      const char **value);

/* ---- for those that read a format */
struct conf_tree;

/* -1 when it is full, or memory is. Values that are too long are left out. */
int oom_config_add(struct oom_config *out, const char *path, const char *value, size_t length,
                   uint32_t line);
int oom_config_flatten(const struct conf_tree *tree, struct oom_config *out);
void oom_config_read_toml(struct oom_config *out, const char *bytes, size_t length);

#endif
