/* SPDX-License-Identifier: Apache-2.0
 *
 * --since: 90s, 30m, 2h, 3d, 1w, or a date such as 2026-11-29 (local time). */
#ifndef AGENT_CTL_SINCE_H
#define AGENT_CTL_SINCE_H

#include <argp.h>
#include <stdint.h>

/* Milliseconds since the epoch; what cannot be read ends the program through argp_error. */
int64_t since_parse(struct argp_state *state, const char *text);

#endif
