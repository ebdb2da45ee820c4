/* SPDX-License-Identifier: Apache-2.0
 *
 * Which commands of a script train, by their looks: for policies that name none of them. */
#include <string.h>

#include "policies/rewrite/launch.h"
#include "policies/rewrite/plan.h"

/* A policy names its programs; where it names none of these, the program that looks most like one
 * that trains. */
static bool looks_like_helper(const char *program)
{
    static const char *const words[] = {"convert", "download", "preprocess", "prepare", "eval",
                                        "serve",   "server",   "launch_",    "check",   "merge",
                                        "plot",    "export",   "tokenize",   "setup",   "test",
                                        "pip",     "upload",   "inspect",    "warmup",  NULL};
    const char *slash = strrchr(program, '/');

    for (size_t i = 0; words[i]; i++)
        if (strcasestr(slash ? slash : program, words[i]))
            return true;
    return false;
}

static bool named(const char *program, const char *const *names)
{
    size_t length = strcspn(program, " ");

    for (size_t i = 0; names[i]; i++)
        if (strlen(names[i]) == length && strncmp(names[i], program, length) == 0)
            return true;
    return false;
}

/* The words behind these name what is to be done, and are no arguments of the training. */
static bool runs_tasks(const char *program)
{
    static const char *const names[] = {"make", "gmake",  "just",   "task",  "npm", "yarn", "pnpm",
                                        "inv",  "invoke", "dvc",    "nox",   "tox", "doit", "pixi",
                                        "pdm",  "hatch",  "poetry", "bazel", NULL};

    return named(program, names);
}

bool rw_looks_like_training(const struct rw_cmd *cmd)
{
    static const char *const words[] = {"train",    "sft",      "grpo", "dpo",    "ppo", "rl",
                                        "pretrain", "finetune", "kto",  "reward", NULL};

    if (!cmd->program || looks_like_helper(cmd->program))
        return false;
    if (cmd->python)
        return true;
    if (runs_tasks(cmd->program))
        return false;
    const char *blank = strchr(cmd->program, ' ');
    for (size_t i = 0; blank && words[i]; i++)
        if (strcmp(blank + 1, words[i]) == 0)
            return true;
    return false;
}

/* What a script does around its work. */
bool rw_is_utility(const char *program)
{
    /* clang-format off */
    static const char *const names[] = {
        "mkdir", "rmdir", "rm", "cp", "mv", "ln", "cat", "ls", "chmod", "chown", "touch", "tee",
        "head", "tail", "sed", "awk", "grep", "sort", "wc", "tr", "cut", "date", "hostname",
        "sleep", "df", "du", "free", "nproc", "printenv", "tar", "gzip", "unzip", "zip", "rsync",
        "scp", "wget", "curl", "git", "pip", "pip3", "conda", "mamba", "module", "ml",
        "nvidia-smi", "rocm-smi", "nvcc", "scontrol", "squeue", "sacct", "sinfo", "kill", "pkill",
        "killall", "uname", "whoami", "id", "md5sum", "sha256sum", "basename", "dirname",
        "realpath", "readlink", "mktemp", "seq", "jq", "ray", "wandb", "hf", "huggingface-cli",
        "aws", "gsutil", "rclone", "mount", "ulimit", "which", "whereis", "pgrep", "ps", "find",
        "file", "ldd", "apt", "apt-get", "yum", "dnf", "brew", "source", "type", "diff", "cmp",
        "less", "more", "update-alternatives", NULL
    };
    /* clang-format on */

    return named(program, names);
}

bool rw_may_train(const struct rw_cmd *cmd)
{
    return !rw_is_utility(cmd->program);
}
