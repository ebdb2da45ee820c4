/* SPDX-License-Identifier: Apache-2.0
 *
 * What Ray has left on this machine, for the head's watcher on another one (`node_listen`). Three
 * processes, so that the one with root's rights parses nothing:
 *
 *   evidence_port.c  the head's user: HTTP, MUNGE, JSON. Hands a question of fixed form and the
 *                    writing end of a pipe to the parent, and seals what comes out of the pipe
 *   evidence_root.c  root, in the agent's parent: checks the question's letters, finds the session
 *                    below a configured directory, forks
 *   evidence_read.c  the owner of that session: reads
 *
 * A request is POST with a MUNGE credential as its body, as for the head, which holds
 *
 *   POST /v1/ray/logs\n{"nonce":"…","session":"session_…","job":"02000000"}
 *   POST /v1/ray/driver\n{"nonce":"…","session":"session_…","submission":"train-oom2"}
 *   POST /v1/ray/package\n{"nonce":"…","session":"session_…","package":"_ray_pkg_…"}
 *
 * from root or from the head's user. The answer is a line for each piece: a credential that only
 * the asker can open, made by root or by the head's user, which holds {"nonce":"…","n":0,
 * "name":"worker-….err"}, a line feed, and bytes. A log is one piece, a package (a zip) several.
 * The name of the last piece is ""; without it the answer is not whole. */
#ifndef AGENT_NODE_EVIDENCE_H
#define AGENT_NODE_EVIDENCE_H

#include <event2/event.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/lib/config.h"

enum evidence_what { EVIDENCE_LOGS, EVIDENCE_DRIVER, EVIDENCE_PACKAGE };

/* Over the socket between port and root, by value. */
struct evidence_question {
    int32_t what;
    char session[128];
    char name[256]; /* Ray's id of the job, the submission, or the package without .zip */
};

/* Only letters that such names are made of; no path. */
bool evidence_question_is_sound(const struct evidence_question *question);

/* --- evidence_port.c: runs until SIGTERM; returns the exit status. */
int evidence_port_run(const struct config *config, int root_fd);

/* --- evidence_root.c: takes questions from `fd`, which it does not own. */
struct evidence_root;
struct evidence_root *evidence_root_open(struct event_base *base, int fd,
                                         const struct config *config, struct oom_error *err);
void evidence_root_close(struct evidence_root *root);
/* A child of the agent has ended. */
void evidence_root_reaped(struct evidence_root *root, pid_t pid);

/* --- evidence_read.c: the pieces, as "NAME LENGTH\n" and bytes; the current directory is the
 * session's. 0: all of it. */
int evidence_read(const struct evidence_question *question, int out);

#endif
