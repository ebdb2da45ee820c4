/* SPDX-License-Identifier: Apache-2.0
 *
 * Is a line a record of data rather than of a log? Rollout samples and data sets hold what people
 * wrote, also about their failures. */
#include <string.h>

#include "policies/classify_private.h"

/* A data set's record or a rollout sample holds text of people, also about their OOMs:
 * 'prompt': '... CUDA out of memory ...' */
static const char *const data_keys[] = {
    "prompt",   "prompts", "response",    "responses",    "completion", "completions",
    "question", "answer",  "answers",     "chosen",       "rejected",   "solution",
    "messages", "role",    "instruction", "ground_truth", NULL,
};
/* These name a record of data only where nothing says that the record is one of a log. */
static const char *const vague_keys[] = {"text",   "content", "query", "input",
                                         "output", "label",   "notes", NULL};
static const char *const log_keys[] = {"level",  "levelname", "severity", "lvl",
                                       "logger", "timestamp", NULL};

static bool is_one_of(const char *const *words, const char *text, size_t length)
{
    for (; *words; words++)
        if (strlen(*words) == length && memcmp(*words, text, length) == 0)
            return true;
    return false;
}

/* 12,"RuntimeError: CUDA out of memory. ...","how to fix" */
static bool is_csv_record(const struct line_view *view)
{
    const char *text = view->text;
    size_t n = view->length < 40 ? view->length : 40;
    size_t first = 0;

    while (first < n && text[first] > ' ' && !strchr("\"'{[(:", text[first]))
        first++;
    return first > 1 && first < n && text[first] == '"' && text[first - 1] == ',' &&
           memmem(text + first, view->length - first, "\",\"", 3) != NULL;
}

bool oom_line_is_data(const struct line_view *view)
{
    const char *end = view->text + view->length;
    bool vague = false;

    if (is_csv_record(view))
        return true;
    for (const char *p = view->text; (p = memchr(p, ':', (size_t)(end - p))) != NULL; p++) {
        const char *stop = p;
        if (stop - view->text < 4)
            continue;
        stop--;
        if (*stop != '"' && *stop != '\'')
            continue;
        const char quote = *stop;
        const char *start = stop - 1;
        while (start > view->text && *start != quote && stop - start < 24)
            start--;
        if (*start != quote)
            continue;
        start++;
        size_t length = (size_t)(stop - start);
        length -= length > 0 && start[length - 1] == '\\'; /* JSON within JSON */
        if (is_one_of(log_keys, start, length))
            return false;
        if (is_one_of(data_keys, start, length))
            return true;
        vague |= is_one_of(vague_keys, start, length);
    }
    return vague;
}
