/* SPDX-License-Identifier: Apache-2.0
 *
 * A policy is everything known about one framework: how to recognise it, how its command line
 * reads an override, its knobs, its ladders. It is JSON (schema in docs/policies.md), kept in
 * SQLite by the store; here it is a validated, read-only object. Pure. */
#ifndef OOMRETRY_POLICY_H
#define OOMRETRY_POLICY_H

#include "oomretry/incident.h"

struct oom_policy;

enum { OOM_OVERRIDES_ROOM = 288 };

/* How the framework's parser reads an override (design: parser families). */
enum oom_family {
    OOM_FAMILY_ARGPARSE,  /* --k v, --k=v; last wins */
    OOM_FAMILY_HYDRA,     /* key=value, ++key=value for keys that the YAML lacks */
    OOM_FAMILY_OMEGACONF, /* LLaMA-Factory: key=value behind a YAML, --key value without one */
    OOM_FAMILY_TYRO,      /* torchtitan: --section.key value; booleans --x.y / --x.no-y */
    OOM_FAMILY_HF,        /* HfArgumentParser: --a_b and --a-b are one flag; --flag true */
    OOM_FAMILY_AXOLOTL,   /* like HF, but launcher arguments stand behind a lone -- */
    OOM_FAMILY_ENV,       /* only environment variables */
};

int oom_family_parse(const char *name, enum oom_family *out);

/* Parses and validates. `name` is what errors call the document. NULL and err on failure; the
 * error names rung and key, with the nearest known name where one is near. */
struct oom_policy *oom_policy_from_json(const json_t *document, const char *name,
                                        struct oom_error *err);
void oom_policy_free(struct oom_policy *policy);

const char *oom_policy_name(const struct oom_policy *policy);
enum oom_family oom_policy_family(const struct oom_policy *policy);
const json_t *oom_policy_json(const struct oom_policy *policy); /* borrowed: the document */

/* Where it stands when several policies are asked whether they recognise a command: lower first,
 * the general ones last. Ties go by name. */
int oom_policy_order(const struct oom_policy *policy);

/* How a policy treats rungs that change what is trained. */
enum oom_consent {
    OOM_CONSENT_ASK,   /* its owner says so with --oom-allow=training */
    OOM_CONSENT_GIVEN, /* taken for granted */
    OOM_CONSENT_NEVER, /* not even when the owner says so */
};
enum oom_consent oom_policy_consent(const struct oom_policy *policy);

/* The most changed attempts of a lineage, and how many there are when its owner names no number;
 * -1: the site's. */
int oom_policy_max_retries(const struct oom_policy *policy);

/* The version under which the store keeps it; 0 for a file. Shown as "relax@3". */
int oom_policy_version(const struct oom_policy *policy);
void oom_policy_set_version(struct oom_policy *policy, int version);

/* The overrides that were applied to that version: "partition=small@2, user=alice@1"; "" none. */
const char *oom_policy_overrides(const struct oom_policy *policy);
void oom_policy_set_overrides(struct oom_policy *policy, const char *overrides);

/* A knob as rewrite needs it. */
struct oom_knob {
    const char *name;
    const char *type;           /* "int", "float", "bool", "switch", "string", "enum", "json" */
    const char *default_value;  /* NULL: none */
    const char *const *aliases; /* other spellings of the same flag, NULL-terminated; or NULL */
    bool negative;              /* a switch whose presence turns something off */
};

size_t oom_policy_knob_count(const struct oom_policy *policy);
const struct oom_knob *oom_policy_knob_at(const struct oom_policy *policy, size_t index);
/* By name or alias; for families that treat '-' and '_' alike, either. NULL: not a knob. */
const struct oom_knob *oom_policy_knob(const struct oom_policy *policy, const char *name);

/* True when this command (module or script path and arguments, without launchers) is this
 * framework's training program. `program` is "relax.entrypoints.train", "train.py", "trl sft". */
bool oom_policy_recognises(const struct oom_policy *policy, const char *program,
                           const char *const *args, size_t args_count);
/* True when the policy says that this program is the framework's but does not train ("trl env"). */
bool oom_policy_excludes(const struct oom_policy *policy, const char *program);

#endif
