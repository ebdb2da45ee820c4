/* SPDX-License-Identifier: Apache-2.0
 *
 * What is kept of a log: the lines around what mattered, bounded and without secrets, and the
 * account of everything that matched. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oomretry/redact.h"
#include "policies/classify_private.h"
#include "policies/jsontext.h"

#define WINDOWS_BYTES (64u * 1024)

static json_t *clean_string(const char *text)
{
    char *safe = oom_redact(text, strlen(text));
    json_t *json = safe ? oom_json_text(safe) : NULL;

    free(safe);
    return json;
}

static json_t *file_name(const struct oom_classifier *c, int stream)
{
    const char *file = c->streams[stream].file;

    return file ? oom_json_text(file) : json_null();
}

/* Of each line what a terminal shows in the end: a progress bar writes over itself. In place. */
static void keep_last_pieces(char *text)
{
    char *out = text;

    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        size_t shown = length;
        while (shown > 0 && line[shown - 1] == '\r')
            shown--;
        const char *piece = memrchr(line, '\r', shown);
        piece = piece ? piece + 1 : line;
        size_t kept = (size_t)(line + shown - piece);
        memmove(out, piece, kept);
        out += kept;
        line += length;
        if (*line == '\n')
            *out++ = *line++;
    }
    *out = '\0';
}

static size_t count_lines(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static int add_window(const struct oom_classifier *c, const struct event *e, size_t *left,
                      json_t *list)
{
    const char *before = e->before ? e->before : "";
    const char *after = e->after ? e->after : "";
    char *text;
    size_t lines = count_lines(before);

    if (asprintf(&text, "%s%s\n%s", before, e->text, after) < 0)
        return -1;
    oom_line_strip(text);
    keep_last_pieces(text);
    size_t length = strlen(text);
    if (length > *left) {
        free(text);
        return 0;
    }
    *left -= length;
    int64_t first = e->line - (int64_t)lines;
    json_t *window = json_object();
    int rc = window ? 0 : -1;
    rc |= json_object_set_new(window, "file", file_name(c, e->stream));
    rc |= json_object_set_new(window, "line", json_integer(first > 0 ? first : 1));
    rc |= json_object_set_new(window, "text", clean_string(text));
    free(text);
    if (rc) {
        json_decref(window);
        return -1;
    }
    return json_array_append_new(list, window);
}

json_t *oom_classifier_windows(struct oom_classifier *classifier)
{
    json_t *list = json_array();
    size_t left = WINDOWS_BYTES;
    int rc = list ? 0 : -1;

    for (size_t i = 0; !rc && i < classifier->pending_count; i++)
        rc = add_window(classifier, classifier->pending[i], &left, list);
    for (size_t i = 0; !rc && i < classifier->failure_count; i++)
        rc = add_window(classifier, classifier->failures[i], &left, list);
    for (size_t i = 0; !rc && i < classifier->set->count; i++)
        if (classifier->tallies[i].first)
            rc = add_window(classifier, classifier->tallies[i].first, &left, list);
    for (size_t i = 0; !rc && i < classifier->discounted_count; i++)
        rc = add_window(classifier, classifier->discounted[i], &left, list);
    if (rc) {
        json_decref(list);
        return NULL;
    }
    return list;
}

static json_t *explain_event(const struct oom_classifier *c, const struct event *e,
                             const char *became)
{
    json_t *json = json_object();
    int rc = json ? 0 : -1;

    rc |= json_object_set_new(json, "signature", json_string(e->sig->id));
    rc |= json_object_set_new(json, "kind", json_string(oom_sig_kind_name(e->sig->kind)));
    rc |= json_object_set_new(json, "file", file_name(c, e->stream));
    rc |= json_object_set_new(json, "line", json_integer(e->line));
    rc |= json_object_set_new(json, "text", clean_string(e->text));
    rc |= json_object_set_new(json, "count", json_integer(e->count));
    rc |= json_object_set_new(json, "phase", json_string(oom_phase_name(e->phase)));
    rc |= json_object_set_new(json, "became", json_string(became));
    if (rc) {
        json_decref(json);
        return NULL;
    }
    return json;
}

static json_t *explain_tally(const struct oom_classifier *c, size_t i)
{
    const struct tally *t = &c->tallies[i];

    return json_pack("{s:s, s:s, s:I, s:i, s:o, s:I, s:I}", "signature", c->set->items[i].id,
                     "kind", oom_sig_kind_name(c->set->items[i].kind), "count",
                     (json_int_t)t->count, "files", t->files, "file", file_name(c, t->first_stream),
                     "first_line", (json_int_t)t->first_line, "last_line",
                     (json_int_t)t->last_line);
}

json_t *oom_classifier_explain(struct oom_classifier *classifier)
{
    json_t *matched = json_array();
    json_t *events = json_array();
    int rc = 0;

    for (size_t i = 0; i < classifier->set->count; i++)
        if (classifier->tallies[i].count > 0)
            rc |= json_array_append_new(matched, explain_tally(classifier, i));
    for (size_t i = 0; i < classifier->pending_count; i++) {
        const struct event *e = classifier->pending[i];
        rc |= json_array_append_new(events,
                                    explain_event(classifier, e, e->why[0] ? e->why : "counts"));
    }
    for (size_t i = 0; i < classifier->discounted_count; i++)
        rc |= json_array_append_new(events, explain_event(classifier, classifier->discounted[i],
                                                          classifier->discounted[i]->why));
    for (size_t i = 0; i < classifier->failure_count; i++)
        rc |= json_array_append_new(
            events, explain_event(classifier, classifier->failures[i], "another failure"));
    if (rc) {
        json_decref(matched);
        json_decref(events);
        return NULL;
    }
    return json_pack("{s:o, s:o}", "matched", matched, "events", events);
}
