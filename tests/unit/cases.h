/* SPDX-License-Identifier: Apache-2.0
 *
 * The labelled logs of tests/corpus, for tests that run from the top of the source tree. */
#ifndef TESTS_UNIT_CASES_H
#define TESTS_UNIT_CASES_H

#include "oomretry/classify.h"

/* The lines of a file as bytes; the caller frees them. JSON cannot hold bytes that are not UTF-8,
 * so that lines with lone surrogates were refused by the loader; the Python test takes those. */
char *cases_joined(const json_t *lines, size_t *length);

/* What a case says of the end of its job. */
void cases_read_exit(const json_t *exit, struct oom_exit *out);

#endif
