/* SPDX-License-Identifier: Apache-2.0
 *
 * A lineage in the small: the shipped policies, settings written as text, and an attempt that
 * fails the same way again and again. */
#ifndef TESTS_UNIT_LADDER_HELP_H
#define TESTS_UNIT_LADDER_HELP_H

#include "oomretry/decide.h"

#define LADDER_STEPS 48

struct ladder_run {
    struct oom_policy *policies[3]; /* the framework's, "pytorch", "host" */
    struct oom_values values;
    struct oom_incident incident;
    struct oom_step steps[LADDER_STEPS];
    size_t step_count;
    struct oom_case input;
};

/* The shipped document. Fails the test when it cannot be read. */
json_t *ladder_document(const char *name);
/* How many there are. */
size_t ladder_shipped_count(void);

/* `problem` is "gpu forward raise": domain, phase, perhaps a direction. `settings` are
 * "knob=value; knob=value; switch"; names that begin with "n." set a number of the message in
 * GiB ("n.tried=2"), "text" is the decisive line, "allow" consents to changes of
 * training, "mode=inplace" is the owner's --oom-mode. */
void ladder_begin(struct ladder_run *run, const char *policy, const char *problem,
                  const char *settings);
/* The same with a changed document for the framework. */
void ladder_begin_with(struct ladder_run *run, const json_t *document, const char *problem,
                       const char *settings);
/* Without policies: for those who bring their own to run->input. */
void ladder_begin_alone(struct ladder_run *run, const char *problem, const char *settings);
void ladder_problem(struct ladder_run *run, const char *problem);
void ladder_settings(struct ladder_run *run, const char *settings);
void ladder_end(struct ladder_run *run);

/* Decides; the decision is the caller's to free. */
void ladder_decide(struct ladder_run *run, struct oom_decision *out);
/* Makes the decision's edits the present values, and a step of the lineage. */
void ladder_apply(struct ladder_run *run, const struct oom_decision *decision);

/* "knob: old -> new; ..." of a decision, in order. */
void ladder_edits_text(const struct oom_edits *edits, char *out, size_t size);
const char *ladder_skip_why(const struct oom_decision *decision, const char *rung); /* or NULL */

#endif
