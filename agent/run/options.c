/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/run/options.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/run/array.h"
#include "agent/run/capture.h"

enum { DEFAULT_GRACE_S = 120, MAX_GRACE_S = 86400, MAX_RETRIES = 100 };

enum {
    KEY_MAX = 'n',
    KEY_POLICY = 'p',
    KEY_DB = 256,
    KEY_MODE,
    KEY_ALLOW,
    KEY_DRY,
    KEY_GRACE,
    KEY_NAME,
    KEY_SLURM,
    KEY_MEMORY,
    KEY_STEP_BACK,
    KEY_AFTER,
    KEY_ENDED,
    KEY_UNBEGUN,
    KEY_ORPHAN,
    KEY_HAND_IN,
    KEY_LOOK,
    KEY_VERSION
};

static const struct argp_option option_table[] = {
    {"policy", KEY_POLICY, "NAME", 0, "the policy to use (default: auto, by what is run)", 0},
    {"max-retries", KEY_MAX, "N", 0, "at most N changed attempts after the first", 0},
    {"mode", KEY_MODE, "MODE", 0, "auto, inplace, requeue or resubmit", 0},
    {"allow", KEY_ALLOW, "WHAT", 0, "training: also rungs that change what is trained", 0},
    {"dry-run", KEY_DRY, NULL, 0, "say what would be done, and do not retry", 0},
    {"step-back", KEY_STEP_BACK, NULL, 0,
     "try one step less than what worked for this script before", 0},
    {"no-memory", KEY_MEMORY, NULL, 0, "do not begin with what worked for this script before", 0},
    {"db", KEY_DB, "FILE", 0, "the SQLite file (default: in the user's state directory)", 0},
    {"grace", KEY_GRACE, "SECONDS", 0,
     "end a job that has run out and is silent for so long (default 120, 0 never)", 0},
    {"name", KEY_NAME, "NAME", 0, "what the history calls it", 0},
    {"slurm", KEY_SLURM, NULL, OPTION_HIDDEN, "started by the plugin", 0},
    {"after", KEY_AFTER, "LINEAGE.ATTEMPT.JOB", OPTION_HIDDEN, "started by the agent", 0},
    {"ended", KEY_ENDED, "STATUS", OPTION_HIDDEN, "how the batch script ended", 0},
    {"hand-in", KEY_HAND_IN, "FILE", OPTION_HIDDEN, "started by the agent", 0},
    {"look", KEY_LOOK, "SINCE_MS", OPTION_HIDDEN, "started on another node of the job", 0},
    {"unbegun", KEY_UNBEGUN, NULL, OPTION_HIDDEN, "nothing of it was executed", 0},
    {"orphan", KEY_ORPHAN, NULL, OPTION_HIDDEN, "the scheduler takes the job for running", 0},
    {"version", KEY_VERSION, NULL, 0, "print the version", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static bool is_whole_number(const char *text, int max, int *out)
{
    char *end;

    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < 0 || value > max)
        return false;
    *out = (int)value;
    return true;
}

static int whole_number(struct argp_state *state, const char *name, const char *text, int max)
{
    int value = 0;

    if (!is_whole_number(text, max, &value))
        argp_error(state, "--%s takes a whole number from 0 to %d, not \"%s\"", name, max, text);
    return value;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    struct run_options *o = &arguments->options;
    enum oom_mode mode;

    switch (key) {
    case KEY_POLICY:
        o->policy = arg;
        return 0;
    case KEY_MAX:
        o->max_retries = whole_number(state, "max-retries", arg, MAX_RETRIES);
        return 0;
    case KEY_MODE:
        if (oom_mode_parse(arg, &mode) < 0)
            argp_error(state, "--mode is one of auto, inplace, requeue, resubmit, not \"%s\"", arg);
        o->mode = arg;
        return 0;
    case KEY_ALLOW:
        if (strcmp(arg, "training") != 0)
            argp_error(state, "--allow knows only \"training\", not \"%s\"", arg);
        o->allow = arg;
        return 0;
    case KEY_DRY:
        o->dry_run = true;
        return 0;
    case KEY_MEMORY:
        o->memory = false;
        return 0;
    case KEY_STEP_BACK:
        o->step_back = true;
        return 0;
    case KEY_DB:
        o->db_path = arg;
        return 0;
    case KEY_GRACE:
        o->grace_s = whole_number(state, "grace", arg, MAX_GRACE_S);
        return 0;
    case KEY_NAME:
        o->name = arg;
        return 0;
    case KEY_SLURM:
        o->in_job = true;
        return 0;
    case KEY_AFTER: {
        long long lineage, attempt;
        int n = 0;
        if (sscanf(arg, "%lld.%lld.%n", &lineage, &attempt, &n) != 2 || n == 0 || !arg[n])
            argp_error(state, "--after takes LINEAGE.ATTEMPT.JOB");
        arguments->after.lineage = lineage;
        arguments->after.attempt = attempt;
        arguments->after.job = arg + n;
        return 0;
    }
    case KEY_ENDED:
        arguments->after.batch_status = whole_number(state, "ended", arg, 0xffff);
        return 0;
    case KEY_UNBEGUN:
        arguments->after.unbegun = true;
        return 0;
    case KEY_ORPHAN:
        arguments->after.orphan = true;
        return 0;
    case KEY_HAND_IN:
        arguments->hand_in = arg;
        return 0;
    case KEY_LOOK:
        arguments->look_since_ms = strtoll(arg, NULL, 10);
        return 0;
    case KEY_VERSION:
        printf("oomrun (oomretry) %s\n", OOMRETRY_VERSION);
        exit(0);
    case ARGP_KEY_ARG:
        /* The first word that is not an option begins the command; the rest is the command's. */
        arguments->command = &state->argv[state->next - 1];
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END:
        if (!arguments->command && !arguments->after.job && !arguments->hand_in &&
            arguments->look_since_ms <= 0)
            argp_error(state, "no command; say for example: oomrun -- bash train.sh");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void number_from_environment(const char *name, int max, int *out)
{
    const char *text = getenv(name);

    if (text && *text && !is_whole_number(text, max, out))
        say("%s is a whole number from 0 to %d, not \"%s\": it is ignored", name, max, text);
}

/* The owner's and the site's wishes come in the environment: those of a job that the plugin has
 * opted in, or defaults, over which the command line goes. */
static void options_from_environment(struct run_options *o)
{
    enum oom_mode mode;
    const char *text;

    number_from_environment("OOMRETRY_MAX_RETRIES", MAX_RETRIES, &o->max_retries);
    number_from_environment("OOMRETRY_GRACE_S", MAX_GRACE_S, &o->grace_s);
    if ((text = getenv("OOMRETRY_POLICY")) && *text)
        o->policy = strdup(text);
    if ((text = getenv("OOMRETRY_MODE")) && *text) {
        if (oom_mode_parse(text, &mode) < 0)
            say("OOMRETRY_MODE is one of auto, inplace, requeue, resubmit, not \"%s\": it is "
                "ignored",
                text);
        else
            o->mode = strdup(text);
    }
    if ((text = getenv("OOMRETRY_ALLOW")) && *text) {
        if (strcmp(text, "training") != 0)
            say("OOMRETRY_ALLOW knows only \"training\", not \"%s\": it is ignored", text);
        else
            o->allow = strdup(text);
    }
    if ((text = getenv("OOMRETRY_DRY_RUN")) && strcmp(text, "1") == 0)
        o->dry_run = true;
    if ((text = getenv("OOMRETRY_MEMORY")) && strcmp(text, "off") == 0)
        o->memory = false;
    if ((text = getenv("OOMRETRY_STEP_BACK")) && strcmp(text, "1") == 0)
        o->step_back = true;
    if ((text = getenv("OOMRETRY_SUBMITTED")) && *text)
        o->submitted = strdup(text);
}

/* What was for oomrun alone: a job's programs must not see it. */
static void forget_environment(void)
{
    static const char *const internal[] = {
        "OOMRETRY_POLICY",    "OOMRETRY_MAX_RETRIES", "OOMRETRY_MODE",
        "OOMRETRY_ALLOW",     "OOMRETRY_DRY_RUN",     "OOMRETRY_GRACE_S",
        "OOMRETRY_SUBMITTED", CONTINUES_VARIABLE,     ARRAY_VARIABLE};
    for (size_t i = 0; i < sizeof(internal) / sizeof(internal[0]); i++)
        unsetenv(internal[i]);
}

int options_read(int argc, char **argv, struct arguments *out)
{
    static const struct argp argp = {
        option_table,
        parse_option,
        "-- COMMAND [ARGUMENT...]",
        "Runs COMMAND; when it runs out of memory, changes the smallest setting that should help "
        "and runs it again.",
        NULL,
        NULL,
        NULL};

    *out = (struct arguments){.options = {.policy = "auto",
                                          .max_retries = -1,
                                          .mode = "auto",
                                          .allow = "",
                                          .memory = true,
                                          .grace_s = DEFAULT_GRACE_S},
                              .after = {.batch_status = -1}};
    options_from_environment(&out->options);
    if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, out) != 0)
        return -1;
    if (out->options.in_job) {
        array_restore();
        forget_environment();
    }
    return 0;
}
