/* SPDX-License-Identifier: Apache-2.0
 *
 * How many processes the launcher in front of a training program starts: torchrun, accelerate,
 * deepspeed, and axolotl's launcher arguments behind a lone "--". */
#include <stdlib.h>
#include <string.h>

#include "policies/rewrite/plan.h"

#define MAX_PROCESSES (1L << 20)

/* The number that one of the options has: 0 when it is not there, -1 when it is not a number. */
static long option_number(const struct rw_cmd *cmd, size_t from, size_t to,
                          const char *const *names)
{
    long number = 0;

    for (size_t i = from; i < to; i++) {
        const char *text = cmd->fields.items[i].string;
        size_t length = strcspn(text, "=");
        if (strncmp(text, "--", 2) != 0)
            continue;
        for (size_t n = 0; names[n]; n++) {
            bool same = strlen(names[n]) == length - 2;
            for (size_t c = 0; same && c < length - 2; c++)
                same = (text[c + 2] == '-' ? '_' : text[c + 2]) == names[n][c];
            if (!same)
                continue;
            const char *value = text[length] == '=' ? text + length + 1
                                : i + 1 < to        ? cmd->fields.items[i + 1].string
                                                    : "";
            char *end;
            number = strtol(value, &end, 10);
            if (end == value || *end || number < 1 || number > MAX_PROCESSES)
                number = -1;
        }
    }
    return number;
}

static long processes(const struct rw_cmd *cmd, size_t from, size_t to)
{
    static const char *const all[] = {"num_processes", NULL};
    static const char *const per_node[] = {"nproc_per_node", "num_gpus", NULL};
    static const char *const nodes[] = {"nnodes", "num_nodes", NULL};
    long number = option_number(cmd, from, to, all);

    if (number)
        return number;
    number = option_number(cmd, from, to, per_node);
    long times = option_number(cmd, from, to, nodes);
    if (number <= 0 || times < 0)
        return number;
    return number * (times ? times : 1);
}

long rw_launch_processes(const struct rw_cmd *cmd)
{
    long number = processes(cmd, 0, cmd->arg0 < cmd->fields.count ? cmd->arg0 : cmd->fields.count);

    if (!number)
        number = processes(cmd, rw_args_end(cmd), cmd->fields.count);
    return number > 0 && number <= MAX_PROCESSES ? number : 0;
}
