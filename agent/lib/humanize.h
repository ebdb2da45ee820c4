/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes, durations and times for people. */
#ifndef AGENT_LIB_HUMANIZE_H
#define AGENT_LIB_HUMANIZE_H

#include <stddef.h>
#include <stdint.h>

void humanize_bytes(int64_t bytes, char *out, size_t size);                /* "0.98 GiB" */
void humanize_duration(int64_t ms, char *out, size_t size);                /* "4m12s" */
void humanize_when(int64_t at_ms, int64_t now_ms, char *out, size_t size); /* "today 14:02" */
void humanize_iso(int64_t at_ms, char *out, size_t size); /* "2026-11-29T14:02:11Z" */

#endif
