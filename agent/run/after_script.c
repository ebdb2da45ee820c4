/* SPDX-License-Identifier: Apache-2.0
 *
 * The script of a job whose supervisor was lost. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/lib/child.h"
#include "agent/lib/files.h"
#include "agent/run/after.h"
#include "agent/run/capture.h"

enum { CALL_MS = 10000 };

/* Slurm's own copy of what was submitted, into *text. scontrol exits with 0 also when it has not
 * got it (seen on 22.05): a controller that is away would be taken for an empty script, into which
 * no change can be written. */
static int script_of_slurm(const struct run *run, char **text, size_t *length,
                           struct oom_error *err)
{
    const char *write[] = {"scontrol", "write", "batch_script", run->job, "-", NULL};
    struct child_result result;

    if (child_run(write, CALL_MS, &result, err) < 0)
        return -1;
    bool fine =
        WIFEXITED(result.status) && WEXITSTATUS(result.status) == 0 && *result.out && !result.cut;
    if (fine) {
        *text = result.out;
        *length = result.out_length;
        result.out = NULL;
    } else {
        result.errors[strcspn(result.errors, "\n")] = '\0';
        oom_errorf(err, "the script of job %s cannot be had from Slurm: %s", run->job,
                   *result.errors ? result.errors : "it is empty");
    }
    child_result_free(&result);
    return fine ? 0 : -1;
}

int after_open_script(struct run *run, struct oom_error *err)
{
    static char path[4096];
    static char *argv[] = {"bash", path, NULL};
    char *text = NULL;
    size_t length = 0;

    if (capture_script(run, &text, &length) < 0 && script_of_slurm(run, &text, &length, err) < 0)
        return -1;
    int rc = file_write_in_tmp("oomrun-after", text, length, 0600, path, sizeof(path), err);
    free(text);
    if (rc == 0) {
        rc = launch_open(&run->launch, argv, false, err);
        unlink(path);
    }
    return rc;
}
