/* SPDX-License-Identifier: Apache-2.0
 *
 * A submission through slurmrestd, where the site prefers it to sbatch.
 *
 * slurm_rest_fields.c: which sbatch option is which member, in each version of the API.
 * slurm_rest_body.c: the request and its answer, no network.
 * slurm_rest.c: the exchange.
 *
 * slurmrestd reads no #SBATCH lines, runs no SPANK and no cli_filter plugins. So the lines are read
 * here, and whatever cannot be said in the version that is spoken is an error: the caller then uses
 * sbatch, and no option is ever lost on the way. */
#ifndef AGENT_SCHED_SLURM_REST_H
#define AGENT_SCHED_SLURM_REST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/sched/sched.h"
#include "oomretry/error.h"

enum { SLURM_REST_OLDEST = 38, SLURM_REST_NEWEST = 44 }; /* of v0.0.N: those with a table */

/* ---- slurm_rest_fields.c */

/* The long name of an sbatch option given by letter or by name; NULL: no version can say it. */
const char *slurm_rest_option(char letter, const char *name, size_t length);

/* Does it stand alone ("--hold")? */
bool slurm_rest_is_flag(const char *option);

/* Removes from `chosen` (option -> value) what the option replaces, and sets it. */
int slurm_rest_choose(json_t *chosen, const char *option, const char *value);

/* Writes the chosen options as members of a job of that version. */
int slurm_rest_members(const json_t *chosen, int version, json_t *job, struct oom_error *err);

/* Members that no option names. */
bool slurm_rest_takes_arguments(int version);
bool slurm_rest_environment_is_object(int version);

/* ---- slurm_rest_body.c */

struct slurm_rest_job {
    const char *script;
    size_t script_length;
    const char *environment; /* NAME=VALUE, NUL-separated */
    size_t environment_length;
    const struct sched_submission *submission; /* options, args, directory, hold */
};

/* The body of POST /slurm/v0.0.N/job/submit, or NULL. */
json_t *slurm_rest_body(int version, const struct slurm_rest_job *job, struct oom_error *err);

/* The newest version with a table among those that GET /openapi lists; -1. */
int slurm_rest_version(const json_t *openapi, struct oom_error *err);

/* The new job's number. -1: refused, err quotes errors[]. *ignored: it was accepted, but a member
 * was not understood. */
long long slurm_rest_reply(const json_t *reply, bool *ignored, struct oom_error *err);

/* ---- slurm_rest.c */

/* `url` as in oomretry.conf: http://…, https://… or unix:/path. The caller is the owner, and the
 * token is his own, for a minute. On -1 it is not known whether the job exists. */
int slurm_rest_submit(const char *url, const struct sched_submission *submission, char *new_job,
                      size_t size, struct oom_error *err);

#endif
