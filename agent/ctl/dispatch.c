/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ctl/ctl.h"

#include <stdio.h>
#include <string.h>

/* Enough of an edit distance to guess a mistyped verb: common prefix length. */
static const struct ctl_verb *nearest(const struct ctl_verb *verbs, const char *word)
{
    const struct ctl_verb *best = NULL;
    size_t best_length = 1;

    for (const struct ctl_verb *v = verbs; v->name; v++) {
        size_t n = 0;
        while (word[n] && word[n] == v->name[n])
            n++;
        if (n > best_length) {
            best = v;
            best_length = n;
        }
    }
    return best;
}

static void usage(FILE *out, const char *program, const struct ctl_verb *verbs)
{
    fprintf(out, "Usage: %s VERB [ARGUMENT...]\n\n", program);
    for (const struct ctl_verb *v = verbs; v->name; v++)
        fprintf(out, "  %-12s %s\n", v->name, v->help);
    fprintf(out, "\n`%s VERB --help` explains one verb.\n", program);
}

const struct ctl_verb *ctl_choose(const char *program, const struct ctl_verb *verbs, int argc,
                                  char **argv, int *status)
{
    static char full_name[64];

    *status = 0;
    if (argc < 2) {
        usage(stderr, program, verbs);
        *status = 2;
        return NULL;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        usage(stdout, program, verbs);
        return NULL;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("oomretry %s\n", OOMRETRY_VERSION);
        return NULL;
    }
    for (const struct ctl_verb *v = verbs; v->name; v++)
        if (strcmp(v->name, argv[1]) == 0) {
            /* What argp calls the program in its messages. */
            snprintf(full_name, sizeof(full_name), "%s %s", program, v->name);
            argv[1] = full_name;
            return v;
        }
    const struct ctl_verb *guess = nearest(verbs, argv[1]);
    if (guess)
        fprintf(stderr, "%s: unknown verb \"%s\" (did you mean \"%s\"?)\n", program, argv[1],
                guess->name);
    else
        fprintf(stderr, "%s: unknown verb \"%s\" (`%s --help` lists them)\n", program, argv[1],
                program);
    *status = 2;
    return NULL;
}

int ctl_dispatch(const char *program, const struct ctl_verb *verbs, int argc, char **argv)
{
    int status;
    const struct ctl_verb *verb = ctl_choose(program, verbs, argc, argv, &status);

    return verb ? verb->run(argc - 1, argv + 1) : status;
}
