/* SPDX-License-Identifier: Apache-2.0
 *
 * Logs that are not the job's standard output: what the script redirects or tees to, and what
 * frameworks write by themselves (per-rank files of torchrun, Ray's worker logs). */
#ifndef AGENT_EVIDENCE_OTHERLOGS_H
#define AGENT_EVIDENCE_OTHERLOGS_H

#include <stdint.h>

#include "oomretry/classify.h"
#include "oomretry/rewrite.h"

/* Feeds every such file that was written since the attempt began to the classifier: at most 64
 * files and the last 64 MiB of each. Lines have their numbers in the file, but in those whose rest
 * goes beyond 4 GiB in all. Runs as the job's owner. Returns the number of files. */
int otherlogs_feed(struct oom_classifier *classifier, const struct oom_script *script,
                   int64_t since_ms);

#endif
