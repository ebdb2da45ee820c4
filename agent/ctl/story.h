/* SPDX-License-Identifier: Apache-2.0
 *
 * A lineage told to people. `reply` is what GET /v1/history/<what> answers. */
#ifndef AGENT_CTL_STORY_H
#define AGENT_CTL_STORY_H

#include <jansson.h>

void story_explain(const json_t *reply, const char *what);

/* After a long good run: which step may be taken back. Says nothing otherwise. */
void story_advise_back(const json_t *reply);
void story_facts(const json_t *reply, const char *what);

#endif
