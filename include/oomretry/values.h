/* SPDX-License-Identifier: Apache-2.0
 *
 * The present values of knobs: what the training command would be given now, and how that is
 * known. A small ordered map that rewrite fills and decide reads. */
#ifndef OOMRETRY_VALUES_H
#define OOMRETRY_VALUES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum oom_source {
    OOM_SOURCE_DEFAULT, /* the policy's default: nothing sets it */
    OOM_SOURCE_SCRIPT,
    OOM_SOURCE_CONFIG, /* a YAML or JSON file behind the command */
    OOM_SOURCE_ENV,
    OOM_SOURCE_ARGV, /* the running process */
    OOM_SOURCE_LOG,  /* the framework's own dump */
    OOM_SOURCE_SCHEDULER,
};

const char *oom_source_name(enum oom_source source);

struct oom_value {
    char *knob;  /* as the framework's command line spells it */
    char *value; /* NULL: a switch that is absent, or not set at all; "true": a present switch */
    enum oom_source source;
    char *where; /* "script:14", "conf/grpo.yaml:22"; NULL when nowhere in particular */
};

struct oom_values {
    struct oom_value *items;
    size_t count;
};

void oom_values_free(struct oom_values *values); /* contents only */

/* Adds or replaces. -1 when out of memory. value and where may be NULL. */
int oom_values_set(struct oom_values *values, const char *knob, const char *value,
                   enum oom_source source, const char *where);
const struct oom_value *oom_values_find(const struct oom_values *values, const char *knob);
const char *oom_values_get(const struct oom_values *values, const char *knob); /* or NULL */

/* Fills in what `values` do not know from `found`: what is not set there, only a default, or still
 * a word of the shell ("$TOKENS"). `source` is what is said of it. */
int oom_values_fill(struct oom_values *values, const struct oom_values *found,
                    enum oom_source source);

/* {"knob":{"value":"…"|null,"source":"script","where":"…"}} and back. */
json_t *oom_values_to_json(const struct oom_values *values);
int oom_values_from_json(const json_t *json, struct oom_values *out);

/* One change of one knob. */
struct oom_edit {
    char *knob;
    char *old_value; /* NULL: was not set */
    char *new_value; /* NULL: taken away */
    char *where;     /* filled by rewrite: "script:14" */
};

struct oom_edits {
    struct oom_edit *items;
    size_t count;
};

void oom_edits_free(struct oom_edits *edits); /* contents only */

/* Appends; a later edit of the same knob replaces the earlier new_value and keeps its old_value,
 * so that a lineage's edits can be folded into what the next attempt needs. */
int oom_edits_add(struct oom_edits *edits, const char *knob, const char *old_value,
                  const char *new_value, const char *where);

/* Adds every edit of `from` like that. -1 when out of memory. */
int oom_edits_append(struct oom_edits *edits, const struct oom_edits *from);
/* Takes out what ends where it began: a change and its undoing. */
void oom_edits_drop_unchanged(struct oom_edits *edits);
json_t *oom_edits_to_json(const struct oom_edits *edits); /* [{"knob","old","new","where"}] */
int oom_edits_from_json(const json_t *json, struct oom_edits *out);

#endif
