/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sched/slurm_accepts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/lib/child.h"
#include "agent/sched/slurm_options.h"

enum { CALL_MS = 10000, MAX_WORDS = 512 };

/* How sbatch 20.11 to 26.05 begins the line that says why not. */
static const char refusal[] = "allocation failure: ";

/* A controller that is away or busy has not refused anything. */
static bool is_silence(const char *words)
{
    static const char *const silences[] = {"Unable to contact", "timed out", "Zero Bytes",
                                           "temporarily",       "try again", NULL};

    for (size_t i = 0; silences[i]; i++)
        if (strstr(words, silences[i]))
            return true;
    return false;
}

static int judge(const struct child_result *result, struct oom_error *err)
{
    char *words = strstr(result->errors, refusal);

    if (!WIFEXITED(result->status) || WEXITSTATUS(result->status) == 0 || !words ||
        is_silence(words))
        return 0;
    words += sizeof(refusal) - 1;
    words[strcspn(words, "\n")] = '\0';
    return oom_errorf(err, "the scheduler would not run the job like that: %s", words);
}

/* The job's own script is not asked: what its lines say is in the job's record by now. */
int slurm_accepts(const char *job, const struct oom_edits *resources, struct oom_error *err)
{
    const char *argv[MAX_WORDS + 4] = {"sbatch", "--test-only"};
    struct slurm_options options = {NULL, 0};
    struct child_result result;
    size_t n = 2;
    int rc = 0;

    if (slurm_options_of(job, NULL, resources, "", &options, NULL) < 0)
        return 0;
    for (size_t i = 0; i < options.count && n < MAX_WORDS; i++)
        argv[n++] = options.items[i];
    argv[n++] = "--wrap=:";
    argv[n] = NULL;
    if (child_run(argv, CALL_MS, &result, NULL) == 0) {
        rc = judge(&result, err);
        child_result_free(&result);
    }
    slurm_options_free(&options);
    return rc;
}
