/* SPDX-License-Identifier: Apache-2.0
 *
 * Of several training commands in one script (a warm-up and the run, SFT and then DPO), each with
 * settings of its own: the one that ran out, and those that its remedy is for. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "policies/expr.h"
#include "policies/rewrite/affected.h"

enum { MOST_COMMANDS = 64, MOST_WORDS = 2000 };

struct command {
    const struct rw_cmd *cmd; /* in the first world that has it */
    bool affected;
};

/* The training commands of a script, each once; more than there is room for count as one more. */
static size_t list_training(const struct rw_analysis *a, struct command *commands)
{
    size_t count = 0;

    for (size_t w = 0; w < a->count; w++) {
        for (size_t c = 0; c < a->worlds[w].count; c++) {
            const struct rw_cmd *cmd = &a->worlds[w].cmds[c];
            bool listed = !cmd->training;
            for (size_t i = 0; i < count && !listed; i++)
                listed = commands[i].cmd->key == cmd->key;
            if (listed)
                continue;
            if (count == MOST_COMMANDS)
                return count + 1;
            commands[count++] = (struct command){cmd, false};
        }
    }
    return count;
}

/* How many of its arguments were seen, less those that were not. A value is seen behind its flag
 * only: what one command has as batch size, the other may have as number of steps. */
static long likeness(struct rw *rw, const struct rw_cmd *cmd, const char *const *ran)
{
    const char *const *args = rw_cmd_args(rw, cmd);
    long score = 0;

    for (size_t i = 0; i < MOST_WORDS && args[i]; i++) {
        bool seen = false, is_value = i && args[i][0] != '-';
        for (size_t r = 0; r < MOST_WORDS && ran[r] && !seen; r++)
            seen = strcmp(args[i], ran[r]) == 0 &&
                   (!is_value || (r && strcmp(args[i - 1], ran[r - 1]) == 0));
        score += seen ? 1 : -1;
    }
    return score;
}

const struct rw_cmd *rw_most_like(struct rw_analysis *a, const char *const *ran)
{
    struct command commands[MOST_COMMANDS];
    size_t count = list_training(a, commands);
    const struct rw_cmd *best = count ? commands[0].cmd : NULL;
    long most = 0;

    for (size_t i = 0; ran && i < count && count <= MOST_COMMANDS; i++) {
        long score = likeness(&a->rw, commands[i].cmd, ran);
        if (i && score <= most)
            continue;
        best = commands[i].cmd;
        most = score;
    }
    return best;
}

static bool same_value(const char *a, const char *b)
{
    double x, y;

    if (!a || !b)
        return a == b;
    if (oom_expr_read_number(a, &x) && oom_expr_read_number(b, &y))
        return x == y;
    return strcasecmp(a, b) == 0;
}

/* Whether the settings are those that the edits were decided from; an edit that does not say what
 * was before is for everybody. */
static bool had_before(struct rw_analysis *a, const struct oom_policy *policy,
                       const struct rw_cmd *cmd, const struct oom_edits *edits)
{
    struct rw_config *config = rw_config_open(&a->rw, policy, cmd, NULL);
    struct oom_values values = {NULL, 0};
    bool agrees = true;

    for (size_t e = 0; e < edits->count && agrees; e++) {
        const struct oom_edit *edit = &edits->items[e];
        const struct oom_knob *known = oom_policy_knob(policy, edit->knob);
        if (!edit->old_value || !known || strncmp(edit->knob, "slurm:", 6) == 0 ||
            strncmp(edit->knob, "env:", 4) == 0)
            continue;
        agrees = rw_read_knob(a, policy, cmd, config, known, &values) == 0 &&
                 same_value(oom_values_get(&values, known->name), edit->old_value);
    }
    oom_values_free(&values);
    rw_config_close(config);
    return agrees;
}

void rw_keep_affected(struct rw_analysis *a, const struct oom_policy *policy,
                      const struct oom_edits *edits, const char *const *ran)
{
    struct command commands[MOST_COMMANDS];
    size_t count = list_training(a, commands), affected = 0;
    const struct rw_cmd *failed = ran ? rw_most_like(a, ran) : NULL;

    if (count < 2 || count > MOST_COMMANDS)
        return;
    for (size_t i = 0; i < count; i++) {
        commands[i].affected = had_before(a, policy, commands[i].cmd, edits);
        affected += commands[i].affected;
        /* When another command fails than the one before, the remedies are for both. */
        if (commands[i].cmd == failed && !commands[i].affected)
            return;
    }
    for (size_t w = 0; affected && w < a->count; w++) {
        for (size_t c = 0; c < a->worlds[w].count; c++) {
            struct rw_cmd *cmd = &a->worlds[w].cmds[c];
            for (size_t i = 0; i < count && cmd->training; i++) {
                if (commands[i].cmd->key != cmd->key || commands[i].affected)
                    continue;
                cmd->training = false;
                a->training--;
            }
        }
    }
}

void rw_keep_as(struct rw_analysis *a, const struct rw_analysis *like)
{
    for (size_t w = 0; w < a->count && w < like->count; w++) {
        for (size_t c = 0; c < a->worlds[w].count && c < like->worlds[w].count; c++) {
            struct rw_cmd *cmd = &a->worlds[w].cmds[c];
            if (!cmd->training || like->worlds[w].cmds[c].training)
                continue;
            cmd->training = false;
            a->training--;
        }
    }
}
