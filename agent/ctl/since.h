/* SPDX-License-Identifier: Apache-2.0
 *
 * --since: 90s, 30m, 2h, 3d, 1w, or a date such as 2026-11-29 (local time); and the verbs that ask
 * the head about a period. */
#ifndef AGENT_CTL_SINCE_H
#define AGENT_CTL_SINCE_H

#include <argp.h>
#include <stdint.h>

#include "agent/ctl/common.h"

/* Milliseconds since the epoch; what cannot be read ends the program through argp_error. */
int64_t since_parse(struct argp_state *state, const char *text);

/* `oomctl VERB [--since T]`: GET /v1/VERB from `since_ms` on, printed as JSON or by `print`. */
int since_report(const char *verb, const char *doc, int64_t since_ms, int argc, char **argv,
                 void (*print)(const json_t *reply, int64_t since_ms));

#endif
