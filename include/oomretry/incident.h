/* SPDX-License-Identifier: Apache-2.0
 *
 * The words of the project as types: domain, phase, direction, numbers, and the incident, which
 * is the diagnosis of one attempt. Plain data: no file, clock, network or database behind it. */
#ifndef OOMRETRY_INCIDENT_H
#define OOMRETRY_INCIDENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oomretry/error.h"

/* Whose memory ran out. */
enum oom_domain {
    OOM_DOMAIN_NONE,
    OOM_DOMAIN_GPU,
    OOM_DOMAIN_HOST,
    OOM_DOMAIN_SHM,
    OOM_DOMAIN_KV_CACHE, /* an inference server's pool */
};

/* What the job was doing. A colocated engine that wakes up is weight_sync, optimizer code inside
 * an initialisation is init, the forward pass of log-probs is log_probs. */
enum oom_phase {
    OOM_PHASE_UNKNOWN,
    OOM_PHASE_INIT,
    OOM_PHASE_GENERATION,
    OOM_PHASE_FORWARD,
    OOM_PHASE_BACKWARD,
    OOM_PHASE_OPTIMIZER,
    OOM_PHASE_LOG_PROBS,
    OOM_PHASE_WEIGHT_SYNC,
    OOM_PHASE_COLLECTIVE,
    OOM_PHASE_CHECKPOINT,
    OOM_PHASE_DATA,
    OOM_PHASE_EVAL,
};

/* Which way the message itself asks to move the setting; most do not say. */
enum oom_direction {
    OOM_DIRECTION_NONE,
    OOM_DIRECTION_LOWER,
    OOM_DIRECTION_RAISE,
};

/* The names used in JSON, policies and messages. The parsers return -1 for an unknown name. */
const char *oom_domain_name(enum oom_domain domain);
const char *oom_phase_name(enum oom_phase phase);
const char *oom_direction_name(enum oom_direction direction); /* NULL for NONE */
int oom_domain_parse(const char *name, enum oom_domain *out);
int oom_phase_parse(const char *name, enum oom_phase *out);
int oom_direction_parse(const char *name, enum oom_direction *out); /* NULL and "" are NONE */

#define OOM_UNSTATED INT64_C(-1)

/* Bytes that the message states; OOM_UNSTATED where it does not. */
struct oom_numbers {
    int64_t tried_bytes;
    int64_t total_bytes;
    int64_t free_bytes;
    int64_t in_use_bytes;
    int64_t allocated_bytes;
    int64_t reserved_unallocated_bytes;
};

void oom_numbers_init(struct oom_numbers *numbers);

/* tried - free, or OOM_UNSTATED when either is not stated. 0 when it would have fitted. */
int64_t oom_numbers_short_bytes(const struct oom_numbers *numbers);

/* True when reserved-but-unallocated memory is at least what was tried: fragmentation. */
bool oom_numbers_fragmented(const struct oom_numbers *numbers);

/* One line of a log that mattered. `line` counts from 1 by '\n', 0 when unknown. Strings are
 * owned; file, node, signature and why may be NULL. */
struct oom_line {
    char *file;
    int64_t line;
    char *text;      /* control characters replaced, bounded, secrets redacted */
    int rank;        /* -1: not stated */
    char *node;      /* from a prefix of the line */
    char *signature; /* id of the signature that matched */
    char *why;       /* for secondary and discounted lines: why it does not decide */
};

struct oom_incident {
    bool oom;
    enum oom_domain domain;
    enum oom_phase phase;
    char framework[32]; /* "" when not recognised */
    enum oom_direction direction;
    double confidence; /* 0..1 */
    struct oom_numbers numbers;
    struct oom_line cause; /* cause.text is NULL when nothing decided */
    struct oom_line *secondary;
    size_t secondary_count;
    int own_restarts; /* how often the framework began again by itself, unchanged, after it ran out
                       */
    char program[96]; /* what ran out, where it is not the training: "python3 export.py"; else "" */
    char summary[256];  /* one sentence: the verdict */
    char evidence[256]; /* which evidence decided: log, cgroup, kernel, scheduler */
};

void oom_incident_init(struct oom_incident *incident);
void oom_incident_free(struct oom_incident *incident); /* contents only; leaves it initialised */

/* The JSON of `oomctl diagnose --json`: numbers that are not stated are absent. New reference,
 * NULL when out of memory. */
json_t *oom_incident_to_json(const struct oom_incident *incident);

/* The reverse; unknown keys are ignored, wrong types are an error. */
int oom_incident_from_json(const json_t *json, struct oom_incident *out, struct oom_error *err);

#endif
