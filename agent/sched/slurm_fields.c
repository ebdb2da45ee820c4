/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sched/slurm_fields.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Values may hold blanks ("WorkDir=/my runs"), keys begin with a capital and end at '='. */
static const char *value_end(const char *text, const char *line_end)
{
    for (; text < line_end; text++) {
        const char *p = text + 1;
        if (*text != ' ' || !isupper((unsigned char)*p))
            continue;
        while (isalnum((unsigned char)*p) || strchr("/:_", *p ? *p : '!'))
            p++;
        if (*p == '=')
            break;
    }
    return text;
}

static const char *find_in(const char *text, const char *end, const char *words)
{
    return memmem(text, (size_t)(end - text), words, strlen(words));
}

/* Where the name of the job of this line ends, NULL: there is none. It may hold anything, also what
 * looks like a key ("sweep LR=0.1"); behind it the record says of which components a heterogeneous
 * job is made, whose the job is, and of which group. */
static const char *name_end(const char *name)
{
    static const char owner[] = " UserId=", group[] = " GroupId=", components[] = " HetJobIdSet=";
    const char *line_end = name + strcspn(name, "\n");

    for (const char *end = name; (end = find_in(end, line_end, owner)); end++) {
        const char *behind = end + sizeof(owner) - 1;
        if (strncmp(behind + strcspn(behind, " \n"), group, sizeof(group) - 1) != 0)
            continue;
        const char *last = end;
        while (last > name && last[-1] != ' ')
            last--;
        if (last > name && strncmp(last - 1, components, sizeof(components) - 1) == 0)
            end = last - 1;
        return end;
    }
    return NULL;
}

/* Likewise; in the record of a batch job StdErr comes behind the comment. */
static const char *comment_end(const char *comment)
{
    static const char *const followers[] = {
        " StdErr=", " AdminComment=", " SystemComment=", " Extra="};
    const char *line_end = comment + strcspn(comment, "\n"), *found = NULL;

    for (size_t i = 0; i < sizeof(followers) / sizeof(followers[0]); i++) {
        const char *at = find_in(comment, found ? found : line_end, followers[i]);
        found = at ? at : found;
    }
    return found;
}

static size_t value_length(const char *text, const char *key)
{
    const char *end = strcmp(key, "JobName") == 0 ? name_end(text) : NULL;

    if (end)
        return (size_t)(end - text);
    if (strcmp(key, "Comment") == 0)
        end = comment_end(text);
    if (!end)
        end = value_end(text, text + strcspn(text, "\n"));
    while (end > text && end[-1] == ' ')
        end--;
    return (size_t)(end - text);
}

/* Is this a part of the job's name? */
static bool in_name(const char *text, const char *at)
{
    static const char key[] = "JobName=";
    const char *line = at;

    while (line > text && line[-1] != '\n')
        line--;
    const char *name = strstr(line, key);
    const char *end = name && name < at ? name_end(name + sizeof(key) - 1) : NULL;
    return end && at < end;
}

bool slurm_field(const char *text, const char *key, char *out, size_t size)
{
    size_t length = strlen(key);

    for (const char *p = text; (p = strstr(p, key)); p += length) {
        if (p[length] != '=' || (p > text && p[-1] != ' ' && p[-1] != '\n') || in_name(text, p))
            continue;
        p += length + 1;
        size_t n = value_length(p, key);
        if (n >= size)
            n = size - 1;
        memcpy(out, p, n);
        out[n] = '\0';
        return true;
    }
    return false;
}

int64_t slurm_mib(const char *text)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || !(value >= 0 && value <= 1e12))
        return -1;
    switch (toupper((unsigned char)*end)) {
    case 'K':
        return (int64_t)(value / 1024);
    case '\0':
    case 'M':
        return (int64_t)value;
    case 'G':
        return (int64_t)(value * 1024);
    case 'T':
        return (int64_t)(value * 1024 * 1024);
    default:
        return -1;
    }
}

bool slurm_state_is_over(const char *state)
{
    static const char *const ends[] = {"COMPLETED",     "CANCELLED", "FAILED",    "TIMEOUT",
                                       "NODE_FAIL",     "PREEMPTED", "BOOT_FAIL", "DEADLINE",
                                       "OUT_OF_MEMORY", "REVOKED"};

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (strncmp(state, ends[i], strlen(ends[i])) == 0)
            return true;
    return false;
}

void slurm_plain_id(char *id)
{
    char *open = strchr(id, '['), *close = open ? strchr(open, ']') : NULL;
    char *limit = close ? memchr(open, '%', (size_t)(close - open)) : NULL;

    if (limit) {
        memmove(limit, close, strlen(close) + 1);
        close = limit;
    }
    if (!close || close[1] || strspn(open + 1, "0123456789") != (size_t)(close - open - 1))
        return;
    memmove(open, open + 1, (size_t)(close - open - 1));
    close[-1] = '\0';
}

bool slurm_is_away(const struct oom_error *err)
{
    static const char *const signs[] = {
        "Unable to contact slurm controller", "Socket timed out", "Connection refused",
        "Zero Bytes were transmitted", "did not end within", "slurm_msg_sendto",
        "Unexpected message received",
        /* Killed in between, it has forgotten that it had just queued the job again. */
        "Job has already finished"};

    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
        if (strstr(err->text, signs[i]))
            return true;
    return false;
}
