/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole way from files to an incident. */
#ifndef AGENT_EVIDENCE_DIAGNOSE_H
#define AGENT_EVIDENCE_DIAGNOSE_H

#include "oomretry/classify.h"

/* Loads the signatures in force, reads every log ("-" is standard input) and judges. The caller
 * frees the incident. */
int diagnose_files(const char *const *logs, size_t count, const struct oom_exit *exit_data,
                   struct oom_incident *out, struct oom_error *err);

#endif
