/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sched/ray.h"

/* "[2026-11-29 14:40:42,465 I 10900 10900] (raylet) …" begins a record. */
static bool begins_record(const char *line, const char *end)
{
    return end - line > 24 && line[0] == '[' && line[5] == '-' && line[11] == ' ' &&
           line[14] == ':';
}

/* The job whose worker was chosen; the list behind it names those that stay. */
static bool kills_job(const char *record, size_t length, const char *job_id)
{
    static const char chosen[] = "Selected to kill: ";
    const char *at = memmem(record, length, chosen, sizeof(chosen) - 1);
    char wanted[64];

    if (!at)
        return false;
    const char *stop = memchr(at, '\n', length - (size_t)(at - record));
    size_t line = (size_t)((stop ? stop : record + length) - at);
    snprintf(wanted, sizeof(wanted), "job ID=%s", job_id);
    return memmem(at, line, wanted, strlen(wanted)) != NULL;
}

char *ray_raylet_kills(const char *bytes, size_t length, const char *job_id)
{
    const char *end = bytes + length, *record = bytes;
    char *out = malloc(length + 1);
    size_t used = 0;

    if (!out)
        return NULL;
    while (record < end) {
        const char *line = memchr(record, '\n', (size_t)(end - record));
        while (line && !begins_record(line + 1, end))
            line = memchr(line + 1, '\n', (size_t)(end - line - 1));
        const char *stop = line ? line + 1 : end;
        if (kills_job(record, (size_t)(stop - record), job_id)) {
            memcpy(out + used, record, (size_t)(stop - record));
            used += (size_t)(stop - record);
        }
        record = stop;
    }
    out[used] = '\0';
    return out;
}
