/* SPDX-License-Identifier: Apache-2.0
 *
 * Logs are appended to: what stood in a file before an attempt began is not that attempt's. Marks
 * remember how long each file was then, and tell later what was added. */
#ifndef AGENT_EVIDENCE_LOGMARKS_H
#define AGENT_EVIDENCE_LOGMARKS_H

#include <stdbool.h>
#include <sys/stat.h>

struct logmarks;

struct logmarks *logmarks_new(void); /* NULL: out of memory */
void logmarks_free(struct logmarks *marks);
void logmarks_clear(struct logmarks *marks);

/* This open file is as it is. False when no more are remembered. */
bool logmarks_add(struct logmarks *marks, int fd, const struct stat *st);

/* Where the part begins that was written to this open file since: 0 for one that was not there, or
 * that was emptied and written anew; -1 when nothing was. `marks` may be NULL: none. */
off_t logmarks_start(const struct logmarks *marks, int fd, const struct stat *st);

#endif
