/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ctl/diagnose_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/humanize.h"

#define TEXT_COLUMNS 160

static const char *bold(bool on)
{
    if (!isatty(STDOUT_FILENO) || getenv("NO_COLOR"))
        return "";
    return on ? "\033[1m" : "\033[0m";
}

/* A line of a log, cut to a readable width. Control characters were replaced before. */
static void print_text(const char *text, size_t length)
{
    size_t shown = length < TEXT_COLUMNS ? length : TEXT_COLUMNS;

    /* Not in the middle of a character. */
    while (shown > 0 && shown < length && ((unsigned char)text[shown] & 0xc0) == 0x80)
        shown--;
    for (size_t i = 0; i < shown; i++)
        putchar(iscntrl((unsigned char)text[i]) ? ' ' : text[i]);
    puts(shown < length ? " ..." : "");
}

static void print_window(const json_t *window, int64_t decisive)
{
    const char *text = json_string_value(json_object_get(window, "text"));
    int64_t line = json_integer_value(json_object_get(window, "line"));

    while (text && *text) {
        size_t n = strcspn(text, "\n");
        printf("  %c %7lld  ", line == decisive ? '>' : ' ', (long long)line);
        print_text(text, n);
        line++;
        text += n + (text[n] == '\n');
    }
}

/* Does this window hold the decisive line at its place? */
static bool shows(const json_t *window, const struct oom_line *cause)
{
    const char *file = json_string_value(json_object_get(window, "file"));
    const char *text = json_string_value(json_object_get(window, "text"));
    int64_t line = json_integer_value(json_object_get(window, "line"));

    if (!text || line > cause->line || (file && cause->file && strcmp(file, cause->file) != 0))
        return false;
    for (; line < cause->line && *text; line++) {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return strncmp(text, cause->text, strlen(cause->text)) == 0;
}

static int print_cause(struct oom_classifier *classifier, const struct oom_line *cause,
                       struct oom_error *err)
{
    json_t *windows = oom_classifier_windows(classifier);
    size_t i;
    const json_t *window;
    const json_t *found = NULL;

    if (!windows)
        return oom_errorf(err, "out of memory");
    json_array_foreach(windows, i, window)
    {
        if (shows(window, cause)) {
            found = window;
            break;
        }
    }
    printf("\n%s:%lld%s\n",
           cause->file && strcmp(cause->file, "-") ? cause->file : "standard input",
           (long long)cause->line, cause->why ? "" : ":");
    if (cause->why)
        printf("  %s:\n", cause->why);
    if (found)
        print_window(found, cause->line);
    else
        printf("  %s\n", cause->text);
    json_decref(windows);
    return 0;
}

static void print_number(const char *name, int64_t bytes)
{
    char text[32];

    if (bytes == OOM_UNSTATED)
        return;
    humanize_bytes(bytes, text, sizeof(text));
    printf("  %-24s %12s\n", name, text);
}

static void print_numbers(const struct oom_numbers *n)
{
    if (n->tried_bytes == OOM_UNSTATED && n->total_bytes == OOM_UNSTATED &&
        n->free_bytes == OOM_UNSTATED && n->allocated_bytes == OOM_UNSTATED)
        return;
    puts("\nnumbers of the message");
    print_number("tried to allocate", n->tried_bytes);
    print_number("free", n->free_bytes);
    print_number("short of", oom_numbers_short_bytes(n));
    print_number("total", n->total_bytes);
    print_number("in use by the process", n->in_use_bytes);
    print_number("allocated", n->allocated_bytes);
    print_number("reserved, unallocated", n->reserved_unallocated_bytes);
    if (oom_numbers_fragmented(n))
        puts("  what was reserved but unallocated would have been enough: fragmentation");
}

static void print_secondary(const struct oom_incident *incident)
{
    if (incident->secondary_count == 0)
        return;
    puts("\ndiscounted");
    for (size_t i = 0; i < incident->secondary_count; i++) {
        const struct oom_line *line = &incident->secondary[i];
        printf("  line %lld: %s\n             ", (long long)line->line,
               line->why ? line->why : "another line");
        print_text(line->text, strlen(line->text));
    }
}

static int print_explain(struct oom_classifier *classifier, struct oom_error *err)
{
    json_t *explain = oom_classifier_explain(classifier);
    size_t i;
    const json_t *entry;

    if (!explain)
        return oom_errorf(err, "out of memory");
    puts("\nsignatures that matched");
    json_array_foreach(json_object_get(explain, "matched"), i, entry)
    {
        printf("  %-40s %-11s %8lld  lines %lld to %lld\n",
               json_string_value(json_object_get(entry, "signature")),
               json_string_value(json_object_get(entry, "kind")),
               (long long)json_integer_value(json_object_get(entry, "count")),
               (long long)json_integer_value(json_object_get(entry, "first_line")),
               (long long)json_integer_value(json_object_get(entry, "last_line")));
    }
    puts("\nwhat became of the lines that name memory or a failure");
    json_array_foreach(json_object_get(explain, "events"), i, entry)
    {
        printf("  line %-8lld %-28s %-12s %s\n",
               (long long)json_integer_value(json_object_get(entry, "line")),
               json_string_value(json_object_get(entry, "signature")),
               json_string_value(json_object_get(entry, "phase")),
               json_string_value(json_object_get(entry, "became")));
    }
    json_decref(explain);
    return 0;
}

int diagnose_print(struct oom_classifier *classifier, const struct oom_incident *incident,
                   bool explain, struct oom_error *err)
{
    printf("%s%s%s\n", bold(true), incident->summary, bold(false));
    if (incident->framework[0])
        printf("framework %s, ", incident->framework);
    printf("confidence %.0f %%, evidence: %s\n", incident->confidence * 100.0, incident->evidence);
    if (incident->direction != OOM_DIRECTION_NONE)
        printf("the message asks to %s the setting\n", oom_direction_name(incident->direction));
    if (incident->cause.text && print_cause(classifier, &incident->cause, err))
        return -1;
    if (incident->oom)
        print_numbers(&incident->numbers);
    print_secondary(incident);
    if (oom_classifier_has_skimmed(classifier))
        puts("\nThe end of the long logs decides: what precedes it was not read line by line "
             "(--whole does).");
    return explain ? print_explain(classifier, err) : 0;
}
