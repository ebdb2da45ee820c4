/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lib/rewritten.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lib/textdiff.h"

int rewritten_copy_name(const char *path, const char *directory, const char *mark, char *out,
                        size_t size, size_t *ending)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    char own[PATH_MAX], absolute[PATH_MAX];

    if (!dot || dot == base)
        dot = base + strlen(base);
    if (!directory) {
        int n = slash ? snprintf(own, sizeof(own), "%.*s", (int)(slash - path + 1), path)
                      : snprintf(own, sizeof(own), ".");
        if (n < 0 || (size_t)n >= sizeof(own))
            return -1;
        directory = own;
    }
    if (!realpath(directory, absolute))
        return -1;
    int n = snprintf(out, size, "%s/.%.*s.%s%s", strcmp(absolute, "/") == 0 ? "" : absolute,
                     (int)(dot - base), base + (*base == '.'), mark, dot);
    if (ending)
        *ending = strlen(dot);
    return n > 0 && (size_t)n < size ? 0 : -1;
}

char *rewritten_diff(const char *name, const char *old, size_t old_length,
                     const struct oom_rewrite *rewrite)
{
    char *all = textdiff_unified(name, name, old, old_length, rewrite->bytes, rewrite->length);

    for (size_t i = 0; all && i < rewrite->copy_count; i++) {
        const struct oom_side_copy *copy = &rewrite->copies[i];
        char *more = NULL;
        char *diff = textdiff_unified(copy->path, copy->path, copy->old_bytes, copy->old_length,
                                      copy->bytes, copy->length);
        if (!diff || asprintf(&more, "%s%s", all, diff) < 0)
            more = NULL;
        free(diff);
        free(all);
        all = more;
    }
    return all;
}
