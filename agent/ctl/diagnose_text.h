/* SPDX-License-Identifier: Apache-2.0
 *
 * A diagnosis for people. */
#ifndef AGENT_CTL_DIAGNOSE_TEXT_H
#define AGENT_CTL_DIAGNOSE_TEXT_H

#include "oomretry/classify.h"

/* Prints the verdict in one sentence, the decisive lines with those around them, the numbers, and
 * what was discounted and why; with `explain` every signature that matched. */
int diagnose_print(struct oom_classifier *classifier, const struct oom_incident *incident,
                   bool explain, struct oom_error *err);

#endif
