/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sched/slurm_fields.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Where a value ends: values may hold blanks ("JobName=my run"), keys begin with a capital and end
 * at '='. */
static size_t value_length(const char *text)
{
    size_t n = 0;

    for (; text[n] && text[n] != '\n'; n++) {
        const char *p = text + n;
        if (*p != ' ' || !isupper((unsigned char)p[1]))
            continue;
        p++;
        while (isalnum((unsigned char)*p) || strchr("/:_", *p ? *p : '!'))
            p++;
        if (*p == '=')
            break;
    }
    while (n > 0 && text[n - 1] == ' ')
        n--;
    return n;
}

/* Between the name and the owner of a component stands the set that it is of: " HetJobIdSet=1-2".
 */
static const char *before_set(const char *name, const char *end)
{
    static const char set[] = " HetJobIdSet=";
    const size_t length = sizeof(set) - 1;
    const char *value = end;

    while (value > name && strchr("0123456789-,[]", value[-1]))
        value--;
    bool is_set =
        value < end && (size_t)(value - name) >= length && memcmp(value - length, set, length) == 0;
    return is_set ? value - length : end;
}

/* Where the name of the job of this line ends, NULL: there is none. It may hold anything, also what
 * looks like a key ("sweep LR=0.1"); behind it the record says whose the job is, and of which
 * group. */
static const char *name_end(const char *name)
{
    static const char owner[] = " UserId=", group[] = " GroupId=";
    size_t line = strcspn(name, "\n");

    for (const char *end = name; (end = strstr(end, owner)) && end < name + line; end++) {
        const char *behind = end + sizeof(owner) - 1;
        if (strncmp(behind + strcspn(behind, " \n"), group, sizeof(group) - 1) == 0)
            return before_set(name, end);
    }
    return NULL;
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
        const char *end = strcmp(key, "JobName") == 0 ? name_end(p) : NULL;
        size_t n = end ? (size_t)(end - p) : value_length(p);
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

void slurm_plain_id(char *id)
{
    char *open = strchr(id, '['), *close = open ? strchr(open, ']') : NULL;

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
