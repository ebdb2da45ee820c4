/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ctl/diagnose_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "agent/ctl/diagnose_account.h"
#include "agent/lib/humanize.h"

#define TEXT_COLUMNS 160 /* where no terminal says otherwise */
#define MARGIN       13  /* of a line's number */

static const char *bold(bool on)
{
    if (!isatty(STDOUT_FILENO) || getenv("NO_COLOR"))
        return "";
    return on ? "\033[1m" : "\033[0m";
}

static size_t text_columns(void)
{
    struct winsize window;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col >= 60)
        return window.ws_col - (size_t)MARGIN - 1;
    return TEXT_COLUMNS;
}

/* The longest beginning of at most `room` bytes that does not end in the middle of a character. */
static size_t fitting(const char *text, size_t length, size_t room)
{
    if (length <= room)
        return length;
    while (room > 1 && ((unsigned char)text[room] & 0xc0) == 0x80)
        room--;
    return room;
}

static void put_text(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        putchar(iscntrl((unsigned char)text[i]) ? ' ' : text[i]);
}

void diagnose_print_line(const char *text, size_t length)
{
    size_t shown = fitting(text, length, text_columns());

    put_text(text, shown);
    puts(shown < length ? " ..." : "");
}

/* The decisive line is shown as a whole, at words if it has any. */
static void print_wrapped(const char *text, size_t length)
{
    size_t room = text_columns();

    for (;;) {
        size_t shown = fitting(text, length, room);
        const char *space = shown < length ? memrchr(text, ' ', shown) : NULL;
        if (space && space > text + shown / 2)
            shown = (size_t)(space - text);
        put_text(text, shown);
        putchar('\n');
        text += shown;
        length -= shown;
        while (length > 0 && *text == ' ') {
            text++;
            length--;
        }
        if (length == 0)
            return;
        printf("%*s", MARGIN, "");
    }
}

static void print_window(const json_t *window, int64_t decisive)
{
    const char *text = json_string_value(json_object_get(window, "text"));
    int64_t line = json_integer_value(json_object_get(window, "line"));

    while (text && *text) {
        size_t n = strcspn(text, "\n");
        printf("  %c %7lld  ", line == decisive ? '>' : ' ', (long long)line);
        if (line == decisive)
            print_wrapped(text, n);
        else
            diagnose_print_line(text, n);
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
    print_number("missing", oom_numbers_short_bytes(n));
    print_number("total", n->total_bytes);
    print_number("in use by the process", n->in_use_bytes);
    print_number("allocated", n->allocated_bytes);
    print_number("reserved, unallocated", n->reserved_unallocated_bytes);
    if (oom_numbers_fragmented(n))
        puts("  what was reserved but unallocated would have been enough: fragmentation");
}

int diagnose_print(struct oom_classifier *classifier, const struct oom_incident *incident,
                   bool explain, struct oom_error *err)
{
    printf("%s%s%s\n", bold(true), incident->summary, bold(false));
    if (incident->framework[0])
        printf("framework %s, ", incident->framework);
    printf("confidence %.0f %%, evidence: %s\n", incident->confidence * 100.0, incident->evidence);
    if (incident->direction != OOM_DIRECTION_NONE)
        printf("the message asks for a %s value of the setting: a %s one would fail again\n",
               incident->direction == OOM_DIRECTION_RAISE ? "larger" : "smaller",
               incident->direction == OOM_DIRECTION_RAISE ? "smaller" : "larger");
    if (incident->cause.text && print_cause(classifier, &incident->cause, err))
        return -1;
    if (incident->oom)
        print_numbers(&incident->numbers);
    diagnose_print_discounted(incident);
    if (oom_classifier_has_skimmed(classifier))
        puts("\nThe end of the long logs decides: what precedes it was not read line by line "
             "(--whole does).");
    return explain ? diagnose_print_explain(classifier, err) : 0;
}
