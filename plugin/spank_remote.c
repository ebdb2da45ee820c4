/* SPDX-License-Identifier: Apache-2.0
 *
 * In slurmstepd, as root, before any task is forked: is this the batch step of a job that opted
 * in? Then its script is made to start under the supervisor. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spank_plugin.h"

/* What the supervisor finds in the job's environment. A job that is not opted in must have none
 * of them, even when it was submitted from inside one that is. */
static const char *const job_variables[] = {
    "OOMRETRY_POLICY",  "OOMRETRY_MAX_RETRIES", "OOMRETRY_MODE",         "OOMRETRY_ALLOW",
    "OOMRETRY_DRY_RUN", "OOMRETRY_SOCKET",      "OOMRETRY_SCRIPT_BYTES", "OOMRETRY_SUBMITTED",
};

#define SUBMITTED_VARIABLE "SLURM_SPANK_" SUBMITTED_CARRIER

/* Carriers of the options. Left in the environment they would opt in every job that this job
 * submits. */
static const char *const carriers[] = {
    "SLURM_SPANK_" SETTINGS_CARRIER,
    SUBMITTED_VARIABLE,
    "SLURM_SPANK__SLURM_SPANK_OPTION_oomretry_oom_retry",
    "SLURM_SPANK__SLURM_SPANK_OPTION_oomretry_oom_max_retries",
    "SLURM_SPANK__SLURM_SPANK_OPTION_oomretry_oom_mode",
    "SLURM_SPANK__SLURM_SPANK_OPTION_oomretry_oom_allow",
    "SLURM_SPANK__SLURM_SPANK_OPTION_oomretry_oom_dry_run",
};

/* The kernel reads a #! line of at most 127 bytes on old systems. */
#define SHEBANG_MAX_BYTES 127

static void unset_all(spank_t sp, const char *const *names, size_t count)
{
    char value[2];

    for (size_t i = 0; i < count; i++)
        if (spank_getenv(sp, names[i], value, sizeof(value)) != ESPANK_ENV_NOEXIST)
            (void)spank_unsetenv(sp, names[i]);
}
#define UNSET_ALL(sp, names) unset_all((sp), (names), sizeof(names) / sizeof((names)[0]))

static void export_number(spank_t sp, const char *name, long long number)
{
    char text[32];

    snprintf(text, sizeof(text), "%lld", number);
    (void)spank_setenv(sp, name, text, 1);
}

static void export_settings(spank_t sp, const struct settings *settings, const char *submitted,
                            off_t script_bytes)
{
    const struct site *site = &plugin_state.site;

    (void)spank_setenv(sp, "OOMRETRY_POLICY", settings->policy, 1);
    if (settings->mode[0])
        (void)spank_setenv(sp, "OOMRETRY_MODE", settings->mode, 1);
    if (settings->allow[0])
        (void)spank_setenv(sp, "OOMRETRY_ALLOW", settings->allow, 1);
    if (settings->max_retries >= 0)
        export_number(sp, "OOMRETRY_MAX_RETRIES", settings->max_retries);
    if (settings->dry_run > 0)
        (void)spank_setenv(sp, "OOMRETRY_DRY_RUN", "1", 1);
    export_number(sp, "OOMRETRY_SCRIPT_BYTES", (long long)script_bytes);
    if (submitted[0])
        (void)spank_setenv(sp, "OOMRETRY_SUBMITTED", submitted, 1);
    (void)spank_setenv(sp, "OOMRETRY_SOCKET", site->socket, 1);
    if (site->config[0])
        (void)spank_setenv(sp, "OOMRETRY_CONFIG", site->config, 0);
}

/* Pyxis executes the batch script inside of the image, where the launcher is not. */
static bool starts_in_image(spank_t sp)
{
    static const char *const options[] = {
        "SLURM_SPANK__SLURM_SPANK_OPTION_pyxis_container_image",
        "SLURM_SPANK__SLURM_SPANK_OPTION_pyxis_container_name",
    };
    char value[2];

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (spank_getenv(sp, options[i], value, sizeof(value)) != ESPANK_ENV_NOEXIST)
            return true;
    return false;
}

/* Slurm's own containers start something else that gets at the script later. */
static bool is_batch_script(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && strcmp(slash, "/slurm_script") == 0;
}

/* Both programs are there and the owner may run them. */
static bool supervisor_usable(spank_t sp, const char *launcher, uid_t uid)
{
    char oomrun[sizeof(plugin_state.site.prefix) + 16];
    gid_t gid, *groups = NULL;
    int group_count = 0;

    if (spank_get_item(sp, S_JOB_GID, &gid) != ESPANK_SUCCESS)
        return false;
    if (spank_get_item(sp, S_JOB_SUPPLEMENTARY_GIDS, &groups, &group_count) != ESPANK_SUCCESS)
        group_count = 0;
    snprintf(oomrun, sizeof(oomrun), "%s/bin/oomrun", plugin_state.site.prefix);
    return script_may_execute(launcher, uid, gid, groups, group_count) &&
           script_may_execute(oomrun, uid, gid, groups, group_count);
}

static void supervise(spank_t sp, const struct settings *settings, const char *submitted)
{
    char launcher[sizeof(plugin_state.site.prefix) + 32], line[sizeof(launcher) + 4];
    off_t script_bytes = 0;
    uint32_t job = 0;
    char **argv = NULL;
    int argc = 0;
    uid_t uid;

    (void)spank_get_item(sp, S_JOB_ID, &job);
    snprintf(launcher, sizeof(launcher), "%s/libexec/oomretry/oomstart", plugin_state.site.prefix);
    snprintf(line, sizeof(line), "#!%s\n", launcher);
    if (strlen(line) > SHEBANG_MAX_BYTES || strlen(line) >= sizeof(plugin_state.launcher_line)) {
        slurm_info("oomretry: job %u runs unsupervised: prefix too long for a #! line", job);
        return;
    }
    if (spank_get_item(sp, S_JOB_UID, &uid) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_ARGV, &argc, &argv) != ESPANK_SUCCESS || argc < 1 || !argv[0])
        return;
    if (!is_batch_script(argv[0]) || starts_in_image(sp)) {
        slurm_info("oomretry: job %u runs unsupervised: its script starts in a container", job);
        return;
    }
    if (!supervisor_usable(sp, launcher, uid)) {
        slurm_info("oomretry: job %u runs unsupervised: uid %u cannot execute %s and oomrun", job,
                   (unsigned)uid, launcher);
        return;
    }
    if (script_prepend(argv[0], uid, line, &script_bytes) != 0) {
        plugin_state.script_gone = errno == ENOENT;
        slurm_info("oomretry: job %u runs unsupervised: %s: %s", job, argv[0], strerror(errno));
        return;
    }
    if ((size_t)snprintf(plugin_state.script, sizeof(plugin_state.script), "%s", argv[0]) >=
        sizeof(plugin_state.script))
        plugin_state.script[0] = '\0';
    memcpy(plugin_state.launcher_line, line, strlen(line) + 1);
    export_settings(sp, settings, submitted, script_bytes);
    report_batch_start(sp, argv[0], script_bytes);
}

void remote_init_post_opt(spank_t sp)
{
    struct settings settings = plugin_state.options, carried;
    uint32_t step = NO_VAL;
    char text[256], submitted[SUBMITTED_MAX_BYTES];

    if (spank_get_item(sp, S_JOB_STEPID, &step) != ESPANK_SUCCESS)
        return;
    if (step != SLURM_BATCH_SCRIPT) {
        /* Steps inherit the batch script's environment. */
        plugin_state.opted_in =
            spank_getenv(sp, "OOMRETRY_POLICY", text, sizeof(text)) == ESPANK_SUCCESS;
        return;
    }
    settings_init(&carried);
    if (spank_getenv(sp, carriers[0], text, sizeof(text)) == ESPANK_SUCCESS)
        settings_read(&carried, text);
    settings_merge(&settings, &carried);
    settings_merge(&settings, &plugin_state.site.defaults);

    if (spank_getenv(sp, SUBMITTED_VARIABLE, submitted, sizeof(submitted)) != ESPANK_SUCCESS)
        submitted[0] = '\0';
    plugin_state.opted_in = settings_opted_in(&settings);
    UNSET_ALL(sp, job_variables);
    UNSET_ALL(sp, carriers);
    if (plugin_state.opted_in)
        supervise(sp, &settings, submitted);
}
