/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ctl/diagnose_account.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES_NAMED 6 /* of a group, by their numbers */

/* --- discounted --------------------------------------------------------------------------------
 */

static const char *reason(const struct oom_line *line)
{
    return line->why ? line->why : "another line";
}

static const char *file_of(const struct oom_line *line)
{
    return line->file ? line->file : "";
}

static int in_order(const void *a, const void *b)
{
    const struct oom_line *x = *(const struct oom_line *const *)a;
    const struct oom_line *y = *(const struct oom_line *const *)b;
    int files = strcmp(file_of(x), file_of(y));

    return files ? files : (x->line > y->line) - (x->line < y->line);
}

static bool same_group(const struct oom_line *a, const struct oom_line *b)
{
    return strcmp(reason(a), reason(b)) == 0 && strcmp(file_of(a), file_of(b)) == 0;
}

static size_t members_of(const struct oom_line **lines, size_t count, size_t first)
{
    size_t members = 1;

    for (size_t i = first + 1; i < count; i++)
        members += lines[i] && same_group(lines[first], lines[i]);
    return members;
}

/* Prints lines[first] with all behind it that are of its group, which are taken out. */
static void print_group(const struct oom_line **lines, size_t count, size_t first, bool name_file)
{
    const struct oom_line *line = lines[first];
    size_t members = members_of(lines, count, first);
    size_t named = 1;

    printf("  %s%sline%s %lld", name_file ? file_of(line) : "", name_file ? " " : "",
           members > 1 ? "s" : "", (long long)line->line);
    for (size_t i = first + 1; i < count; i++) {
        if (!lines[i] || !same_group(line, lines[i]))
            continue;
        if (named++ < LINES_NAMED)
            printf(", %lld", (long long)lines[i]->line);
        lines[i] = NULL;
    }
    if (members > LINES_NAMED)
        printf(" and %zu more", members - LINES_NAMED);
    printf(": %s\n             ", reason(line));
    diagnose_print_line(line->text, strlen(line->text));
}

void diagnose_print_discounted(const struct oom_incident *incident)
{
    size_t count = incident->secondary_count;
    const struct oom_line **lines = calloc(count + 1, sizeof(*lines));
    bool files = false;

    if (!lines || count == 0) {
        free(lines);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        lines[i] = &incident->secondary[i];
        files |= strcmp(file_of(lines[i]),
                        incident->cause.file ? incident->cause.file : file_of(lines[0])) != 0;
    }
    qsort(lines, count, sizeof(*lines), in_order);
    puts("\ndiscounted: what looks like a failure of memory or follows from one");
    for (size_t i = 0; i < count; i++)
        if (lines[i])
            print_group(lines, count, i, files);
    free(lines);
}

/* --- explained ---------------------------------------------------------------------------------
 */

static const char *member(const json_t *entry, const char *key)
{
    const char *value = json_string_value(json_object_get(entry, key));

    return value ? value : "";
}

static bool same_fate(const json_t *a, const json_t *b)
{
    return strcmp(member(a, "signature"), member(b, "signature")) == 0 &&
           strcmp(member(a, "became"), member(b, "became")) == 0 &&
           strcmp(member(a, "phase"), member(b, "phase")) == 0 &&
           strcmp(member(a, "file"), member(b, "file")) == 0;
}

static bool in_several_files(const json_t *events)
{
    for (size_t i = 1; i < json_array_size(events); i++)
        if (strcmp(member(json_array_get(events, i), "file"),
                   member(json_array_get(events, 0), "file")) != 0)
            return true;
    return false;
}

/* Neighbours with the same fate are told as one, and files by a line of their own. */
static void print_events(const json_t *events)
{
    size_t count = json_array_size(events);
    bool several = in_several_files(events);
    const char *file = NULL;

    for (size_t i = 0; i < count;) {
        const json_t *first = json_array_get(events, i);
        long long from = json_integer_value(json_object_get(first, "line"));
        long long to = from;
        char lines[64];
        size_t next = i + 1;
        while (next < count && same_fate(first, json_array_get(events, next)))
            to = json_integer_value(json_object_get(json_array_get(events, next++), "line"));
        if (next - i > 1)
            snprintf(lines, sizeof(lines), "%lld to %lld", from, to);
        else
            snprintf(lines, sizeof(lines), "%lld", from);
        if (several && (!file || strcmp(file, member(first, "file")) != 0)) {
            file = member(first, "file");
            printf("  %s\n", file);
        }
        printf("  %-18s %-28s %-12s %s\n", lines, member(first, "signature"),
               member(first, "phase"), member(first, "became"));
        i = next;
    }
}

static void print_matched(const json_t *entry)
{
    long long files = json_integer_value(json_object_get(entry, "files"));
    long long first = json_integer_value(json_object_get(entry, "first_line"));

    printf("  %-40s %-11s %8lld  ", member(entry, "signature"), member(entry, "kind"),
           (long long)json_integer_value(json_object_get(entry, "count")));
    if (files > 1)
        printf("in %lld files, first in line %lld of %s\n", files, first, member(entry, "file"));
    else
        printf("lines %lld to %lld\n", first,
               (long long)json_integer_value(json_object_get(entry, "last_line")));
}

int diagnose_print_explain(struct oom_classifier *classifier, struct oom_error *err)
{
    json_t *explain = oom_classifier_explain(classifier);
    size_t i;
    const json_t *entry;

    if (!explain)
        return oom_errorf(err, "out of memory");
    puts("\nsignatures that matched (oomctl signatures show NAME)");
    json_array_foreach(json_object_get(explain, "matched"), i, entry) print_matched(entry);
    puts("\nwhat became of the lines that name memory or a failure");
    print_events(json_object_get(explain, "events"));
    json_decref(explain);
    return 0;
}
