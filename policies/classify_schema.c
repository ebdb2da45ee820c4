/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads one document of signatures and frame rules (docs/signatures.md) and refuses what it does
 * not understand, naming document, signature and key. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/classify_private.h"

#define FIND_MAX  32
#define REGEX_MAX 1024

struct reading {
    struct oom_signatures *set;
    const char *document;
    const char *id; /* of the signature or rule being read */
    struct oom_error *err;
};

static int refuse(const struct reading *r, const char *key, const char *reason)
{
    return oom_errorf(r->err, "%s: %s: \"%s\": %s", r->document, r->id, key, reason);
}

/* --- unknown keys --------------------------------------------------------------------------- */

static size_t edit_distance(const char *a, const char *b)
{
    size_t row[40];
    size_t m = strlen(a);
    size_t n = strlen(b);

    if (m >= 40 || n >= 40)
        return 99;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            size_t best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = change < best ? change : best;
        }
    }
    return row[n];
}

static int check_keys(const struct reading *r, json_t *object, const char *const *known)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        const char *near = NULL;
        size_t near_distance = 3;
        bool found = false;
        for (const char *const *k = known; *k; k++) {
            size_t distance = edit_distance(key, *k);
            found |= distance == 0;
            if (distance < near_distance) {
                near = *k;
                near_distance = distance;
            }
        }
        if (found)
            continue;
        if (near)
            return oom_errorf(r->err, "%s: %s: unknown key \"%s\" (did you mean \"%s\"?)",
                              r->document, r->id, key, near);
        return oom_errorf(r->err, "%s: %s: unknown key \"%s\"", r->document, r->id, key);
    }
    return 0;
}

/* --- values --------------------------------------------------------------------------------- */

static int take_string(const struct reading *r, json_t *object, const char *key, const char **out)
{
    json_t *value = json_object_get(object, key);

    if (!value)
        return 0;
    if (!json_is_string(value))
        return refuse(r, key, "must be a string");
    *out = json_string_value(value);
    return 0;
}

static int take_bool(const struct reading *r, json_t *object, const char *key, bool *out)
{
    json_t *value = json_object_get(object, key);

    if (!value)
        return 0;
    if (!json_is_boolean(value))
        return refuse(r, key, "must be true or false");
    *out = json_is_true(value);
    return 0;
}

static int take_int(const struct reading *r, json_t *object, const char *key, int low, int high,
                    int *out)
{
    json_t *value = json_object_get(object, key);

    if (!value)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < low ||
        json_integer_value(value) > high)
        return oom_errorf(r->err, "%s: %s: \"%s\": must be a whole number from %d to %d",
                          r->document, r->id, key, low, high);
    *out = (int)json_integer_value(value);
    return 0;
}

/* The shorthands of the schema: a size with or without its unit, and a whole number. */
static int expand(const char *pattern, char *out, size_t size)
{
    static const struct {
        const char *name;
        const char *text;
    } macros[] = {
        {"%size%", "\\d[\\d.,]*\\s?(?:[KMGTPE]i?[Bb]|[Bb]ytes|[KMGT]\\b|B\\b)?"},
        {"%int%", "\\d+"},
    };
    size_t n = 0;

    while (*pattern) {
        const char *text = NULL;
        for (size_t i = 0; i < sizeof(macros) / sizeof(*macros) && !text; i++)
            if (strncmp(pattern, macros[i].name, strlen(macros[i].name)) == 0) {
                text = macros[i].text;
                pattern += strlen(macros[i].name);
            }
        if (!text) {
            if (n + 2 > size)
                return -1;
            out[n++] = *pattern++;
            continue;
        }
        if (n + strlen(text) + 1 > size)
            return -1;
        memcpy(out + n, text, strlen(text));
        n += strlen(text);
    }
    out[n] = '\0';
    return 0;
}

static int take_regex(const struct reading *r, const char *key, const char *pattern, bool nocase,
                      pcre2_code **out)
{
    char expanded[REGEX_MAX * 2];
    int code;
    PCRE2_SIZE offset;

    if (strlen(pattern) > REGEX_MAX || expand(pattern, expanded, sizeof(expanded)))
        return refuse(r, key, "is too long");
    *out = pcre2_compile((PCRE2_SPTR)expanded, PCRE2_ZERO_TERMINATED,
                         (nocase ? PCRE2_CASELESS : 0) | PCRE2_NEVER_BACKSLASH_C, &code, &offset,
                         NULL);
    if (!*out) {
        char why[160];
        pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof(why));
        return oom_errorf(r->err, "%s: %s: \"%s\": %s at character %zu of %s", r->document, r->id,
                          key, why, offset, expanded);
    }
    /* Without a JIT the interpreter does, under the same match limit. */
    pcre2_jit_compile(*out, PCRE2_JIT_COMPLETE);
    return 0;
}

static int take_regex_key(const struct reading *r, json_t *object, const char *key, bool nocase,
                          pcre2_code **out)
{
    const char *pattern = NULL;

    if (take_string(r, object, key, &pattern))
        return -1;
    return pattern ? take_regex(r, key, pattern, nocase, out) : 0;
}

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
        return refuse(r, "find",
                      "must be an array of 1 to 32 pieces of text, one of which every "
                      "matching line holds");
    for (size_t i = 0; i < json_array_size(find); i++) {
        const char *text = json_string_value(json_array_get(find, i));
        if (!text || strlen(text) < 3 || strlen(text) > 200)
            return refuse(r, "find",
                          "every piece must be a string of 3 to 200 bytes: shorter "
                          "ones would make every log slow");
        if (strpbrk(text, "\r\n"))
            return refuse(r, "find", "a piece cannot span lines");
        if (literal_add(r->set, text, nocase, owner))
            return oom_errorf(r->err, "%s: out of memory", r->document);
    }
    return 0;
}

/* --- signatures ------------------------------------------------------------------------------ */

static const char *const signature_keys[] = {
    "id",        "kind",        "find",     "nocase",    "match", "unless",  "numbers",
    "domain",    "phase",       "strength", "direction", "edge",  "within",  "of",
    "framework", "priority",    "why",      "traceback", "weak",  "kill",    "confidence",
    "examples",  "look_alikes", "about",    "settles",   "with",  "without", NULL,
};

static int take_words(const struct reading *r, json_t *object, struct signature *sig)
{
    const char *word = NULL;

    if (take_string(r, object, "domain", &word))
        return -1;
    if (word && oom_domain_parse(word, &sig->domain))
        return refuse(r, "domain", "must be gpu, host, shm, kv_cache or none");
    word = NULL;
    if (take_string(r, object, "phase", &word))
        return -1;
    if (word && oom_phase_parse(word, &sig->phase))
        return refuse(r, "phase",
                      "is no phase: init, generation, forward, backward, optimizer, "
                      "log_probs, weight_sync, collective, checkpoint, data, eval, "
                      "unknown");
    word = NULL;
    if (take_string(r, object, "strength", &word))
        return -1;
    if (word && oom_strength_parse(word, &sig->phase_strength))
        return refuse(r, "strength",
                      "must be marker, work, step, scope, outer, override or "
                      "message");
    word = NULL;
    if (take_string(r, object, "direction", &word))
        return -1;
    if (word && oom_direction_parse(word, &sig->direction))
        return refuse(r, "direction", "must be lower or raise");
    word = NULL;
    if (take_string(r, object, "edge", &word))
        return -1;
    if (word && strcmp(word, "begin") == 0)
        sig->edge = EDGE_BEGIN;
    else if (word && strcmp(word, "end") == 0)
        sig->edge = EDGE_END;
    else if (word && strcmp(word, "toggle") == 0)
        sig->edge = EDGE_TOGGLE;
    else if (word)
        return refuse(r, "edge", "must be begin, end or toggle");
    return 0;
}

static int take_numbers(const struct reading *r, json_t *object, bool nocase, struct signature *sig)
{
    json_t *numbers = json_object_get(object, "numbers");

    if (!numbers)
        return 0;
    if (!json_is_array(numbers) || json_array_size(numbers) > SIG_NUMBERS_MAX)
        return refuse(r, "numbers", "must be an array of at most 6 expressions");
    for (size_t i = 0; i < json_array_size(numbers); i++) {
        const char *pattern = json_string_value(json_array_get(numbers, i));
        if (!pattern)
            return refuse(r, "numbers", "must hold strings");
        if (take_regex(r, "numbers", pattern, nocase, &sig->numbers[sig->number_count]))
            return -1;
        sig->number_count++;
    }
    return 0;
}

static int check_lines(const struct reading *r, json_t *object, const char *key)
{
    json_t *lines = json_object_get(object, key);

    if (!lines)
        return 0;
    if (!json_is_array(lines))
        return refuse(r, key, "must be an array of lines");
    for (size_t i = 0; i < json_array_size(lines); i++)
        if (!json_is_string(json_array_get(lines, i)))
            return refuse(r, key, "must hold strings");
    return 0;
}

static int check_sense(const struct reading *r, const struct signature *sig)
{
    if ((sig->kind == SIG_OOM || sig->kind == SIG_WRAPPER || sig->kind == SIG_SUSPECT) &&
        sig->domain == OOM_DOMAIN_NONE)
        return refuse(r, "domain", "is needed: whose memory ran out");
    if (sig->kind == SIG_FRAMEWORK && !sig->framework)
        return refuse(r, "framework", "is needed");
    if (sig->kind == SIG_LOOK_ALIKE && json_is_true(json_object_get(sig->json, "nocase")))
        return refuse(r, "nocase", "is not for look-alikes: list the spellings");
    if (sig->framework && strlen(sig->framework) > 31)
        return refuse(r, "framework", "is too long");
    return 0;
}

static int rule_append(const struct reading *r, const struct frame_rule *rule)
{
    if (r->set->rule_count >= FRAME_RULES_MAX)
        return oom_errorf(r->err, "%s: too many frame rules", r->document);
    struct frame_rule *grown =
        realloc(r->set->rules, (r->set->rule_count + 1) * sizeof(*r->set->rules));
    if (!grown)
        return oom_errorf(r->err, "%s: out of memory", r->document);
    r->set->rules = grown;
    grown[r->set->rule_count++] = *rule;
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
    if (take_string(r, object, "id", &name))
        return -1;
    if (!name || !*name || strlen(name) > 60)
        return refuse(r, "id", "every signature needs one of at most 60 bytes");
    if (asprintf(&id, "%s.%s", family, name) < 0)
        return oom_errorf(r->err, "%s: out of memory", r->document);
    r->id = sig->id = id;
    snprintf(sig->family, sizeof(sig->family), "%s", family);
    r->set->count++; /* from here on the set frees what it holds */
    for (size_t i = 0; i + 1 < r->set->count; i++)
        if (strcmp(r->set->items[i].id, id) == 0)
            return refuse(r, "id", "is used twice");
    if (check_keys(r, object, signature_keys) || take_string(r, object, "kind", &kind))
        return -1;
    if (!kind || oom_sig_kind_parse(kind, &sig->kind))
        return refuse(r, "kind",
                      "must be oom, wrapper, suspect, look_alike, recovered, detail, "
                      "secondary, failure, progress, finished, restart, phase, "
                      "context, quote, framework, traceback or frame");
    json_t *confidence = json_object_get(object, "confidence");
    if (confidence && (!json_is_number(confidence) || json_number_value(confidence) < 0 ||
                       json_number_value(confidence) > 1))
        return refuse(r, "confidence", "must be a number from 0 to 1");
    sig->confidence = confidence ? json_number_value(confidence) : 0.95;
    sig->json = object;
    sig->with = json_object_get(object, "with");
    sig->without = json_object_get(object, "without");
    sig->within_lines = 3;
    sig->phase_strength = sig->kind == SIG_PHASE ? STRENGTH_MARKER : STRENGTH_SIGNATURE;
    if (sig->kind == SIG_CONTEXT)
        sig->phase_strength = STRENGTH_WORK;
    if (take_bool(r, object, "nocase", &nocase) || take_bool(r, object, "weak", &sig->weak) ||
        take_bool(r, object, "kill", &sig->kill) ||
        take_bool(r, object, "settles", &sig->settles) ||
        take_bool(r, object, "traceback", &sig->traceback) ||
        take_regex_key(r, object, "match", nocase, &sig->match) ||
        take_regex_key(r, object, "unless", nocase, &sig->unless) ||
        take_numbers(r, object, nocase, sig) || take_words(r, object, sig) ||
        take_int(r, object, "within", 1, 100000000, &sig->within_lines) ||
        take_int(r, object, "priority", 0, 1000, &sig->priority) ||
        take_string(r, object, "framework", &sig->framework) ||
        take_string(r, object, "of", &sig->of) || take_string(r, object, "why", &sig->why) ||
        check_lines(r, object, "with") || check_lines(r, object, "without") ||
        check_lines(r, object, "examples") || check_lines(r, object, "look_alikes") ||
        check_sense(r, sig))
        return -1;
    if (sig->kind == SIG_CONTEXT && sig->phase != OOM_PHASE_UNKNOWN) {
        struct frame_rule rule = {
            .phase = sig->phase, .strength = sig->phase_strength, .direction = sig->direction};
        if (rule_append(r, &rule))
            return -1;
        sig->context_rule = (uint16_t)r->set->rule_count;
    }
    return take_find(r, object, nocase, (uint16_t)(r->set->count - 1));
}

/* --- frame rules ------------------------------------------------------------------------------ */

static const char *const frame_keys[] = {
    "function", "functions", "file",   "phase", "strength",
    "reset",    "direction", "domain", "about", NULL,
};

static int frame_add(struct reading *r, json_t *object, const char *function)
{
    struct frame_rule rule = {.function = function, .strength = STRENGTH_SCOPE};
    const char *word = NULL;

    if (take_string(r, object, "file", &rule.file) || take_bool(r, object, "reset", &rule.reset) ||
        take_string(r, object, "phase", &word))
        return -1;
    if (!rule.function && !rule.file)
        return oom_errorf(r->err, "%s: frames: a rule needs \"function\" or \"file\"", r->document);
    if (word && oom_phase_parse(word, &rule.phase))
        return refuse(r, "phase", "is no phase");
    bool phase = word != NULL;
    word = NULL;
    if (take_string(r, object, "domain", &word))
        return -1;
    if (word && oom_domain_parse(word, &rule.domain))
        return refuse(r, "domain", "must be gpu, host, shm or kv_cache");
    if (!phase && !word && !rule.reset)
        return refuse(r, "phase", "is needed (or \"domain\", or \"reset\": true)");
    word = NULL;
    if (take_string(r, object, "strength", &word))
        return -1;
    if (word && oom_strength_parse(word, &rule.strength))
        return refuse(r, "strength", "must be work, step, scope, outer or override");
    word = NULL;
    if (take_string(r, object, "direction", &word))
        return -1;
    if (word && oom_direction_parse(word, &rule.direction))
        return refuse(r, "direction", "must be lower or raise");
    return rule_append(r, &rule);
}

static int take_frame(struct reading *r, json_t *object)
{
    const char *function = NULL;
    json_t *functions;

    r->id = "frames";
    if (!json_is_object(object))
        return oom_errorf(r->err, "%s: \"frames\" must hold objects", r->document);
    if (check_keys(r, object, frame_keys) || take_string(r, object, "function", &function))
        return -1;
    functions = json_object_get(object, "functions");
    if (!functions)
        return frame_add(r, object, function);
    if (!json_is_array(functions) || function)
        return refuse(r, "functions", "must be an array, and the only one of both keys");
    for (size_t i = 0; i < json_array_size(functions); i++) {
        function = json_string_value(json_array_get(functions, i));
        if (!function)
            return refuse(r, "functions", "must hold strings");
        if (frame_add(r, object, function))
            return -1;
    }
    return 0;
}

/* --- documents -------------------------------------------------------------------------------- */

static const char *const document_keys[] = {"family", "about", "signatures", "frames", NULL};

int oom_schema_add(struct oom_signatures *set, json_t *document, const char *name,
                   struct oom_error *err)
{
    struct reading r = {set, name, "document", err};
    json_t *signatures = json_object_get(document, "signatures");
    json_t *frames = json_object_get(document, "frames");
    const char *family = json_string_value(json_object_get(document, "family"));

    if (!json_is_object(document))
        return oom_errorf(err, "%s: a signature file holds one object", name);
    if (check_keys(&r, document, document_keys))
        return -1;
    if (!family || !*family || strlen(family) > 40)
        return refuse(&r, "family", "every document needs one of at most 40 bytes");
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
        if (take_frame(&r, json_array_get(frames, i)))
            return -1;
    return 0;
}
