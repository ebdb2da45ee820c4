/* SPDX-License-Identifier: Apache-2.0
 *
 * The arguments of the programs that an attempt ran, as they were seen while it ran: the present
 * values of settings that the script does not show. Bounded; each command line once. */
#ifndef AGENT_RUN_SEEN_H
#define AGENT_RUN_SEEN_H

#include "oomretry/rewrite.h"

struct seen;

struct seen *seen_new(void);
void seen_free(struct seen *seen);
void seen_clear(struct seen *seen);

/* `argv` is taken over (one allocation, as proctree_argv makes it). */
void seen_add(struct seen *seen, char **argv);

/* A launcher that is a script shows as its interpreter: of "python3 -s /usr/bin/ray job …" what
 * begins with the script; NULL: it is no such command line. */
char *const *seen_script(char *const *argv);

bool seen_recognises(const struct seen *seen, const struct oom_policy *policy);

/* The policy (the first of these) of the last command line that any of them recognises; -1: none
 * is. */
int seen_last(const struct seen *seen, struct oom_policy *const *policies, size_t count);

/* Fills in what `values` do not know, from the command lines that this policy recognises. */
void seen_values(const struct seen *seen, const struct oom_policy *policy,
                 struct oom_values *values);

#endif
