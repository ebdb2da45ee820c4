/* SPDX-License-Identifier: Apache-2.0
 *
 * A head on a database of its own, and what supervisors tell it. */
#ifndef TESTS_UNIT_HEAD_HELP_H
#define TESTS_UNIT_HEAD_HELP_H

#include "agent/head/service.h"

enum { ALICE = 2001, BO = 2002 };

struct head_fixture {
    struct service service;
    char path[64];
};

int head_setup(void **state);
int head_teardown(void **state);

/* One request, which must be answered with the status `want`; uid 0 is an administrator. Takes
 * `body` over; the reply is a new reference. */
json_t *head_call_as(struct head_fixture *f, uid_t uid, const char *method, const char *path,
                     json_t *body, int want);
/* As ALICE. */
json_t *head_call(struct head_fixture *f, const char *method, const char *path, json_t *body,
                  int want);

json_t *head_begin_body(const char *job, const char *token, int restart);
json_t *head_begin(struct head_fixture *f, const char *job, const char *token, int restart);

/* The body for an end by running out of GPU memory, of a Relax job with so many tokens. */
json_t *head_oom_end(json_int_t lineage, json_int_t attempt, const char *tokens);

#endif
