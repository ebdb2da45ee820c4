/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/run/packages.h"

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/jsonget.h"

enum { MAX_PATH_BYTES = 1024 };

static const char *const names[] = {"liger_kernel"};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

struct search {
    bool seen[NAMES];
    bool looked; /* into a directory that holds what the job trains with */
};

static bool holds(const char *directory, const char *package)
{
    char path[MAX_PATH_BYTES + 64];

    snprintf(path, sizeof(path), "%s/%s/__init__.py", directory, package);
    return access(path, R_OK) == 0;
}

/* A directory without torch says nothing about the job's packages. */
static void look_into(struct search *search, const char *directory)
{
    if (!holds(directory, "torch"))
        return;
    search->looked = true;
    for (size_t i = 0; i < NAMES; i++)
        search->seen[i] |= holds(directory, names[i]);
}

/* `File "/opt/venv/lib/python3.11/site-packages/torch/nn/…"`: the text is a stranger's, and all
 * that is done with the path is to look whether files are there, with the owner's rights. */
static void look_beside(struct search *search, const char *text)
{
    static const char *const ends[] = {"/site-packages/", "/dist-packages/"};
    char directory[MAX_PATH_BYTES];

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        const char *end = strstr(text, ends[i]);
        if (!end)
            continue;
        end += strlen(ends[i]) - 1;
        const char *begin = end;
        while (begin > text && begin[-1] != '"' && begin[-1] != ' ' && begin[-1] != '=')
            begin--;
        if (*begin != '/' || (size_t)(end - begin) >= sizeof(directory))
            continue;
        snprintf(directory, sizeof(directory), "%.*s", (int)(end - begin), begin);
        look_into(search, directory);
    }
}

static void look_under(struct search *search, const char *prefix)
{
    char pattern[MAX_PATH_BYTES];
    glob_t found;

    if (!prefix || *prefix != '/' || strpbrk(prefix, "*?[") ||
        (size_t)snprintf(pattern, sizeof(pattern), "%s/lib/python3*/site-packages", prefix) >=
            sizeof(pattern))
        return;
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            look_into(search, found.gl_pathv[i]);
        globfree(&found);
    }
}

void packages_facts(const json_t *windows, struct oom_values *values)
{
    struct search search = {.looked = false};
    const json_t *line;
    char fact[64];
    size_t i;

    json_array_foreach(windows, i, line) look_beside(&search, json_get_string(line, "text", ""));
    /* The traceback's own directory is the surest; an environment may not be the one that was used.
     */
    if (!search.looked) {
        look_under(&search, getenv("VIRTUAL_ENV"));
        look_under(&search, getenv("CONDA_PREFIX"));
    }
    for (i = 0; search.looked && i < NAMES; i++) {
        snprintf(fact, sizeof(fact), "package.%s", names[i]);
        oom_values_set(values, fact, search.seen[i] ? "true" : "false", OOM_SOURCE_SCHEDULER, NULL);
    }
}
