/* SPDX-License-Identifier: Apache-2.0
 *
 * In sbatch, as the submitter: the SBATCH_OOM_* variables are read, and what was asked for is
 * packed into one job-control variable, which reaches the batch step whatever --export says and is
 * sent again when the job is requeued. */
#include <stdio.h>
#include <stdlib.h>

#include "spank_plugin.h"

static const struct {
    const char *variable;
    const char *key;
} variables[] = {
    {"SBATCH_OOM_RETRY", "policy"},    {"SBATCH_OOM_MAX_RETRIES", "max_retries"},
    {"SBATCH_OOM_MODE", "mode"},       {"SBATCH_OOM_ALLOW", "allow"},
    {"SBATCH_OOM_DRY_RUN", "dry_run"},
};

static void read_environment(struct settings *settings)
{
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *value = getenv(variables[i].variable);
        char why[160];

        if (value && value[0] &&
            settings_set(settings, variables[i].key, value, why, sizeof(why)) != 0)
            slurm_error("oomretry: %s=%.64s %s; ignored", variables[i].variable, value, why);
    }
}

void allocator_init_post_opt(spank_t sp)
{
    struct settings settings = plugin_state.options, environment, effective;
    char text[160];

    settings_init(&environment);
    read_environment(&environment);
    settings_merge(&settings, &environment);

    effective = settings;
    settings_merge(&effective, &plugin_state.site.defaults);
    if (!effective.policy[0] && (settings.mode[0] || settings.allow[0] ||
                                 settings.max_retries >= 0 || settings.dry_run >= 0))
        slurm_info("oomretry: the --oom-* options have no effect without --oom-retry");

    settings_format(&settings, text, sizeof(text));
    if (text[0])
        (void)spank_job_control_setenv(sp, SETTINGS_CARRIER, text, 1);
}
