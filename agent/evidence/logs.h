/* SPDX-License-Identifier: Apache-2.0
 *
 * Logs as files: plain, gzip, zstd, xz or bzip2, told apart by their content, or a stream. */
#ifndef AGENT_EVIDENCE_LOGS_H
#define AGENT_EVIDENCE_LOGS_H

#include "oomretry/classify.h"

enum logs_flags {
    LOGS_NO_SYMLINK = 1, /* the last part of the path must not be a symbolic link */
    LOGS_PIPES = 2,      /* pipes may be read as well, which can take for ever */
};

/* Feeds a whole file to the classifier as one stream, whose number is returned; -1 on failure. "-"
 * is standard input. `before`: the stream of the part of the same log that comes before this one,
 * or -1. Memory use does not depend on its size. A decompressed size of more than 1 TiB is
 * refused. */
int logs_feed(struct oom_classifier *classifier, const char *path, int before, int flags,
              struct oom_error *err);

/* Logs longer than this are tried from their end. */
#define LOGS_LONG_BYTES (INT64_C(64) << 20)

/* A plain file that is. */
bool logs_is_long(const char *path);

/* Does the end of this log decide (oom_classifier_skim)? Returns where that end begins, or 0: it
 * does not, or the log is short, compressed, UTF-16, a stream, or cannot be read. */
int64_t logs_end_that_decides(const struct oom_signatures *set, const char *path);

/* Skims what precedes `end` and feeds the rest as one stream, whose number is returned; -1 on
 * failure. */
int logs_feed_end(struct oom_classifier *classifier, const char *path, int64_t end,
                  struct oom_error *err);

/* The same for an open file, up to where it ends now. What lies between `from` and `end` is
 * skimmed, so 0 gives lines their true numbers; `end` is moved to the beginning of a line. */
int logs_feed_end_of(struct oom_classifier *classifier, int fd, const char *name, int64_t from,
                     int64_t end, struct oom_error *err);

#endif
