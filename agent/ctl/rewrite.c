/* SPDX-License-Identifier: Apache-2.0
 *
 * oomctl rewrite: the same change that a retry would make, offline, with the new script on
 * standard output. The environment of the later run is not known here, so nothing is taken from
 * this one. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ctl/common.h"
#include "agent/ctl/ctl.h"
#include "agent/ctl/offline.h"
#include "agent/lib/files.h"
#include "agent/lib/paths.h"
#include "agent/lib/rewritten.h"
#include "agent/lib/textdiff.h"
#include "oomretry/rewrite.h"

enum {
    KEY_FRAMEWORK = 256,
    KEY_SET,
    KEY_UNSET,
    KEY_DIFF,
    KEY_VALUES,
    KEY_COPIES,
    MAX_POLICIES = 64,
    MAX_SCRIPT_BYTES = 4 * 1024 * 1024
};

static const struct argp_option option_table[] = {
    {"framework", KEY_FRAMEWORK, "F", 0, "whose program it is (default: recognised)", 0},
    {"set", KEY_SET, "KNOB=VALUE", 0,
     "a flag or key as on the framework's command line; true for a switch; env:NAME=VALUE for an "
     "environment variable; slurm:OPTION=VALUE for a #SBATCH line",
     0},
    {"unset", KEY_UNSET, "KNOB", 0, "take it away", 0},
    {"diff", KEY_DIFF, NULL, 0, "print a unified diff instead of the script", 0},
    {"copies", KEY_COPIES, "DIR", 0,
     "write the changed copies of other files that the new script uses to this directory", 0},
    {"values", KEY_VALUES, NULL, 0, "print what the script gives the program now", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

struct arguments {
    struct ctl_common common;
    bool diff, values;
    const char *framework, *script, *copies;
    struct oom_edits edits;
};

static void add_set(struct arguments *a, char *text, struct argp_state *state)
{
    char *equals = strchr(text, '=');

    if (!equals || equals == text)
        argp_error(state, "--set takes KNOB=VALUE, not \"%s\"", text);
    *equals = '\0';
    /* hydra's "+" and "++" say how to write a key, and are no part of it. */
    if (oom_edits_add(&a->edits, text + strspn(text, "+"), NULL, equals + 1, NULL) != 0)
        argp_failure(state, 2, 0, "out of memory");
    *equals = '=';
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct arguments *a = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->common;
        return 0;
    case KEY_DIFF:
        a->diff = true;
        return 0;
    case KEY_VALUES:
        a->values = true;
        return 0;
    case KEY_COPIES:
        a->copies = arg;
        return 0;
    case KEY_FRAMEWORK:
        a->framework = arg;
        return 0;
    case KEY_SET:
        add_set(a, arg, state);
        return 0;
    case KEY_UNSET:
        if (oom_edits_add(&a->edits, arg, NULL, NULL, NULL) != 0)
            argp_failure(state, 2, 0, "out of memory");
        return 0;
    case ARGP_KEY_ARG:
        if (a->script)
            argp_error(state, "one script at a time");
        a->script = arg;
        return 0;
    case ARGP_KEY_END:
        if (!a->script)
            argp_error(state, "no script: name the launch script");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static struct oom_policy *load(const char *directory, const char *file, struct oom_error *err)
{
    char path[4096];
    json_error_t why;

    snprintf(path, sizeof(path), "%s/%s", directory, file);
    json_t *document = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (!document) {
        oom_errorf(err, "%s:%d: %s", path, why.line, why.text);
        return NULL;
    }
    struct oom_policy *policy = oom_policy_from_json(document, file, err);
    json_decref(document);
    return policy;
}

static int is_document(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name);

    return n > 5 && strcmp(entry->d_name + n - 5, ".json") == 0;
}

/* The named policy, or the one that knows a command of the script. */
static struct oom_policy *choose(const struct arguments *a, const struct oom_script *script,
                                 struct oom_error *err)
{
    struct oom_policy *policies[MAX_POLICIES];
    struct oom_policy *chosen = NULL;
    struct dirent **entries = NULL;
    char directory[3072];
    size_t count = 0;

    if (paths_under_prefix("share/oomretry/frameworks", directory, sizeof(directory), err) != 0)
        return NULL;
    if (a->framework) {
        char file[256];
        snprintf(file, sizeof(file), "%.200s.json", a->framework);
        if (strchr(a->framework, '/')) {
            oom_errorf(err, "\"%s\" is not the name of a framework", a->framework);
            return NULL;
        }
        return load(directory, file, err);
    }
    int found = scandir(directory, &entries, is_document, alphasort);
    for (int i = 0; i < found; i++) {
        if (count < MAX_POLICIES && (policies[count] = load(directory, entries[i]->d_name, NULL)))
            count++;
        free(entries[i]);
    }
    free(entries);
    int index = oom_script_recognise(script, (const struct oom_policy *const *)policies, count);
    for (size_t i = 0; i < count; i++) {
        if ((int)i == index)
            chosen = policies[i];
        else
            oom_policy_free(policies[i]);
    }
    if (!chosen)
        oom_errorf(err, "no known training program is started in %s: name it with --framework",
                   a->script);
    return chosen;
}

static void print_json(const struct oom_rewrite *out, const char *diff)
{
    json_t *copies = json_array();

    for (size_t i = 0; i < out->copy_count; i++)
        json_array_append_new(copies,
                              json_pack("{s:s, s:s, s:o?}", "path", out->copies[i].path, "new_path",
                                        out->copies[i].new_path, "content",
                                        json_stringn(out->copies[i].bytes, out->copies[i].length)));
    json_t *all = json_pack(
        "{s:o?, s:s, s:o, s:b, s:o}", "script", json_stringn(out->bytes, out->length), "diff", diff,
        "edits", oom_edits_to_json(&out->edits), "needs_exec", out->needs_exec, "copies", copies);
    ctl_print_json(all);
    json_decref(all);
}

static int print_values(const struct arguments *a, const struct oom_script *script,
                        const struct oom_policy *policy, struct oom_error *err)
{
    struct oom_values values = {NULL, 0};

    if (oom_script_values(script, policy, &values, err) != 0)
        return -1;
    if (a->common.json) {
        json_t *all = oom_values_to_json(&values);
        ctl_print_json(all);
        json_decref(all);
    } else {
        for (size_t i = 0; i < values.count; i++)
            if (values.items[i].source != OOM_SOURCE_DEFAULT)
                printf("%-48s %-16s %s%s%s\n", values.items[i].knob,
                       values.items[i].value ? values.items[i].value : "-",
                       oom_source_name(values.items[i].source), values.items[i].where ? " " : "",
                       values.items[i].where ? values.items[i].where : "");
    }
    oom_values_free(&values);
    return 0;
}

/* The script on standard output is not the whole change. */
static void tell_copies(const struct arguments *a, const struct oom_rewrite *out)
{
    for (size_t i = 0; i < out->copy_count; i++) {
        const struct oom_side_copy *copy = &out->copies[i];
        fprintf(stderr, "oomctl: the new script uses %s, a changed copy of %s%s\n", copy->new_path,
                copy->path, a->copies ? "" : " (--copies DIR writes it):");
        char *diff = a->copies ? NULL
                               : textdiff_unified(copy->path, copy->path, copy->old_bytes,
                                                  copy->old_length, copy->bytes, copy->length);
        fputs(diff ? diff : "", stderr);
        free(diff);
    }
}

static int run(struct arguments *a, struct oom_error *err)
{
    struct offline offline = {.script = a->script, .copies = a->copies};
    struct oom_script_source source = {.name = "script",
                                       .read_side = offline_read_side,
                                       .read_side_arg = &offline,
                                       .place_copy = offline_place_copy,
                                       .place_copy_arg = &offline};
    struct oom_rewrite out = {0};
    struct oom_policy *policy = NULL;
    struct oom_script *script = NULL;
    char *bytes = NULL, *diff = NULL;
    int rc = file_read(a->script, MAX_SCRIPT_BYTES, &bytes, &source.length, err);

    if (rc > 0)
        rc = oom_errorf(err, "%s: longer than %d bytes", a->script, MAX_SCRIPT_BYTES);
    source.bytes = bytes;
    char *directory = file_directory(a->script);
    source.directory = directory;
    if (rc != 0 || !(script = oom_script_parse(&source, err)) ||
        !(policy = choose(a, script, err))) {
        rc = -1;
    } else if (a->values) {
        rc = print_values(a, script, policy, err);
    } else if ((rc = oom_script_apply(script, policy, &a->edits, &out, err)) == 0) {
        diff = rewritten_diff(a->script, bytes, source.length, &out);
        for (size_t i = 0; rc == 0 && a->copies && i < out.copy_count; i++)
            rc = file_replace(out.copies[i].new_path, out.copies[i].bytes, out.copies[i].length,
                              0600, err);
        if (a->common.json)
            print_json(&out, diff ? diff : "");
        else if (a->diff)
            fputs(diff ? diff : "", stdout);
        else
            fwrite(out.bytes, 1, out.length, stdout);
        if (out.needs_exec)
            fprintf(stderr,
                    "oomctl: %s does not show all that the training program is given: a retry "
                    "changes its arguments when it is executed\n",
                    a->script);
        if (!a->common.json && !a->diff)
            tell_copies(a, &out);
    }
    free(diff);
    oom_rewrite_free(&out);
    oom_policy_free(policy);
    oom_script_free(script);
    free(bytes);
    free(directory);
    return rc;
}

int ctl_rewrite(int argc, char **argv)
{
    static const struct argp argp = {option_table,
                                     parse_option,
                                     "SCRIPT",
                                     "A launch script with other settings, on standard output. "
                                     "The script itself is not touched. --json has the script, "
                                     "the diff and the edits.",
                                     ctl_json_option,
                                     NULL,
                                     NULL};
    struct arguments a = {0};
    struct oom_error err = {""};

    if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0)
        return 2;
    int rc = run(&a, &err);
    oom_edits_free(&a.edits);
    return rc == 0 ? 0 : ctl_fail("rewrite", &err);
}
