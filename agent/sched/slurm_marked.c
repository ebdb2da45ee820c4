/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sched/slurm_marked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/child.h"
#include "agent/sched/slurm_fields.h"

enum { CALL_MS = 10000 };

int slurm_find_marked(const char *mark, const char *except, char *job, size_t size,
                      struct oom_error *err)
{
    char uid[16];
    const char *list[] = {"squeue", "-h", "-u", uid, "-o", "%i|%k", NULL};
    char *text = NULL;
    int found = 0;

    snprintf(uid, sizeof(uid), "%u", (unsigned)getuid());
    if (child_expect(list, CALL_MS, &text, err) < 0)
        return -1;
    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line && !found;
         line = strtok_r(NULL, "\n", &save)) {
        char *bar = strchr(line, '|'), *at = bar ? strstr(bar, mark) : NULL;
        if (!at || at[strlen(mark)] == '.' || (at[strlen(mark)] >= '0' && at[strlen(mark)] <= '9'))
            continue;
        *bar = '\0';
        slurm_plain_id(line);
        if (except && strcmp(line, except) == 0)
            continue;
        snprintf(job, size, "%s", line);
        found = 1;
    }
    free(text);
    return found;
}
