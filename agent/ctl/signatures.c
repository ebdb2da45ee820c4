/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl signatures: what is recognised in logs, and a check for those who add to it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ctl/common.h"
#include "agent/ctl/ctl.h"
#include "agent/evidence/sigset.h"
#include "policies/near.h"

static int fail(const struct oom_error *err)
{
    fprintf(stderr, "oomctl signatures: %s\n", err->text);
    return 2;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

static json_t *load(struct oom_error *err)
{
    struct oom_signatures *set = sigset_read(err);
    json_t *list = set ? oom_signatures_to_json(set) : NULL;

    if (set && !list)
        oom_errorf(err, "out of memory");
    oom_signatures_free(set);
    return list;
}

static int list_verb(int argc, char **argv)
{
    struct oom_error err = {""};
    bool as_json = argc == 2 && strcmp(argv[1], "--json") == 0;
    size_t i;
    const json_t *sig;

    if (argc > 1 && !as_json) {
        fprintf(stderr, "usage: oomctl signatures list [--json]\n");
        return 2;
    }
    json_t *list = load(&err);
    if (!list)
        return fail(&err);
    if (as_json) {
        ctl_print_json(list);
    } else {
        printf("%-36s %-11s %-9s %-12s %s\n", "SIGNATURE", "KIND", "DOMAIN", "PHASE", "WHY");
        json_array_foreach(list, i, sig)
        {
            printf("%-36s %-11s %-9s %-12s %s\n", text_of(sig, "id"), text_of(sig, "kind"),
                   text_of(sig, "domain"), text_of(sig, "phase"),
                   *text_of(sig, "why") ? text_of(sig, "why") : text_of(sig, "about"));
        }
    }
    json_decref(list);
    return 0;
}

static int show_verb(int argc, char **argv)
{
    struct oom_error err = {""};
    size_t i;
    const json_t *sig;
    int status = 1;
    struct near near;

    if (argc != 2) {
        fprintf(stderr, "usage: oomctl signatures show SIGNATURE\n");
        return 2;
    }
    json_t *list = load(&err);
    if (!list)
        return fail(&err);
    near_init(&near, argv[1]);
    json_array_foreach(list, i, sig)
    {
        near_offer(&near, text_of(sig, "id"));
        if (strcmp(text_of(sig, "id"), argv[1]) != 0)
            continue;
        ctl_print_json(sig);
        status = 0;
    }
    if (status)
        fprintf(stderr,
                near.best ? "oomctl signatures: no signature \"%s\" (did you mean \"%s\"?)\n"
                          : "oomctl signatures: no signature \"%s\" (see `%s`)\n",
                argv[1], near.best ? near.best : "oomctl signatures list");
    json_decref(list);
    return status;
}

/* Holds the set, and the files that are named, to their own examples and look-alikes. */
static int test_verb(int argc, char **argv)
{
    struct oom_error err = {""};
    struct oom_signatures *set = sigset_read(&err);
    size_t i;
    const json_t *fault;

    for (int k = 1; set && k < argc; k++)
        if (sigset_add_file(set, argv[k], &err)) {
            oom_signatures_free(set);
            set = NULL;
        }
    if (!set || oom_signatures_compile(set, &err)) {
        oom_signatures_free(set);
        return fail(&err);
    }
    json_t *faults = oom_signatures_check(set);
    json_array_foreach(faults, i, fault)
    {
        const char *line = text_of(fault, "line");
        printf("%s: %s%s%s\n", text_of(fault, "signature"), text_of(fault, "what"),
               *line ? ": " : "", line);
    }
    size_t count = json_array_size(faults);
    json_t *list = oom_signatures_to_json(set);
    printf("%zu signatures, %zu fault%s\n", json_array_size(list), count, count == 1 ? "" : "s");
    int status = !faults ? 2 : count > 0 ? 1 : 0;
    json_decref(list);
    json_decref(faults);
    oom_signatures_free(set);
    return status;
}

static const struct ctl_verb verbs[] = {
    {"list", list_verb, "every signature in force, shipped and of this site"},
    {"show", show_verb, "one signature with its examples"},
    {"test", test_verb, "hold signatures (and FILE...) to their examples and look-alikes"},
    {NULL, NULL, NULL},
};

int ctl_signatures(int argc, char **argv)
{
    return ctl_dispatch("oomctl signatures", verbs, argc, argv);
}
