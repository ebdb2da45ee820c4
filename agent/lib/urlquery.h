/* SPDX-License-Identifier: Apache-2.0
 *
 * The query part of a request's path. */
#ifndef AGENT_LIB_URLQUERY_H
#define AGENT_LIB_URLQUERY_H

#include <jansson.h>
#include <stddef.h>

/* Copies what stands before '?' into `plain` (truncating) and returns the decoded parameters as an
 * object of strings; never NULL unless out of memory. */
json_t *urlquery_split(const char *path, char *plain, size_t size);

/* Appends name=value, percent-encoded, with '?' or '&' in front. -1 when it does not fit. */
int urlquery_add(char *path, size_t size, const char *name, const char *value);

#endif
