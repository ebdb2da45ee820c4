/* SPDX-License-Identifier: Apache-2.0
 *
 * What Slurm calls: each callback goes to the file of its context. All return success always: a
 * plugin that fails can drain a node or lose a job, and this one has no reason worth that. */
#include <errno.h>

#include "spank_plugin.h"

#pragma GCC visibility push(default)
SPANK_PLUGIN(oomretry, 1)
#pragma GCC visibility pop

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int slurm_spank_init(spank_t sp, int ac, char **av);
EXPORTED int slurm_spank_init_post_opt(spank_t sp, int ac, char **av);
EXPORTED int slurm_spank_task_post_fork(spank_t sp, int ac, char **av);
EXPORTED int slurm_spank_task_exit(spank_t sp, int ac, char **av);
EXPORTED int slurm_spank_exit(spank_t sp, int ac, char **av);

static void complain_in_slurmd_log(const char *text)
{
    slurm_error("oomretry: plugstack.conf: %s", text);
}

int slurm_spank_init(spank_t sp, int ac, char **av)
{
    enum spank_context context = spank_context();

    /* slurmd starts once and logs for the site's staff; elsewhere users would read it. */
    site_read(&plugin_state.site, ac, av, context == S_CTX_SLURMD ? complain_in_slurmd_log : NULL);
    settings_init(&plugin_state.options);
    plugin_state.opted_in = false;
    if (context != S_CTX_SLURMD)
        options_register(sp);
    return 0;
}

int slurm_spank_init_post_opt(spank_t sp, int ac, char **av)
{
    (void)ac;
    (void)av;
    if (spank_context() == S_CTX_ALLOCATOR)
        allocator_init_post_opt(sp);
    else if (spank_context() == S_CTX_REMOTE)
        remote_init_post_opt(sp);
    return 0;
}

int slurm_spank_task_post_fork(spank_t sp, int ac, char **av)
{
    (void)ac;
    (void)av;
    if (spank_context() == S_CTX_REMOTE)
        remote_task_post_fork(sp);
    return 0;
}

int slurm_spank_task_exit(spank_t sp, int ac, char **av)
{
    (void)ac;
    (void)av;
    if (spank_context() == S_CTX_REMOTE)
        remote_task_exit(sp);
    return 0;
}

int slurm_spank_exit(spank_t sp, int ac, char **av)
{
    (void)sp;
    (void)ac;
    (void)av;
    if (spank_context() == S_CTX_REMOTE)
        remote_exit();
    return 0;
}
