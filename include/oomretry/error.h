/* SPDX-License-Identifier: Apache-2.0
 *
 * One sentence for a person: what happened, to what, and what to do.
 *
 * Functions that can fail for a reason worth reading take a `struct oom_error *` last. NULL is
 * allowed. They return 0 / -1 (or a pointer / NULL) and leave no side effect on failure. */
#ifndef OOMRETRY_ERROR_H
#define OOMRETRY_ERROR_H

struct oom_error {
    char text[1024];
};

/* Formats into err->text (truncating); keeps errno. Always returns -1, so that
 * `return oom_errorf(err, ...)` reads well. */
int oom_errorf(struct oom_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts "prefix: " in front of what err holds. Always returns -1. */
int oom_error_prefix(struct oom_error *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
