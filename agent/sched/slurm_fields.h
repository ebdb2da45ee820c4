/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading what scontrol and squeue print. Pure text functions. */
#ifndef AGENT_SCHED_SLURM_FIELDS_H
#define AGENT_SCHED_SLURM_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oomretry/error.h"

/* The value of Key=Value in one line of `scontrol -o show`; false when the key is not there. */
bool slurm_field(const char *text, const char *key, char *out, size_t size);

/* "100M", "2G", "1.50T", "500" (MiB) -> MiB; -1 for anything else. */
int64_t slurm_mib(const char *text);

/* A job in that state has ended. All other words mean that it has not: Slurm also shows what is
 * happening to a job (STOPPED, SIGNALING, SPECIAL_EXIT, ...) in the place of its state. */
bool slurm_state_is_over(const char *state);

/* Makes "12_[3]", as squeue shows an array of which one task is pending, "12_3", and takes the
 * limit of running tasks away ("12_[0-3%2]"), which is no part of an id. In place. */
void slurm_plain_id(char *id);

/* The words of Slurm's programs say that the controller does not answer at present. */
bool slurm_is_away(const struct oom_error *err);

#endif
