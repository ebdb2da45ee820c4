/* SPDX-License-Identifier: Apache-2.0
 *
 * What verbs have in common: --json, --db and --head, a call of the head that these lead to, and
 * its answer as JSON. */
#ifndef AGENT_CTL_COMMON_H
#define AGENT_CTL_COMMON_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>

#include "agent/lib/api.h"

struct ctl_common {
    bool json;
    const char *db_path;
    const char *head;
};

/* `children` of a verb's argp. The verb's parser hands its struct ctl_common on:
 *
 *     case ARGP_KEY_INIT:
 *         state->child_inputs[0] = &a->common;
 *         return 0;
 *
 * (argp does that by itself where a verb has no parser of its own.) */
extern const struct argp_child ctl_common_options[]; /* --json, --db, --head */
extern const struct argp_child ctl_json_option[];    /* --json, for verbs that ask nobody */

/* The head that the options name, else the one that is configured. */
struct api *ctl_open(const struct ctl_common *common, struct oom_error *err);

/* One call of it. Returns 0 with a new reference in *reply, else the exit status, after
 * "oomctl VERB: …" has been printed: 1 there is no such thing, 2 anything else. */
int ctl_call(const struct ctl_common *common, const char *verb, const char *method,
             const char *path, const json_t *body, json_t **reply);

/* Prints "oomctl VERB: text"; returns 2. */
int ctl_fail(const char *verb, const struct oom_error *err);

void ctl_print_json(const json_t *value);

#endif
