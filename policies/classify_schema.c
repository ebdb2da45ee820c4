/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads one document of signatures and frame rules (docs/signatures.md) and refuses what it does
 * not understand, naming document, signature and key. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/classify_schema.h"

#define FIND_MAX 32

/* --- literals ------------------------------------------------------------------------------- */

static int literal_add(struct oom_signatures *set, const char *text, bool nocase, uint16_t owner)
{
    struct literal *grown =
        realloc(set->literals, (set->literal_count + 1) * sizeof(*set->literals));

    if (!grown)
        return -1;
    set->literals = grown;
    struct literal *literal = &grown[set->literal_count];
    memset(literal, 0, sizeof(*literal));
    literal->text = strdup(text);
    if (!literal->text)
        return -1;
    literal->length = strlen(text);
    literal->nocase = nocase;
    literal->first = owner; /* until the compilation groups them */
    set->literal_count++;
    return 0;
}

static int take_find(const struct reading *r, json_t *object, bool nocase, uint16_t owner)
{
    json_t *find = json_object_get(object, "find");

    if (!json_is_array(find) || json_array_size(find) == 0 || json_array_size(find) > FIND_MAX)
        return oom_schema_refuse(r, "find",
                                 "must be an array of 1 to 32 pieces of text, one of which every "
                                 "matching line holds");
    for (size_t i = 0; i < json_array_size(find); i++) {
        const char *text = json_string_value(json_array_get(find, i));
        if (!text || strlen(text) < 3 || strlen(text) > 200)
            return oom_schema_refuse(r, "find",
                                     "every piece must be a string of 3 to 200 bytes: shorter "
                                     "ones would make every log slow");
        if (strpbrk(text, "\r\n"))
            return oom_schema_refuse(r, "find", "a piece cannot span lines");
        if (literal_add(r->set, text, nocase, owner))
            return oom_errorf(r->err, "%s: out of memory", r->document);
    }
    return 0;
}

/* --- signatures ------------------------------------------------------------------------------ */

static const char *const signature_keys[] = {
    "id",        "kind",        "find",     "nocase",    "match",  "unless",  "numbers",
    "domain",    "phase",       "strength", "direction", "edge",   "within",  "of",
    "framework", "priority",    "why",      "traceback", "weak",   "kill",    "confidence",
    "examples",  "look_alikes", "about",    "settles",   "with",   "without", "own",
    "verbatim",  "shared",      "died",     "comment",   "kernel", "root",    NULL,
};

const char *const oom_schema_domains[] = {"gpu", "host", "shm", "kv_cache", "none", NULL};
const char *const oom_schema_phases[] = {
    "init",       "generation", "forward", "backward", "optimizer", "log_probs", "weight_sync",
    "collective", "checkpoint", "data",    "eval",     "unknown",   NULL,
};
const char *const oom_schema_directions[] = {"lower", "raise", NULL};
const char *const oom_schema_strengths[] = {"marker", "work",     "step",    "scope",
                                            "outer",  "override", "message", NULL};
static const char *const edges[] = {"begin", "end", "toggle", NULL};

static int take_words(const struct reading *r, json_t *object, struct signature *sig)
{
    const char *word = NULL;

    if (oom_schema_take_string(r, object, "domain", &word))
        return -1;
    if (word && oom_domain_parse(word, &sig->domain))
        return oom_schema_refuse_word(r, "domain", word, oom_schema_domains);
    word = NULL;
    if (oom_schema_take_string(r, object, "phase", &word))
        return -1;
    if (word && oom_phase_parse(word, &sig->phase))
        return oom_schema_refuse_word(r, "phase", word, oom_schema_phases);
    word = NULL;
    if (oom_schema_take_string(r, object, "strength", &word))
        return -1;
    if (word && oom_strength_parse(word, &sig->phase_strength))
        return oom_schema_refuse_word(r, "strength", word, oom_schema_strengths);
    word = NULL;
    if (oom_schema_take_string(r, object, "direction", &word))
        return -1;
    if (word && oom_direction_parse(word, &sig->direction))
        return oom_schema_refuse_word(r, "direction", word, oom_schema_directions);
    word = NULL;
    if (oom_schema_take_string(r, object, "edge", &word))
        return -1;
    if (word && strcmp(word, "begin") == 0)
        sig->edge = EDGE_BEGIN;
    else if (word && strcmp(word, "end") == 0)
        sig->edge = EDGE_END;
    else if (word && strcmp(word, "toggle") == 0)
        sig->edge = EDGE_TOGGLE;
    else if (word)
        return oom_schema_refuse_word(r, "edge", word, edges);
    return 0;
}

static int check_lines(const struct reading *r, json_t *object, const char *key)
{
    json_t *lines = json_object_get(object, key);

    if (!lines)
        return 0;
    if (!json_is_array(lines))
        return oom_schema_refuse(r, key, "must be an array of lines");
    for (size_t i = 0; i < json_array_size(lines); i++)
        if (!json_is_string(json_array_get(lines, i)))
            return oom_schema_refuse(r, key, "must hold strings");
    return 0;
}

static int check_sense(const struct reading *r, const struct signature *sig)
{
    if ((sig->kind == SIG_OOM || sig->kind == SIG_WRAPPER || sig->kind == SIG_SUSPECT) &&
        sig->domain == OOM_DOMAIN_NONE)
        return oom_schema_refuse(r, "domain", "is needed: whose memory ran out");
    if (sig->kind == SIG_FRAMEWORK && !sig->framework)
        return oom_schema_refuse(r, "framework", "is needed");
    if (sig->kind == SIG_LOOK_ALIKE && json_is_true(json_object_get(sig->json, "nocase")))
        return oom_schema_refuse(r, "nocase", "is not for look-alikes: list the spellings");
    if (sig->framework && strlen(sig->framework) > 31)
        return oom_schema_refuse(r, "framework", "is longer than 31 bytes");
    return 0;
}

static int take_signature(struct reading *r, json_t *object, const char *family)
{
    struct signature *sig = &r->set->items[r->set->count];
    const char *name = NULL;
    const char *kind = NULL;
    bool nocase = false;
    char *id;

    r->id = "signature";
    if (!json_is_object(object))
        return oom_errorf(r->err, "%s: \"signatures\" must hold objects", r->document);
    if (oom_schema_take_string(r, object, "id", &name))
        return -1;
    if (!name || !*name || strlen(name) > 60)
        return oom_schema_refuse(r, "id", "every signature needs one of at most 60 bytes");
    if (asprintf(&id, "%s.%s", family, name) < 0)
        return oom_errorf(r->err, "%s: out of memory", r->document);
    r->id = sig->id = id;
    snprintf(sig->family, sizeof(sig->family), "%s", family);
    r->set->count++; /* from here on the set frees what it holds */
    for (size_t i = 0; i + 1 < r->set->count; i++)
        if (strcmp(r->set->items[i].id, id) == 0)
            return oom_schema_refuse(r, "id",
                                     "is used twice: here or in a file that was read before");
    if (oom_schema_check_keys(r, object, signature_keys) ||
        oom_schema_take_string(r, object, "kind", &kind))
        return -1;
    if (!kind)
        return oom_schema_refuse(r, "kind", "is needed: oom, look_alike, ...");
    if (oom_sig_kind_parse(kind, &sig->kind))
        return oom_schema_refuse_word(r, "kind", kind, oom_sig_kinds);
    json_t *confidence = json_object_get(object, "confidence");
    if (confidence && (!json_is_number(confidence) || json_number_value(confidence) < 0 ||
                       json_number_value(confidence) > 1))
        return oom_schema_refuse(r, "confidence", "must be a number from 0 to 1");
    sig->confidence = confidence ? json_number_value(confidence) : 0.95;
    sig->json = object;
    sig->with = json_object_get(object, "with");
    sig->without = json_object_get(object, "without");
    sig->within_lines = 3;
    sig->phase_strength = sig->kind == SIG_PHASE ? STRENGTH_MARKER : STRENGTH_SIGNATURE;
    if (sig->kind == SIG_CONTEXT)
        sig->phase_strength = STRENGTH_WORK;
    if (oom_schema_take_bool(r, object, "nocase", &nocase) ||
        oom_schema_take_bool(r, object, "weak", &sig->weak) ||
        oom_schema_take_bool(r, object, "own", &sig->own) ||
        oom_schema_take_bool(r, object, "verbatim", &sig->verbatim) ||
        oom_schema_take_bool(r, object, "comment", &sig->comment) ||
        oom_schema_take_bool(r, object, "kill", &sig->kill) ||
        oom_schema_take_bool(r, object, "shared", &sig->shared) ||
        oom_schema_take_bool(r, object, "kernel", &sig->kernel) ||
        oom_schema_take_bool(r, object, "root", &sig->root) ||
        oom_schema_take_bool(r, object, "died", &sig->died) ||
        oom_schema_take_bool(r, object, "settles", &sig->settles) ||
        oom_schema_take_bool(r, object, "traceback", &sig->traceback) ||
        oom_schema_take_regex_key(r, object, "match", nocase, &sig->match) ||
        oom_schema_take_regex_key(r, object, "unless", nocase, &sig->unless) ||
        oom_schema_take_numbers(r, object, nocase, sig) || take_words(r, object, sig) ||
        oom_schema_take_int(r, object, "within", 1, 100000000, &sig->within_lines) ||
        oom_schema_take_int(r, object, "priority", 0, 1000, &sig->priority) ||
        oom_schema_take_string(r, object, "framework", &sig->framework) ||
        oom_schema_take_string(r, object, "of", &sig->of) ||
        oom_schema_take_string(r, object, "why", &sig->why) || check_lines(r, object, "with") ||
        check_lines(r, object, "without") || check_lines(r, object, "examples") ||
        check_lines(r, object, "look_alikes") || check_sense(r, sig))
        return -1;
    if (sig->kind == SIG_CONTEXT && sig->phase != OOM_PHASE_UNKNOWN) {
        struct frame_rule rule = {
            .phase = sig->phase, .strength = sig->phase_strength, .direction = sig->direction};
        if (oom_schema_rule_append(r, &rule))
            return -1;
        sig->context_rule = (uint16_t)r->set->rule_count;
    }
    return take_find(r, object, nocase, (uint16_t)(r->set->count - 1));
}

/* --- documents -------------------------------------------------------------------------------- */

static const char *const document_keys[] = {"family", "about", "signatures", "frames", NULL};

int oom_schema_add(struct oom_signatures *set, json_t *document, const char *name,
                   struct oom_error *err)
{
    struct reading r = {.set = set, .document = name, .id = "document", .err = err};
    json_t *signatures = json_object_get(document, "signatures");
    json_t *frames = json_object_get(document, "frames");
    const char *family = json_string_value(json_object_get(document, "family"));

    if (!json_is_object(document))
        return oom_errorf(err, "%s: a signature file holds one object", name);
    if (oom_schema_check_keys(&r, document, document_keys))
        return -1;
    if (!family || !*family || strlen(family) > 40)
        return oom_schema_refuse(&r, "family", "every document needs one of at most 40 bytes");
    if ((signatures && !json_is_array(signatures)) || (frames && !json_is_array(frames)))
        return oom_errorf(err, "%s: \"signatures\" and \"frames\" must be arrays", name);
    size_t more = json_array_size(signatures);
    if (set->count + more > SIGNATURES_MAX)
        return oom_errorf(err, "%s: more than %d signatures", name, SIGNATURES_MAX);
    struct signature *grown = realloc(set->items, (set->count + more + 1) * sizeof(*grown));
    if (!grown)
        return oom_errorf(err, "%s: out of memory", name);
    set->items = grown;
    memset(grown + set->count, 0, (more + 1) * sizeof(*grown));
    for (size_t i = 0; i < more; i++)
        if (take_signature(&r, json_array_get(signatures, i), family))
            return -1;
    for (size_t i = 0; i < json_array_size(frames); i++)
        if (oom_schema_take_frame(&r, json_array_get(frames, i), i))
            return -1;
    return 0;
}
