/* SPDX-License-Identifier: Apache-2.0
 *
 * In sbatch, as the submitter: the SBATCH_OOM_* variables are read, and what was asked for is
 * packed into one job-control variable, which reaches the batch step whatever --export says and is
 * sent again when the job is requeued. The options of sbatch itself go the same way. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spank_plugin.h"

extern char **environ;

enum { MAX_COMMAND_BYTES = 256 * 1024, MAX_WORDS = 4096 };

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

/* sbatch's own command line, as the kernel keeps it. False when it is longer than that. */
static bool read_command_line(char *bytes, size_t size, char **words, size_t max_words)
{
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    size_t used = 0, count = 0;
    ssize_t got = -1;

    if (fd < 0)
        return false;
    while (used < size && (got = read(fd, bytes + used, size - used)) > 0)
        used += (size_t)got;
    close(fd);
    if (got != 0 || used == 0 || bytes[used - 1])
        return false;
    for (size_t at = 0; at < used; at += strlen(bytes + at) + 1) {
        if (count + 1 >= max_words)
            return false;
        words[count++] = bytes + at;
    }
    words[count] = NULL;
    return true;
}

/* For the job that may be submitted in this one's place. */
static void carry_submitted(spank_t sp)
{
    char *bytes = malloc(MAX_COMMAND_BYTES), *out = malloc(SUBMITTED_MAX_BYTES);
    char **words = malloc(MAX_WORDS * sizeof(*words));

    if (bytes && out && words && read_command_line(bytes, MAX_COMMAND_BYTES, words, MAX_WORDS) &&
        submitted_options(words, environ, out, SUBMITTED_MAX_BYTES) == 0)
        (void)spank_job_control_setenv(sp, SUBMITTED_CARRIER, *out ? out : " ", 1);
    free(bytes);
    free(words);
    free(out);
}

/* Where the launcher is not (spank_remote.c). */
static bool starts_in_image(void)
{
    return getenv("_SLURM_SPANK_OPTION_pyxis_container_image") ||
           getenv("_SLURM_SPANK_OPTION_pyxis_container_name");
}

void allocator_init_post_opt(spank_t sp)
{
    const struct settings *options = &plugin_state.options;
    struct settings settings = *options, environment, effective;
    char text[160];

    settings_init(&environment);
    read_environment(&environment);
    settings_merge(&settings, &environment);

    effective = settings;
    settings_merge(&effective, &plugin_state.site.defaults);
    /* Variables may be in a profile, for those jobs that opt in. */
    if (!effective.policy[0] && (options->mode[0] || options->allow[0] ||
                                 options->max_retries >= 0 || options->dry_run >= 0))
        slurm_info("oomretry: the --oom-* options have no effect without --oom-retry");

    if (settings_opted_in(&settings) && starts_in_image())
        slurm_info("oomretry: --oom-retry has no effect on a batch script that starts in a "
                   "container; give --container-image to srun inside of the script instead");

    settings_format(&settings, text, sizeof(text));
    if (text[0])
        (void)spank_job_control_setenv(sp, SETTINGS_CARRIER, text, 1);
    if (settings_opted_in(&effective))
        carry_submitted(sp);
}
