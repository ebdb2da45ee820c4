/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a policy's document: members of the right kind, and errors that say where. Between the
 * files that parse its parts. All return 0 / -1 with the error in the place's err. */
#ifndef POLICIES_POLICY_READ_H
#define POLICIES_POLICY_READ_H

#include "policies/near.h"
#include "policies/policy_impl.h"

#define READ_PATH_ROOM 256

/* Where the parser is, for errors: "relax.json: rungs.fewer-tokens.edits[0]". */
struct place {
    const char *document;
    char path[READ_PATH_ROOM];
    struct oom_error *err;
};

struct place read_inside(const struct place *outer, const char *key);
struct place read_at(const struct place *outer, size_t index);
int read_wrong(const struct place *place, const char *what); /* always -1 */
/* unknown WHAT "NAME" (did you mean "BEST"?) */
int read_wrong_name(const struct place *place, const char *what, const char *name,
                    const struct near *near);
int read_check_name(const struct place *place, const char *what, const char *name,
                    const char *const *known);
int read_check_keys(const struct place *place, const json_t *object, const char *keys);

/* Members; an absent one leaves *out as it is (texts and expressions: NULL). */
int read_string(const struct place *place, const json_t *object, const char *key, bool required,
                const char **out);
int read_bool(const struct place *place, const json_t *object, const char *key, bool *out);
int read_strings(const struct place *place, const json_t *object, const char *key);
int read_literal(const struct place *place, const json_t *value, char **out);
int read_expr(const struct oom_policy *policy, const struct place *place, const json_t *object,
              const char *key, bool required, struct oom_expr **out);

/* Room for `count` things of an object or array; `out` points to the pointer. */
int read_room(const struct place *place, size_t count, size_t size, void *out);

/* policy_parse.c */
int policy_parse_guards(struct oom_policy *policy, const struct place *place, const json_t *object,
                        const char *key, struct guard **out, size_t *count);
/* policy_parse_outside.c */
int policy_parse_outside(const struct oom_policy *policy, const struct place *place);
/* policy_parse_rungs.c */
int policy_parse_rungs(struct oom_policy *policy, const struct place *place);
int policy_parse_params(const struct place *place, const json_t *object,
                        struct rung_params *params);
/* policy_parse_again.c */
int policy_parse_again(struct oom_policy *policy, const struct place *place);
/* policy_parse_ladders.c */
int policy_parse_ladders(struct oom_policy *policy, const struct place *place);

#endif
