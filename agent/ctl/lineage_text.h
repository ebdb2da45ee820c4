/* SPDX-License-Identifier: Apache-2.0
 *
 * Lineages, attempts and incidents in a few words, from the JSON of the head. */
#ifndef AGENT_CTL_LINEAGE_TEXT_H
#define AGENT_CTL_LINEAGE_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "oomretry/error.h"

/* The job id that people use: the newest; "L7" where there is no scheduler. */
void lineage_job(const json_t *lineage, char *out, size_t size);

/* "running", with what its owner said meanwhile: "running (stop)". */
void lineage_state(const json_t *lineage, char *out, size_t size);

/* "gpu forward 0.98 GiB"; "" without an incident. */
void lineage_failure(const json_t *incident, char *out, size_t size);

/* "max-tokens-per-gpu 12288 -> 8192; …" */
void lineage_changed(const json_t *edits, char *out, size_t size);

/* Of a decision: "relax@3", "relax@3 with the override of partition small@2". */
void lineage_policy(const json_t *decision, char *out, size_t size);

/* One attempt of the tree that `oomctl history JOBID` shows. */
void lineage_print_attempt(const json_t *lineage, const json_t *attempt, bool last);

/* "/v1/history/<what>" for a job id, lineage ("L7") or attempt ("7.2"); refuses anything else. */
int lineage_path(const char *what, char *out, size_t size, struct oom_error *err);

#endif
