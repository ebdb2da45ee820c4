/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ctl/one_job.h"

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct one_job *job = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &job->common;
        return 0;
    case ARGP_KEY_ARG:
        if (job->what)
            argp_error(state, "one job at a time, not \"%s\" as well", arg);
        job->what = arg;
        return 0;
    case ARGP_KEY_END:
        if (!job->what)
            argp_error(state, "which job? `oomctl history` lists them");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

void one_job_read(const char *names, const char *doc, int argc, char **argv, struct one_job *out)
{
    const struct argp argp = {
        .parser = parse_option, .args_doc = names, .doc = doc, .children = ctl_common_options};

    *out = (struct one_job){.what = NULL};
    argp_parse(&argp, argc, argv, 0, NULL, out);
}
