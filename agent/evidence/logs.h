/* SPDX-License-Identifier: Apache-2.0
 *
 * Logs as files: plain, gzip, zstd, xz or bzip2, told apart by their content, or a stream. */
#ifndef AGENT_EVIDENCE_LOGS_H
#define AGENT_EVIDENCE_LOGS_H

#include "oomretry/classify.h"

enum logs_flags {
    LOGS_NO_SYMLINK = 1, /* the last part of the path must not be a symbolic link */
};

/* Feeds a whole file to the classifier as one stream; "-" is standard input. Memory use does not
 * depend on its size. A decompressed size of more than 1 TiB is refused. */
int logs_feed(struct oom_classifier *classifier, const char *path, int flags,
              struct oom_error *err);

#endif
