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
    const char *list[] = {"squeue", "-h", "-a", "-u", uid, "-o", "%i|%k", NULL};
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
        /* All components of a heterogeneous job ("17+1") have the mark; the first stands for them.
         */
        line[strcspn(line, "+")] = '\0';
        if (except && strcmp(line, except) == 0)
            continue;
        snprintf(job, size, "%s", line);
        found = 1;
    }
    free(text);
    return found;
}

void slurm_mark(int64_t lineage, int64_t number, char *mark, size_t size)
{
    snprintf(mark, size, "oomretry:L%lld.%lld", (long long)lineage, (long long)number);
}

bool slurm_mark_is_held(const char *comment, const char *mark)
{
    const char *at = strstr(comment, mark);

    return at && strncmp(at + strlen(mark), SLURM_MARK_HELD, strlen(SLURM_MARK_HELD)) == 0;
}

int slurm_unmark_held(const char *job, struct oom_error *err)
{
    const char *show[] = {"scontrol", "-o", "show", "job", job, NULL};
    char comment[4096], assignment[4200];
    const char *update[] = {"scontrol", "update", "job", job, assignment, NULL};
    char *text = NULL, *held;

    if (child_expect(show, CALL_MS, &text, err) < 0)
        return -1;
    bool marked = slurm_field(text, "Comment", comment, sizeof(comment)) &&
                  (held = strstr(comment, "oomretry:L")) && (held = strstr(held, SLURM_MARK_HELD));
    free(text);
    if (!marked)
        return 0;
    *held = '\0'; /* the mark is the last word */
    snprintf(assignment, sizeof(assignment), "Comment=%s", comment);
    return child_expect(update, CALL_MS, NULL, err);
}
