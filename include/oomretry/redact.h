/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes secrets out of text that is going to be stored or shown: values of flags and variables
 * whose names end in key, token, secret or password, bearer tokens, passwords in URLs, and the
 * well-known token shapes (hf_..., sk-..., 40 hex digits behind wandb). */
#ifndef OOMRETRY_REDACT_H
#define OOMRETRY_REDACT_H

#include <stddef.h>

/* A new string with each secret replaced by "[redacted]"; terminal colours are left out, and
 * control characters other than tab and newline become '?'. NULL when out of memory. The caller
 * frees it. */
char *oom_redact(const char *text, size_t length);

#endif
