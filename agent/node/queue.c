/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller's queue. Its last column is what users have written into the comments of their
 * jobs, which may hold line feeds: only lines that begin with a word of this call are records. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>

#include "agent/lib/child.h"
#include "agent/node/node.h"
#include "agent/sched/slurm_fields.h"
#include "agent/sched/slurm_marked.h"

enum { CALL_MS = 15000 };

/* `reason` and the comment behind it. A job that its owner holds is not ours. */
static bool is_held_by_us(const char *reason)
{
    static const char requeued[] = "job requeued in held state"; /* scontrol has underscores */
    const char *mark = strstr(reason, "oomretry:L");

    return strncmp(reason, requeued, strlen(requeued)) == 0 ||
           (strncmp(reason, "JobHeldUser", strlen("JobHeldUser")) == 0 && mark &&
            strstr(mark, SLURM_MARK_HELD));
}

/* "17 18_3 PENDING JobHeldUser oomretry:L7.2:held" */
static void add_job(json_t *states, char *line)
{
    char *id = strchr(line, ' '), *state = id ? strchr(id + 1, ' ') : NULL;

    if (!state)
        return;
    *id++ = *state++ = '\0';
    char *reason = strchr(state, ' ');
    if (reason)
        *reason++ = '\0';
    /* A release that was not asked for, or has been forgotten: after.c tells. */
    if (reason && is_held_by_us(reason))
        strcpy(state, "HELD");
    slurm_plain_id(id);
    json_object_set_new(states, strchr(id, '_') ? id : line, json_string(state));
}

json_t *queue_states(void)
{
    uint64_t word;
    char mark[24], format[64];
    const char *argv[] = {"squeue", "-h", "-t", "all", "-o", format, NULL};
    struct child_result result;
    json_t *states = NULL;

    if (getrandom(&word, sizeof(word), 0) != (ssize_t)sizeof(word))
        return NULL;
    int length = snprintf(mark, sizeof(mark), "%016llx ", (unsigned long long)word);
    snprintf(format, sizeof(format), "%s%%A %%i %%T %%r %%k", mark);
    if (child_run(argv, CALL_MS, &result, NULL) < 0)
        return NULL;
    /* In half a list every other job would be missing, and a missing one counts as ended. */
    if (WIFEXITED(result.status) && WEXITSTATUS(result.status) == 0 && !result.cut) {
        states = json_object();
        for (char *save = NULL, *line = strtok_r(result.out, "\n", &save); line;
             line = strtok_r(NULL, "\n", &save))
            if (strncmp(line, mark, (size_t)length) == 0)
                add_job(states, line + length);
    }
    child_result_free(&result);
    return states;
}

int queue_cluster(char *name, size_t size)
{
    const char *argv[] = {"scontrol", "show", "config", NULL};
    char *text = NULL;

    if (child_expect(argv, CALL_MS, &text, NULL) < 0)
        return -1;
    const char *key = strstr(text, "\nClusterName "), *value = key ? strchr(key, '=') : NULL;
    if (value) {
        value += strspn(value, "= ");
        snprintf(name, size, "%.*s", (int)strcspn(value, " \n"), value);
    }
    free(text);
    return value ? 0 : -1;
}
