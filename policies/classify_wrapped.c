/* SPDX-License-Identifier: Apache-2.0
 *
 * rich folds a long message at the width of the terminal (80 columns where there is none): what
 * the first line does not state stands in the lines behind it. So it does with the frames of its
 * tracebacks, whose paths are often longer than its box is wide. */
#include <ctype.h>
#include <string.h>

#include "policies/classify_private.h"

/* Folded lines are nearly full; shorter ones end a message. */
#define FOLDED_BYTES_LEAST 50

static size_t without_spaces(const char *text, size_t length)
{
    while (length > 0 && text[length - 1] == ' ')
        length--;
    return length;
}

static bool is_open(const char *text, size_t length)
{
    return length >= FOLDED_BYTES_LEAST &&
           (isalnum((unsigned char)text[length - 1]) || strchr(",;(", text[length - 1]));
}

static bool begins_another(const struct line_view *view)
{
    return memmem(view->body, view->body_length, "Error", 5) ||
           memmem(view->body, view->body_length, "Traceback", 9) ||
           memmem(view->body, view->body_length, "File \"", 6);
}

void oom_wrapped_complete(struct oom_classifier *classifier, struct event *event)
{
    char joined[TEXT_MAX_BYTES + WINDOW_BYTES + WINDOW_LINES_AFTER + 1];
    size_t have = without_spaces(event->text, strlen(event->text));
    const char *at = event->after;
    struct captures captures;

    if (!at || event->numbers.tried_bytes == OOM_UNSTATED ||
        event->numbers.free_bytes != OOM_UNSTATED || !is_open(event->text, have))
        return;
    memcpy(joined, event->text, have);
    for (int i = 0; i < WINDOW_LINES_AFTER && *at; i++) {
        size_t length = strcspn(at, "\n");
        struct line_view view = {.text = at, .length = length};
        oom_line_speaker(&view);
        if (view.voice != event->voice || begins_another(&view))
            break;
        view.body_length = without_spaces(view.body, view.body_length);
        joined[have++] = ' ';
        memcpy(joined + have, view.body, view.body_length);
        have += view.body_length;
        if (!is_open(view.body, view.body_length))
            break;
        at += length + (at[length] == '\n');
    }
    oom_captures_init(&captures);
    captures.numbers = event->numbers;
    oom_captures_take(classifier->set, event->sig, classifier->match_data, joined, have, &captures);
    event->numbers = captures.numbers;
}

/* --- frames ---------------------------------------------------------------------------------- */

static const char box_side[] = "\u2502";

static bool in_box(const struct line_view *view, const char **text, size_t *length)
{
    const size_t side = sizeof(box_side) - 1;
    size_t whole = without_spaces(view->body, view->body_length);

    if (whole < 2 * side + 2 || memcmp(view->body, box_side, side) != 0 ||
        view->body[side] != ' ' || memcmp(view->body + whole - side, box_side, side) != 0)
        return false;
    *text = view->body + side + 1;
    *length = without_spaces(*text, whole - 2 * side - 1);
    return *length > 0;
}

bool oom_wrapped_frame_begin(struct folded_frame *folded, const struct line_view *view)
{
    const char *text;
    size_t length;

    if (!in_box(view, &text, &length) || *text != '/' || length > sizeof(folded->text) / 2)
        return false;
    memcpy(folded->text, text, length);
    folded->length = length;
    folded->voice = view->voice;
    return true;
}

bool oom_wrapped_frame_end(struct oom_classifier *classifier, const struct folded_frame *folded,
                           const struct line_view *view, uint16_t *rule)
{
    char joined[FOLDED_FRAME_BYTES + 1];
    const char *text;
    size_t length;

    if (view->voice != folded->voice || !in_box(view, &text, &length) ||
        length > FOLDED_FRAME_BYTES - folded->length)
        return false;
    /* A path is folded where the box ends, "in" and the function behind it between words. */
    memcpy(joined, folded->text, folded->length);
    memcpy(joined + folded->length, text, length);
    if (oom_frame_parse_bare(classifier, joined, folded->length + length, rule))
        return true;
    joined[folded->length] = ' ';
    memcpy(joined + folded->length + 1, text, length);
    return oom_frame_parse_bare(classifier, joined, folded->length + length + 1, rule);
}
