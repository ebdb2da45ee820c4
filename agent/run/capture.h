/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_RUN_CAPTURE_H
#define AGENT_RUN_CAPTURE_H

#include "agent/run/run.h"

/* In the environment of a job that was submitted in the place of another one. */
#define CONTINUES_VARIABLE "OOMRETRY_CONTINUES"

/* Keeps what a new submission would need in the user's state directory (paths_owner_dir, else
 * paths_spare_dir), with mode 0600, when the batch step starts: all of it, or nothing, which is not
 * fatal. capture_forget removes it. */
void capture_job(const struct run *run);
bool capture_captured(const struct run *run);
void capture_forget(const struct run *run);

/* One of "env", "args", "dir" and "options": its file (-1: there is none), and the strings in it (a
 * NULL-terminated list into *bytes; both are to be freed), or NULL when there is none. */
int capture_path(const struct run *run, const char *kind, char *out, size_t size);
char **capture_read(const struct run *run, const char *kind, char **bytes);

/* The script as it was submitted. */
int capture_script(const struct run *run, char **bytes, size_t *length);

/* The new job captures its own when it starts; until then it has this one's, should it fail to. */
void capture_hand_over(const struct run *run, const char *new_job);

#endif
