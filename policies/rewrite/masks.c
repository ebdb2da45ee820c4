/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the script's exit status tells how training ended. */
#include <string.h>

#include "policies/rewrite/plan.h"

static bool mentions(const struct rw_buf *root, uint32_t from, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        if (memmem(root->bytes + from, root->length - from, words[i], strlen(words[i])))
            return true;
    return false;
}

/* The statement of the script that holds an offset. */
static uint32_t statement_at(const struct rw_buf *root, uint32_t at)
{
    uint32_t i = root->node_count > 1 ? root->nodes[1].first : 0;

    while (i && !(root->nodes[i].start <= at && at < root->nodes[i].end))
        i = root->nodes[i].next;
    return i;
}

static bool masked(const struct rw_buf *root, const struct rw_cmd *cmd, bool errexit)
{
    static const char *const pipes[] = {"PIPESTATUS", NULL};
    static const char *const tests[] = {"$?", "PIPESTATUS", "exit", "wait", NULL};
    uint32_t statement = statement_at(root, cmd->root_at);

    if (!statement)
        return false;
    uint32_t end = root->nodes[statement].end;
    if (cmd->piped)
        return !mentions(root, end, pipes);
    if (cmd->background)
        return true;
    enum rw_node_type type = root->nodes[statement].type;
    if (errexit || (type != RW_N_COMMAND && type != RW_N_REDIRECTED && type != RW_N_PIPELINE))
        return false;
    for (uint32_t i = root->nodes[statement].next; i; i = root->nodes[i].next)
        if (root->nodes[i].type != RW_N_TOKEN && root->nodes[i].type != RW_N_COMMENT)
            return !mentions(root, end, tests);
    return false;
}

bool oom_script_masks_status(const struct oom_script *script)
{
    struct rw_analysis a;
    bool result = false;

    if (rw_analyse(&a, script, script->root->bytes, script->root->length, NULL, NULL, 0, NULL, NULL,
                   NULL) != 0)
        return false;
    /* Without a policy these are the commands that look like training. */
    for (size_t c = 0; c < a.worlds[0].count; c++) {
        const struct rw_cmd *cmd = &a.worlds[0].cmds[c];
        if (cmd->training && masked(a.rw.root, cmd, a.rw.errexit))
            result = true;
    }
    rw_analysis_free(&a);
    return result;
}
