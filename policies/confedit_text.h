/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of confedit: how values, keys and whole groups are written. All results are malloc'd;
 * NULL when out of memory. */
#ifndef POLICIES_CONFEDIT_TEXT_H
#define POLICIES_CONFEDIT_TEXT_H

#include "policies/confedit.h"
#include "policies/conftree.h"

char *conf_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The value as the file's language has it; `old` is the scalar whose place it takes, or NULL. */
char *conf_value_text(const struct conf_tree *tree, const struct oom_confedit *edit,
                      const struct conf_node *old);
/* A scalar as it is written, or in quotes when that does not fit into one line of a flow. */
char *conf_scalar_text(const struct conf_tree *tree, const struct conf_node *node);
/* A key as its neighbours are written. */
char *conf_key_text(const struct conf_tree *tree, const char *key, size_t length, bool quoted);
/* `{a: {b: VALUE}}` for the path "a.b" in one line; VALUE alone for "". */
char *conf_nested_flow(const struct conf_tree *tree, const char *path, const char *value,
                       bool quoted);
/* The group at `node` in one line, with the path under it set to `value`. What has an anchor is
 * merged or named by it. NULL as well when it cannot be written so. */
char *conf_copy_flow(const struct conf_tree *tree, uint32_t node, const char *path,
                     const char *value);

#endif
