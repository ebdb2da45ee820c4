/* SPDX-License-Identifier: Apache-2.0
 *
 * Logs that are not the job's standard output: what the script redirects or tees to, and what
 * frameworks write by themselves (per-rank files of torchrun, Ray's worker logs). */
#ifndef AGENT_EVIDENCE_OTHERLOGS_H
#define AGENT_EVIDENCE_OTHERLOGS_H

#include <stdint.h>

#include "agent/evidence/logmarks.h"
#include "oomretry/classify.h"
#include "oomretry/rewrite.h"

/* An attempt begins: what the logs hold already is not its. Takes a quarter of a second at most. */
void otherlogs_mark(struct logmarks *marks, const struct oom_script *script);

/* Feeds what was written to such files since the attempt began and behind the marks (NULL: none)
 * to the classifier: at most 64 files and the last 64 MiB of each. Lines have their numbers in the
 * file, but in those whose rest goes beyond 4 GiB in all. Runs as the job's owner. Returns the
 * number of files. */
int otherlogs_feed(struct oom_classifier *classifier, struct logmarks *marks,
                   const struct oom_script *script, int64_t since_ms);

#endif
