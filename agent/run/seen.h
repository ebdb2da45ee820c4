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

/* Another look at what runs: what seen_add is told until the next one was seen in it. */
void seen_look(struct seen *seen, int64_t now_ms);

/* `argv` is taken over (one allocation, as proctree_argv makes it); its process began then. */
void seen_add(struct seen *seen, char **argv, int64_t began_ms);

/* The log was read to its end, and has so many lines. All times are proctree_now_ms. */
void seen_poll(struct seen *seen, int64_t now_ms, int64_t out_lines, int64_t err_lines);

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

struct seen_command {
    char **argv;
    int64_t first, last; /* looks in which it was seen */
    int64_t began_ms;
    int64_t lines[2]; /* of each stream that were none of its own; INT64_MAX: not known */
};

/* In the order in which they were first seen; NULL: no more. */
const struct seen_command *seen_at(const struct seen *seen, size_t i);
bool seen_is_of(const struct seen_command *command, const struct oom_policy *policy);

#endif
