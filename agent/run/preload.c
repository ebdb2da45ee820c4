/* SPDX-License-Identifier: Apache-2.0
 *
 * Instructions for the library in agent/preload, for launch commands that the script does not
 * show. They travel in one environment variable, so that every node of the job has them; the file
 * is where the library reports what it changed. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/files.h"
#include "agent/lib/paths.h"
#include "agent/run/run.h"

enum { MAX_INSTRUCTIONS = 12000 };

/* Of the launch that is about to start. */
static char instructions[MAX_INSTRUCTIONS];
static char library[4096];

struct writer {
    size_t length;
    bool full;
};

static void put_byte(struct writer *w, char c)
{
    if (w->length + 1 < sizeof(instructions)) {
        instructions[w->length++] = c;
        instructions[w->length] = '\0';
    } else {
        w->full = true;
    }
}

/* A field: what has a meaning between fields is written as %XX. */
static void put_field(struct writer *w, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";

    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c <= ' ' || c >= 0x7f || strchr("|;%", c)) {
            put_byte(w, '%');
            put_byte(w, digits[c >> 4]);
            put_byte(w, digits[c & 15]);
        } else {
            put_byte(w, *text);
        }
    }
}

static void put_record(struct writer *w, const char *word, const char *a, const char *b,
                       const char *c)
{
    const char *fields[] = {a, b, c};

    put_byte(w, ';');
    put_field(w, word);
    for (size_t i = 0; i < 3 && fields[i]; i++) {
        put_byte(w, '|');
        put_field(w, fields[i]);
    }
}

/* Returns how many were put. "*" alone names every command that the script ever executes, and does
 * not tell the training program from a mkdir. */
static int put_globs(struct writer *w, const char *word, const json_t *globs, bool any)
{
    size_t i;
    const json_t *glob;
    int count = 0;

    json_array_foreach((json_t *)globs, i, glob)
    {
        if (!json_is_string(glob) || (!any && strcmp(json_string_value(glob), "*") == 0))
            continue;
        put_record(w, word, json_string_value(glob), NULL, NULL);
        count++;
    }
    return count;
}

static void put_edit(struct writer *w, const struct oom_policy *policy, const struct oom_edit *edit)
{
    const struct oom_knob *knob = oom_policy_knob(policy, edit->knob);
    bool is_switch = knob && strcmp(knob->type, "switch") == 0;
    enum oom_family family = oom_policy_family(policy);
    bool flag = strncmp(edit->knob, "--", 2) == 0;

    if (strncmp(edit->knob, "env:", 4) == 0) {
        if (edit->new_value)
            put_record(w, "env", edit->knob + 4, edit->new_value, NULL);
    } else if (!edit->new_value || (is_switch && strcmp(edit->new_value, "false") == 0)) {
        put_record(w, "drop", edit->knob, is_switch ? "0" : "1", NULL);
    } else if (is_switch || (!knob && flag && strcmp(edit->new_value, "true") == 0)) {
        put_record(w, "switch", edit->knob, NULL, NULL);
    } else if (family == OOM_FAMILY_HYDRA && !flag) {
        put_record(w, "set", "key", edit->knob, edit->new_value);
    } else if (family == OOM_FAMILY_OMEGACONF) {
        put_record(w, "set", "plain", edit->knob, edit->new_value);
    } else {
        put_record(w, "set", "flag", edit->knob, edit->new_value);
    }
}

/* In the working directory, which the job's nodes share more often than they share /tmp. */
static char *new_report(struct oom_error *err)
{
    char path[4096], directory[2048];

    if (getcwd(directory, sizeof(directory))) {
        snprintf(path, sizeof(path), "%s/.oomrun-argv-XXXXXX", directory);
        if (file_write_temporary(path, "", 0, 0600, NULL) == 0)
            return strdup(path);
    }
    return file_write_in_tmp("oomrun-argv", "", 0, 0600, path, sizeof(path), err) == 0
               ? strdup(path)
               : NULL;
}

int preload_write(const struct oom_policy *policy, const struct oom_edits *edits, char **path,
                  struct oom_error *err)
{
    const json_t *recognise = json_object_get(oom_policy_json(policy), "recognise");
    enum oom_family family = oom_policy_family(policy);
    struct writer w = {0};

    *path = NULL;
    if (paths_under_prefix("libexec/oomretry/liboomargv.so", library, sizeof(library), err) != 0)
        return -1;
    if (access(library, R_OK) != 0)
        return oom_errorf(err,
                          "the launch command is not in sight of the script, and %s is not "
                          "there to change it when it is executed",
                          library);
    char *file = new_report(err);
    if (!file)
        return -1;
    put_byte(&w, '1');
    put_record(&w, "report", file, NULL, NULL);
    if (put_globs(&w, "match", json_object_get(recognise, "programs"),
                  json_array_size(json_object_get(recognise, "with_argument")) > 0) == 0) {
        unlink(file);
        free(file);
        return oom_errorf(err,
                          "the launch command is not in sight of the script, and policy %s "
                          "names no program",
                          oom_policy_name(policy));
    }
    put_globs(&w, "reject", json_object_get(recognise, "not_programs"), true);
    put_globs(&w, "with", json_object_get(recognise, "with_argument"), true);
    put_globs(&w, "without", json_object_get(recognise, "without_argument"), true);
    if (family == OOM_FAMILY_HF || family == OOM_FAMILY_AXOLOTL || family == OOM_FAMILY_TYRO ||
        json_is_true(json_object_get(oom_policy_json(policy), "dash_alike")))
        put_record(&w, "alike", NULL, NULL, NULL);
    for (size_t i = 0; i < edits->count; i++)
        put_edit(&w, policy, &edits->items[i]);
    if (w.full) {
        unlink(file);
        free(file);
        return oom_errorf(err, "too many changes to hand them on in the environment");
    }
    *path = file;
    return 0;
}

void preload_environment(void)
{
    const char *old = getenv("LD_PRELOAD");
    char value[8192];

    snprintf(value, sizeof(value), "%s%s%s", library, old && *old ? ":" : "", old ? old : "");
    setenv("LD_PRELOAD", value, 1);
    setenv("OOMRETRY_ARGV", instructions, 1);
}
