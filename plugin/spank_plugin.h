/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of the SPANK plugin. It is mapped into sbatch, srun, slurmd and slurmstepd of every job,
 * so it links libc only, keeps no thread, handler or descriptor, waits for nothing, and reports
 * every trouble as "do nothing": the job runs as it would without the plugin. */
#ifndef PLUGIN_SPANK_PLUGIN_H
#define PLUGIN_SPANK_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <slurm/spank.h>

/* Slurm's own numbers for steps that are not srun steps (slurm.h; spank.h leaves them out). */
#ifndef SLURM_BATCH_SCRIPT
#define SLURM_BATCH_SCRIPT 0xfffffffb
#endif
#ifndef SLURM_EXTERN_CONT
#define SLURM_EXTERN_CONT 0xfffffffc
#endif
#ifndef SLURM_INTERACTIVE_STEP
#define SLURM_INTERACTIVE_STEP 0xfffffffa
#endif
#ifndef NO_VAL
#define NO_VAL 0xfffffffe
#endif

/* --- settings: what the owner and the site asked for (spank_settings.c) --- */

/* "" and -1 are unset. */
struct settings {
    char policy[33]; /* a policy's name, "auto" or "off" */
    char mode[12];
    char allow[12];
    int max_retries;
    int dry_run;
};

void settings_init(struct settings *settings);

/* Checks and stores one setting; the keys are those of settings_format. A NULL value stands for
 * an option given without one. -1 leaves `settings` alone and puts a sentence into `why`. */
int settings_set(struct settings *settings, const char *key, const char *value, char *why,
                 size_t why_size);

/* Fills what is unset in `settings` from `from`. */
void settings_merge(struct settings *settings, const struct settings *from);

bool settings_opted_in(const struct settings *settings);

/* "policy=auto max_retries=3": the set ones, as words. Reading skips words that are not valid. */
void settings_format(const struct settings *settings, char *text, size_t size);
void settings_read(struct settings *settings, const char *text);

/* --- plugstack.conf arguments (spank_site.c) --- */

struct site {
    struct settings defaults;
    char prefix[100]; /* the installed tree: bounded because it goes into a #! line */
    char socket[100]; /* the node agent's; bounded by sun_path */
    char config[256]; /* "" is the programs' own default */
};

/* `complain` is called for each argument that is not understood; NULL ignores them. */
void site_read(struct site *site, int argc, char **argv, void (*complain)(const char *text));

/* --- one process of Slurm: what its callbacks share (spank_options.c) --- */

struct plugin_state {
    struct site site;
    struct settings options; /* from option callbacks */
    bool opted_in;           /* of the job, known in the remote context after init_post_opt */
    char script[512];        /* of the batch step that starts under the supervisor; "" none */
    char launcher_line[128]; /* its new first line */
    bool script_gone;        /* there is none to execute: slurmd was killed at a bad moment */
};
extern struct plugin_state plugin_state;

/* The name of the job-control variable that carries the settings past --export=NONE. In the job
 * it arrives with SLURM_SPANK_ in front. */
#define SETTINGS_CARRIER "OOMRETRY_SETTINGS"

/* The same for the options that the job was submitted with; " " when there were none. */
#define SUBMITTED_CARRIER   "OOMRETRY_SUBMITTED"
#define SUBMITTED_MAX_BYTES 8192

/* sbatch's command line and environment (both end with NULL) as "--signal=USR1@60 --exclusive":
 * blank, '%' and control characters in a value are %XX, and " :" is between the components of a
 * heterogeneous job. -1 when the command line is not understood, or does not fit. Pure
 * (spank_submitted.c). */
int submitted_options(char *const *argv, char *const *environment, char *out, size_t size);

void options_register(spank_t sp);

/* --- contexts --- */

void allocator_init_post_opt(spank_t sp);
void remote_init_post_opt(spank_t sp);
void remote_task_post_fork(spank_t sp);
void remote_task_exit(spank_t sp);
void remote_exit(void);

/* --- the batch script (spank_script.c) --- */

/* Puts `line` in front of the regular file `path`, which belongs to `uid`, keeping owner and mode:
 * a new file that is renamed over the old one, so a reader sees one or the other. */
int script_prepend(const char *path, uid_t uid, const char *line, off_t *original_bytes);

/* True when the regular file `path` still begins with `line`. */
bool script_begins_with(const char *path, const char *line);

/* True when a process of that user and group may execute `path`, judged by the mode bits. */
bool script_may_execute(const char *path, uid_t uid, gid_t gid, const gid_t *groups, int count);

/* --- the memory cgroup of a process (spank_cgroup.c) --- */

struct cgroup {
    char path[512]; /* "" unknown */
    bool unified;   /* v2 */
};

struct cgroup_counters {
    int64_t oom_kill; /* -1: not readable */
    int64_t peak_bytes;
    int64_t limit_bytes; /* -1: none, or not readable */
};

void cgroup_of_process(pid_t pid, struct cgroup *cgroup);
void cgroup_read(const struct cgroup *cgroup, struct cgroup_counters *counters);

/* --- reports to the node agent (spank_report.c); the format is in report.h --- */

void report_batch_start(spank_t sp, const char *script, off_t script_bytes);
void report_task_exit(spank_t sp, const struct cgroup *cgroup);

#endif
