/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/run/resume.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/lib/jsonget.h"
#include "policies/jsontext.h"

/* The clocks of the head and of a file server differ a little. */
enum { CLOCK_SLACK_MS = 120000 };

static int append(char *out, size_t size, const char *text, size_t length)
{
    size_t used = strlen(out);

    if (used + length >= size)
        return -1;
    memcpy(out + used, text, length);
    out[used + length] = '\0';
    return 0;
}

/* What stands for itself in a pattern of glob(3). */
static int append_literal(char *out, size_t size, const char *text)
{
    for (; *text; text++)
        if ((strchr("*?[]\\", *text) && append(out, size, "\\", 1) < 0) ||
            append(out, size, text, 1) < 0)
            return -1;
    return 0;
}

/* Directory and pattern, the values of knobs in the place of their names; -1 when one is not
 * known, or is more than a name. */
static int complete_pattern(const char *directory, const char *pattern,
                            const struct oom_values *values, char *out, size_t size)
{
    out[0] = '\0';
    if (append_literal(out, size, directory) < 0 || append(out, size, "/", 1) < 0)
        return -1;
    while (*pattern) {
        size_t plain = strcspn(pattern, "{");
        char knob[96];

        if (append(out, size, pattern, plain) < 0)
            return -1;
        pattern += plain;
        if (!*pattern)
            break;
        size_t length = strcspn(pattern + 1, "}");
        if (length >= sizeof(knob) || pattern[1 + length] != '}')
            return -1;
        memcpy(knob, pattern + 1, length);
        knob[length] = '\0';
        pattern += length + 2;
        const char *value = oom_values_get(values, knob);
        if (!value || !*value || strpbrk(value, "/$`") || strcmp(value, "..") == 0 ||
            append_literal(out, size, value) < 0)
            return -1;
    }
    return 0;
}

/* When the newest of the matching files was written; -1: there is none. */
static int64_t newest_ms(const char *pattern)
{
    glob_t found = {0};
    int64_t newest = -1;

    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++) {
            struct stat st;
            if (stat(found.gl_pathv[i], &st) == 0 && (int64_t)st.st_mtim.tv_sec * 1000 > newest)
                newest = (int64_t)st.st_mtim.tv_sec * 1000;
        }
    globfree(&found);
    return newest;
}

static void add_edit(json_t *edits, const char *knob, const struct oom_values *values,
                     const char *wanted)
{
    const char *now = oom_values_get(values, knob);

    if (!now || strcmp(now, wanted) != 0)
        json_array_append_new(edits, json_pack("{s:s, s:o, s:o}", "knob", knob, "old",
                                               now ? oom_json_text(now) : json_null(), "new",
                                               oom_json_text(wanted)));
}

json_t *resume_plan(const struct oom_policy *policy, const struct oom_values *values,
                    int64_t since_ms)
{
    json_t *resume = json_object_get(oom_policy_json(policy), "resume");
    const char *directory = oom_values_get(values, json_get_string(resume, "directory", ""));
    const char *load = json_get_string(resume, "load", NULL), *knob;
    char pattern[4096];
    json_t *value, *edits;

    if (!directory || complete_pattern(directory, json_get_string(resume, "complete", ""), values,
                                       pattern, sizeof(pattern)) < 0)
        return NULL;
    int64_t written_ms = newest_ms(pattern);
    if (written_ms < 0)
        return NULL;
    edits = json_array();
    if (load)
        add_edit(edits, load, values, directory);
    json_object_foreach(json_object_get(resume, "set"), knob, value)
        add_edit(edits, knob, values, json_string_value(value));
    /* An older one is of another run: the owner chose not to go on from it. */
    if (json_array_size(edits) > 0 && written_ms < since_ms - CLOCK_SLACK_MS) {
        json_decref(edits);
        return NULL;
    }
    return json_pack("{s:o, s:o, s:O?}", "checkpoint", oom_json_text(directory), "edits", edits,
                     "frozen", json_object_get(resume, "frozen"));
}
