/* SPDX-License-Identifier: Apache-2.0 */
#include "oomretry/decide.h"

#include <stdio.h>
#include <string.h>

#include "policies/decide_making.h"

/* What is to be solved once a step is taken back: the problem that it answered. */
static void problem_of_step(const struct oom_case *input, const struct oom_step *step,
                            struct oom_incident *problem)
{
    const struct oom_incident *now = input->incident;

    oom_incident_init(problem);
    problem->oom = true;
    problem->domain = step->domain;
    problem->phase = step->phase;
    memcpy(problem->framework, now->framework, sizeof(problem->framework));
    if (step->domain == now->domain) {
        problem->numbers = now->numbers;
        problem->direction = now->direction;
    }
    /* Only what was missing is known of it: "tried" with nothing free. */
    if (step->short_before_bytes >= 0) {
        problem->numbers.tried_bytes = step->short_before_bytes;
        problem->numbers.free_bytes = 0;
    }
}

/* Takes a step back and solves its problem another way. 1 decided, 0 cannot, -1 error. */
static int take_back(struct making *m, int index, struct choice *choice)
{
    const struct oom_step *step = &m->input->steps[index];
    struct oom_incident problem;
    struct oom_edits base = {0};

    problem_of_step(m->input, step, &problem);
    int rc = making_merge(&base, &m->base) != 0 || lineage_undo(m->input, (size_t)index, &base) != 0
                 ? oom_errorf(m->err, "out of memory")
                 : making_choose(m, &problem, &base, step->rung, false, choice);
    if (rc == 1) {
        snprintf(m->out->taken_back, sizeof(m->out->taken_back), "%s", step->rung);
        rc = making_retry(m, &problem, choice) == 0 ? 1 : -1;
    }
    oom_edits_free(&base);
    oom_incident_free(&problem);
    return rc;
}

/* It was not the training that ran out: only what the whole job has may help. */
static int decide_elsewhere(struct making *m)
{
    const struct oom_incident *incident = m->input->incident;
    struct choice choice = {0};
    int rc = making_choose(m, incident, &m->base, "", true, &choice);

    if (rc == 1)
        rc = making_retry(m, incident, &choice) == 0 ? 1 : -1;
    if (rc == 0)
        rc = making_stop_elsewhere(m, incident);
    oom_edits_free(&choice.edits);
    return rc < 0 ? -1 : 0;
}

static int decide_ladder(struct making *m)
{
    const struct oom_incident *incident = m->input->incident;
    struct choice choice = {0};
    bool moved;
    int worse = lineage_worse_step(m->input, m->policies, m->policy_count, &moved);
    int rc = 0;

    /* More of what ran out keeps a rung that has solved the first problem. */
    if (worse >= 0 && moved)
        rc = making_choose(m, incident, &m->base, "", true, &choice);
    if (rc == 1)
        rc = making_retry(m, incident, &choice) == 0 ? 1 : -1;
    if (rc == 0 && worse >= 0)
        rc = take_back(m, worse, &choice);
    /* What made it worse is never built upon; what moved the problem may be all that there is. */
    if (rc == 0 && (worse < 0 || moved)) {
        rc = making_choose(m, incident, &m->base, "", false, &choice);
        if (rc == 1)
            rc = making_retry(m, incident, &choice) == 0 ? 1 : -1;
    }
    if (rc == 0)
        rc = making_stop_ladder(m, incident);
    oom_edits_free(&choice.edits);
    return rc < 0 ? -1 : 0;
}

static int count_not_applied(const struct oom_case *input)
{
    int count = 0;

    for (size_t i = 0; i < input->step_count; i++)
        count += input->steps[i].not_applied;
    return count;
}

/* The ladder goes on, but not for this lineage: its owner learns what would have come. */
static int stop_at_bound(struct making *m)
{
    int bound = m->input->max_retries;
    char next[sizeof(m->out->rung)];

    snprintf(next, sizeof(next), "%s", m->out->rung);
    oom_decision_free(m->out);
    oom_decision_init(m->out);
    if (bound == 0)
        making_stop(m, "no retry is allowed (--oom-max-retries=0)");
    else
        making_stop(m, "all %d retr%s of this lineage are used (--oom-max-retries)", bound,
                    bound == 1 ? "y" : "ies");
    snprintf(m->out->advice, sizeof(m->out->advice),
             "With a larger --oom-max-retries the next rung would be %s.", next);
    return 0;
}

static int decide(struct making *m)
{
    const struct oom_case *input = m->input;

    if (!input->incident->oom || input->incident->domain == OOM_DOMAIN_NONE)
        return making_stop(m, "no sign of memory: %.300s",
                           input->incident->summary[0] ? input->incident->summary
                                                       : "the job failed for another reason");
    if (m->policy_count == 0)
        return making_stop(m, "no policy knows this program");
    if (count_not_applied(input) >= 2)
        return making_stop(m,
                           "two changes were seen not to reach the program: the script passes its "
                           "settings in a way that cannot be followed");
    if (making_undo_diagnosis(m) != 0 ||
        (input->incident->program[0] ? decide_elsewhere(m) : decide_ladder(m)) != 0)
        return -1;
    return input->retries_used >= input->max_retries && m->out->retry ? stop_at_bound(m) : 0;
}

int oom_decide(const struct oom_policy *const *policies, size_t policy_count,
               const struct oom_case *input, struct oom_decision *out, struct oom_error *err)
{
    struct making m = {
        .policies = policies, .policy_count = policy_count, .input = input, .out = out, .err = err};

    oom_decision_init(out);
    int rc = decide(&m);
    oom_edits_free(&m.base);
    if (rc != 0)
        oom_decision_free(out);
    return rc;
}
