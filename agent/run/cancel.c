/* SPDX-License-Identifier: Apache-2.0
 *
 * Somebody wants the job to end: scancel, a time limit, Ctrl-C. That is never undone, so what is
 * known of it must outlive this process, and what is about to be started looks for it first. */
#include <signal.h>
#include <stddef.h>

#include "agent/run/run.h"

enum { TELL_MS = 1000 };

static const int ending[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

/* What this program was started to ignore (nohup, or in the background of a script), its command
 * ignores as well. */
static bool is_ignored(int signo)
{
    struct sigaction action;

    return sigaction(signo, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

bool cancel_is_signal(int signo)
{
    for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
        if (signo == ending[i])
            return !is_ignored(signo);
    return false;
}

int cancel_pending(void)
{
    sigset_t pending;

    if (sigpending(&pending) < 0)
        return 0;
    for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
        if (sigismember(&pending, ending[i]) == 1 && !is_ignored(ending[i]))
            return ending[i];
    return 0;
}

void cancel_tell(struct run *run, const struct attempt *attempt)
{
    json_t *reply = NULL;
    json_t *body =
        attempt->known && run->options.in_job
            ? json_pack("{s:I, s:I, s:i}", "lineage", (json_int_t)attempt->lineage, "attempt",
                        (json_int_t)attempt->number, "told", attempt->ended_by_signal)
            : NULL;

    if (!body)
        return;
    api_set_timeout(run->api, TELL_MS);
    api_call(run->api, "POST", "/v1/attempts/note", body, &reply, NULL);
    api_set_timeout(run->api, HEAD_DECIDES_MS);
    json_decref(body);
    json_decref(reply);
}
