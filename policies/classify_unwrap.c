/* SPDX-License-Identifier: Apache-2.0
 *
 * Docker's own files wrap each line in JSON: {"log":"...\n","stream":"stderr","time":"..."}. */
#include <string.h>

#include "policies/classify_private.h"

/* The text of a JSON string that begins at `at`, without the end of the line that it holds. */
static const char *string_end(const char *at, const char *end)
{
    const char *p = at;

    while (p < end && *p != '"')
        p += *p == '\\' && p + 1 < end ? 2 : 1;
    if (p > end)
        p = end;
    while (p - at >= 2 && p[-2] == '\\' && (p[-1] == 'n' || p[-1] == 'r'))
        p -= 2;
    return p;
}

void oom_line_unwrap(struct line_view *view)
{
    static const char log[] = "\"log\":";
    static const char stream[] = "\"stream\":";
    const char *end = view->text + view->length;
    const char *head = view->length < 256 ? end : view->text + 256;
    const char *at = memmem(view->text, (size_t)(head - view->text), log, sizeof(log) - 1);

    if (*view->text != '{' || !at || !memmem(view->text, view->length, stream, sizeof(stream) - 1))
        return;
    at += sizeof(log) - 1;
    while (at < end && *at == ' ')
        at++;
    if (at == end || *at++ != '"')
        return;
    view->text = at;
    view->length = (size_t)(string_end(at, end) - at);
}
