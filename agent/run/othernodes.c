/* SPDX-License-Identifier: Apache-2.0
 *
 * An attempt's processes on other nodes end with its steps. What they left there, and who else
 * holds memory of the job's cards, only a program on the node can see: this one, started once on
 * each, says at most one line. The site's TaskProlog may say others there. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/run/clear.h"
#include "agent/run/run.h"

enum { NODES_MS = 90000 };
static const char held_by[] = "oomrun: held by ";

int othernodes_look(const struct run *run, int64_t since_ms)
{
    const char *node = getenv("SLURMD_NODENAME");
    char who[256];

    leftovers_shm(since_ms);
    if (!gpumem_wait(run, who, sizeof(who)))
        printf("%s%s %s\n", held_by, node ? node : "?", who);
    return 0;
}

/* From the first such line; false: there is none. */
static bool read_holder(const char *text, struct holder_place *holder)
{
    const char *line = text ? strstr(text, held_by) : NULL;

    return line &&
           sscanf(line + sizeof(held_by) - 1, "%255s %255[^\n]", holder->node, holder->who) == 2;
}

bool othernodes_clear(const struct run *run, int64_t since_ms, struct holder_place *holder)
{
    struct oom_error err = {""};
    char self[4096], since[32], *out = NULL;
    const char *argv[] = {self, "--slurm", "--look", since, NULL};
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (!run->sched || !run->sched->on_nodes || length <= 0)
        return true;
    self[length] = '\0';
    snprintf(since, sizeof(since), "%lld", (long long)since_ms);
    if (run->sched->on_nodes(argv, NODES_MS, &out, &err) < 0) {
        say("  the job's other nodes could not be looked at: %s", err.text);
        return true;
    }
    struct holder_place found;
    bool held = read_holder(out, &found);
    free(out);
    if (held)
        *holder = found;
    return !held;
}
