/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes settings in the text of a YAML or JSON file. Only what must change does: comments,
 * order, quotes, indentation, line ends and every other byte stay. Pure.
 *
 * What is set is set at its own place alone. A value that is reached through an alias or a merge
 * gets a value of its own there; where others are aliases of the changed value, they get the old
 * one as their own. References (${…}) are text like any other. Each edit is proved by reading the
 * new text: the path has the new value, and every other path the value that it had. */
#ifndef POLICIES_CONFEDIT_H
#define POLICIES_CONFEDIT_H

#include "oomretry/error.h"
#include "policies/conffile.h"

struct oom_confedit {
    const char *path;  /* "actor.mb_spec.max_tokens_per_mb", "stages.0.lr" */
    const char *value; /* NULL: the key is taken away, with all that is under it */
    const char *type;  /* of a knob; NULL: what the text looks like */
};

/* 0 and the new text (malloc'd, NUL-terminated), which is the old one when all is so already.
 * -1 and err: which file, line and setting, and why not. `name` is what errors call the file. */
int oom_confedit_apply(const char *name, const char *bytes, size_t length,
                       enum oom_config_format format, const struct oom_confedit *edits,
                       size_t count, char **out, size_t *out_length, struct oom_error *err);

/* Whether two spellings are one value: numbers by what they are, true and True. NULL is null. */
bool oom_confedit_same(const char *a, const char *b);

#endif
