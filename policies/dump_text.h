/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes in which programs print settings, as names and values. */
#ifndef POLICIES_DUMP_TEXT_H
#define POLICIES_DUMP_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* `name` is dotted where the dump is nested. Both end with NUL and live for the call only. */
typedef void dump_found_f(void *arg, const char *name, const char *value);

/* A log without terminal escapes, malloc'd; NULL when out of memory. */
char *dump_clean(const char *log, size_t length);

/* Lines "  name ....... value"; with `begin`, only between lines that hold begin and end. Returns
 * how often such a table was whole: ended, and too long to be an excerpt. */
int dump_table(const char *text, const char *begin, const char *end, dump_found_f *found,
               void *arg);

/* What opens with a bracket at or behind `mark`, in Python's or JSON's spelling, on one line or
 * many: {'a': {'b': 1}}, Namespace(a=1, b='x'). -1 when out of memory. */
int dump_literal(const char *text, const char *mark, dump_found_f *found, void *arg);

#endif
