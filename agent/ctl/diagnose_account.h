/* SPDX-License-Identifier: Apache-2.0
 *
 * What a diagnosis made of everything else that it saw. */
#ifndef AGENT_CTL_DIAGNOSE_ACCOUNT_H
#define AGENT_CTL_DIAGNOSE_ACCOUNT_H

#include "oomretry/classify.h"

/* The lines that look like a failure of memory or follow from one, and why they do not count:
 * those with the same reason together, in the order of the logs. */
void diagnose_print_discounted(const struct oom_incident *incident);

/* Every signature that matched, and what became of the lines. */
int diagnose_print_explain(struct oom_classifier *classifier, struct oom_error *err);

/* One line of a log, cut to the width of the terminal (diagnose_text.c). */
void diagnose_print_line(const char *text, size_t length);

#endif
