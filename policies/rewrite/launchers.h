/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that start other programs: a table of how their command lines are read. */
#ifndef POLICIES_REWRITE_LAUNCHERS_H
#define POLICIES_REWRITE_LAUNCHERS_H

#include "policies/rewrite/rw.h"

enum rw_launch_kind {
    LAUNCH_WRAP,       /* options, then a command */
    LAUNCH_WRAP_ONE,   /* options, one more word (a duration, an image, a host), then a command */
    LAUNCH_TASKSET,    /* the one word only when it is a mask */
    LAUNCH_ENV,        /* options and NAME=VALUE, then a command */
    LAUNCH_SUBCOMMAND, /* only behind one of its sub-commands; then as a plain one */
    LAUNCH_SUB_IMAGE,  /* a sub-command, options, an image, a command */
    LAUNCH_PYTHON,
    LAUNCH_PYLAUNCH, /* options, then a Python script, or a module behind -m */
    LAUNCH_ACCELERATE,
    LAUNCH_SHELL,
    LAUNCH_SSH,
    LAUNCH_PDSH, /* as ssh, with the hosts among the options */
    LAUNCH_XARGS,
    LAUNCH_SBATCH,
    LAUNCH_RAY,
};

struct rw_launcher {
    const char *name;
    enum rw_launch_kind kind;
    const char *sub;     /* sub-commands, blank separated */
    const char *flags;   /* long options without a value */
    const char *letters; /* short options without a value */
};

/* By the last part of its path; NULL: not a launcher. */
const struct rw_launcher *rw_launcher_named(const char *name);
/* The launcher that a Python module is ("torch.distributed.run"); NULL: none. */
const struct rw_launcher *rw_launcher_module(const char *module);

#endif
