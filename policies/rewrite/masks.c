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

/* The statement of a shell's text that holds an offset. */
static uint32_t statement_at(const struct rw_buf *buf, uint32_t at)
{
    uint32_t i = buf->node_count > 1 ? buf->nodes[1].first : 0;

    while (i && !(buf->nodes[i].start <= at && at < buf->nodes[i].end))
        i = buf->nodes[i].next;
    return i;
}

/* One shell on the way from the script to the command. */
static bool masked_by(const struct rw_shell *shell)
{
    static const char *const tests[] = {"$?", "PIPESTATUS", "exit", "wait", NULL};
    const struct rw_buf *buf = shell->buf;
    uint32_t statement = statement_at(buf, shell->at);

    if (!statement || shell->errexit)
        return false;
    enum rw_node_type type = buf->nodes[statement].type;
    if (type != RW_N_COMMAND && type != RW_N_REDIRECTED && type != RW_N_PIPELINE)
        return false;
    for (uint32_t i = buf->nodes[statement].next; i; i = buf->nodes[i].next)
        if (buf->nodes[i].type != RW_N_TOKEN && buf->nodes[i].type != RW_N_COMMENT)
            return !mentions(buf, buf->nodes[statement].end, tests);
    return false;
}

static bool asks_for_pipe(const struct rw_shell *shell)
{
    static const char *const pipes[] = {"PIPESTATUS", NULL};
    uint32_t statement = statement_at(shell->buf, shell->at);

    return statement && mentions(shell->buf, shell->buf->nodes[statement].end, pipes);
}

static bool masked(const struct rw_cmd *cmd)
{
    bool result = cmd->background || cmd->piped;

    for (const struct rw_shell *shell = cmd->shell; shell; shell = shell->outer) {
        if (cmd->piped && asks_for_pipe(shell))
            return false;
        result |= masked_by(shell);
    }
    return result;
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
        if (cmd->training && masked(cmd))
            result = true;
    }
    rw_analysis_free(&a);
    return result;
}
