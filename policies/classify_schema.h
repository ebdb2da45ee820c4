/* SPDX-License-Identifier: Apache-2.0
 *
 * What the readers of signature documents share. Every oom_schema_take_* leaves `out` alone when
 * the key is absent, and refuses a value of the wrong kind. */
#ifndef POLICIES_CLASSIFY_SCHEMA_H
#define POLICIES_CLASSIFY_SCHEMA_H

#include "policies/classify_private.h"

struct reading {
    struct oom_signatures *set;
    const char *document;
    const char *id; /* of the signature or rule being read */
    char place[32]; /* what `id` is for a rule */
    struct oom_error *err;
};

/* classify_schema_values.c */
int oom_schema_refuse(const struct reading *r, const char *key, const char *reason);
/* A word that is none of `known` (ends with NULL). */
int oom_schema_refuse_word(const struct reading *r, const char *key, const char *word,
                           const char *const *known);
extern const char *const oom_schema_domains[];
extern const char *const oom_schema_phases[];
extern const char *const oom_schema_directions[];
extern const char *const oom_schema_strengths[];
int oom_schema_check_keys(const struct reading *r, json_t *object, const char *const *known);
int oom_schema_take_string(const struct reading *r, json_t *object, const char *key,
                           const char **out);
int oom_schema_take_bool(const struct reading *r, json_t *object, const char *key, bool *out);
int oom_schema_take_int(const struct reading *r, json_t *object, const char *key, int low, int high,
                        int *out);
/* Compiles an expression with the shorthands %size% and %int%. */
int oom_schema_take_regex(const struct reading *r, const char *key, const char *pattern,
                          bool nocase, pcre2_code **out);
int oom_schema_take_regex_key(const struct reading *r, json_t *object, const char *key, bool nocase,
                              pcre2_code **out);

/* classify_schema_numbers.c: "numbers", expressions whose groups have names that are known. */
int oom_schema_take_numbers(const struct reading *r, json_t *object, bool nocase,
                            struct signature *sig);

/* classify_schema_frames.c */
int oom_schema_rule_append(const struct reading *r, const struct frame_rule *rule);
/* The rule with this number. */
int oom_schema_take_frame(struct reading *r, json_t *object, size_t index);

#endif
