/* SPDX-License-Identifier: Apache-2.0
 *
 * The options. Slurm calls back for each use: in sbatch where a wrong value is refused, and in
 * slurmstepd where the value may come from a variable that the user wrote, so that a wrong one is
 * skipped there. */
#include <stdio.h>
#include <string.h>

#include "spank_plugin.h"

struct plugin_state plugin_state;

static int on_option(int which, const char *value, int remote);

static const struct {
    const char *key;
    struct spank_option option;
} options[] = {
    {"policy",
     {"oom-retry", "POLICY",
      "run again with a smaller memory footprint when the job runs out of "
      "memory (POLICY: auto, off, or a policy's name)",
      2, 0, on_option}},
    {"max_retries",
     {"oom-max-retries", "N", "with --oom-retry: at most N retries", 1, 1, on_option}},
    {"mode",
     {"oom-mode", "MODE", "with --oom-retry: auto, inplace, requeue or resubmit", 1, 2, on_option}},
    {"allow",
     {"oom-allow", "WHAT", "with --oom-retry: training allows steps that change what is trained", 1,
      3, on_option}},
    {"dry_run",
     {"oom-dry-run", NULL, "with --oom-retry: say what would change, do not run again", 0, 4,
      on_option}},
};
#define OPTION_COUNT (sizeof(options) / sizeof(options[0]))

static int on_option(int which, const char *value, int remote)
{
    char why[160];

    if (which < 0 || (size_t)which >= OPTION_COUNT)
        return 0;
    /* Slurm of some versions hands over "(null)" for an option without its optional value. */
    if (options[which].option.has_arg != 1 && value && (!value[0] || !strcmp(value, "(null)")))
        value = NULL;
    if (options[which].option.has_arg == 0)
        value = NULL;
    if (settings_set(&plugin_state.options, options[which].key, value, why, sizeof(why)) == 0)
        return 0;
    if (remote)
        return 0;
    slurm_error("oomretry: --%s=%.64s: %s", options[which].option.name, value ? value : "", why);
    return -1;
}

void options_register(spank_t sp)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        struct spank_option option = options[i].option;

        (void)spank_option_register(sp, &option);
    }
}
