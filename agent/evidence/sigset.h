/* SPDX-License-Identifier: Apache-2.0
 *
 * The signatures in force: those that are shipped and those of the site. */
#ifndef AGENT_EVIDENCE_SIGSET_H
#define AGENT_EVIDENCE_SIGSET_H

#include "oomretry/classify.h"

#define SIGSET_SITE_DIR "/etc/oomretry/signatures"

/* Reads PREFIX/share/oomretry/signatures and then the site's directory (SIGSET_SITE_DIR, or what
 * OOMRETRY_SIGNATURES names), every *.json in order of name, and compiles the set. A file that
 * cannot be used is an error that names file, key and reason. NULL on failure. */
struct oom_signatures *sigset_load(struct oom_error *err);

/* One more file, before the compilation: for `oomctl signatures test FILE`. */
int sigset_add_file(struct oom_signatures *set, const char *path, struct oom_error *err);

/* As sigset_load, without compiling. */
struct oom_signatures *sigset_read(struct oom_error *err);

#endif
