/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole way from files to an incident. */
#ifndef AGENT_EVIDENCE_DIAGNOSE_H
#define AGENT_EVIDENCE_DIAGNOSE_H

#include "oomretry/classify.h"

/* Reads every log ("-" is standard input, and pipes are read) and judges. Of long logs
 * (LOGS_LONG_BYTES) the end is read first, and the rest only skimmed, when all ends decide that
 * memory ran out; `whole` asks for everything. The caller frees the incident and, when `used` is
 * wanted, the classifier. */
int diagnose_logs(const struct oom_signatures *set, const char *const *logs, size_t count,
                  const struct oom_exit *exit_data, bool whole, struct oom_incident *out,
                  struct oom_classifier **used, struct oom_error *err);

/* The same with the signatures in force. */
int diagnose_files(const char *const *logs, size_t count, const struct oom_exit *exit_data,
                   struct oom_incident *out, struct oom_error *err);

#endif
