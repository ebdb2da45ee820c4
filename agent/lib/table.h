/* SPDX-License-Identifier: Apache-2.0
 *
 * Aligned columns for a terminal. */
#ifndef AGENT_LIB_TABLE_H
#define AGENT_LIB_TABLE_H

#include <stdio.h>

struct table;

struct table *table_new(const char *titles); /* separated by tabs */
void table_row(struct table *table, ...);    /* as many strings as titles */
void table_print(const struct table *table, FILE *out);
void table_free(struct table *table);

#endif
