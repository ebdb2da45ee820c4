/* SPDX-License-Identifier: Apache-2.0
 *
 * Tracebacks tell the phase best: the functions between the launcher and the line that failed.
 * Frames are reduced to rule numbers as they come, so that thousands of interleaved tracebacks
 * need no text. */
#include <string.h>

#include "policies/classify_private.h"

static uint32_t name_bucket(const char *name, size_t length)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    return hash % FRAME_BUCKETS;
}

/* Rules are chained so that an earlier rule is tried first. */
void oom_frame_rules_index(struct oom_signatures *set)
{
    for (size_t i = set->rule_count; i-- > 0;) {
        struct frame_rule *rule = &set->rules[i];
        if (!rule->function && !rule->file) /* of a context signature */
            continue;
        uint16_t *head =
            rule->function ? &set->rule_buckets[name_bucket(rule->function, strlen(rule->function))]
                           : &set->any_function;
        rule->next = *head;
        *head = (uint16_t)(i + 1);
    }
}

static bool rule_holds(const struct frame_rule *rule, const char *function, size_t length,
                       const char *file, size_t file_length)
{
    if (rule->function &&
        (strlen(rule->function) != length || memcmp(rule->function, function, length) != 0))
        return false;
    return !rule->file || (file && memmem(file, file_length, rule->file, strlen(rule->file)));
}

uint16_t oom_frame_rule_find(const struct oom_signatures *set, const char *function, size_t length,
                             const char *file, size_t file_length)
{
    uint16_t chain = set->rule_buckets[name_bucket(function, length)];
    uint16_t found = 0;

    /* A rule that names the file knows more than one that does not. */
    for (; chain; chain = set->rules[chain - 1].next) {
        if (!rule_holds(&set->rules[chain - 1], function, length, file, file_length))
            continue;
        if (set->rules[chain - 1].file)
            return chain;
        if (!found)
            found = chain;
    }
    if (found)
        return found;
    for (chain = set->any_function; chain; chain = set->rules[chain - 1].next)
        if (rule_holds(&set->rules[chain - 1], function, length, file, file_length))
            return chain;
    return 0;
}

void oom_traceback_reset(struct traceback *traceback)
{
    traceback->count = 0;
    traceback->depth = 0;
    traceback->begun = true;
}

void oom_traceback_push(struct traceback *traceback, uint16_t rule, int64_t line,
                        int64_t fresh_lines)
{
    if (traceback->depth > 0 && line - traceback->last_line > fresh_lines)
        oom_traceback_reset(traceback);
    if (traceback->depth == 0)
        traceback->first_line = line;
    traceback->last_line = line;
    traceback->depth++;
    if (!rule)
        return;
    if (traceback->count == FRAMES_MAX) { /* the outermost frames say least */
        memmove(traceback->rule, traceback->rule + 1,
                (FRAMES_MAX - 1) * sizeof(traceback->rule[0]));
        traceback->count--;
    }
    traceback->rule[traceback->count++] = rule;
}

/* Tracebacks repeat the same frames: what was found for one is remembered by its text. */
static uint16_t find_cached(struct oom_classifier *classifier, const char *function, size_t length,
                            const char *file, size_t file_length)
{
    uint64_t key = oom_hash(oom_hash(HASH_START, file, file_length), function, length) | 1;

    /* A pair: a new frame takes the place of the older of two. */
    struct frame_memo *memo = &classifier->frame_memo[oom_hash_spread(key) % (FRAME_MEMO / 2) * 2];
    if (memo[0].key == key)
        return memo[0].rule;
    if (memo[1].key == key)
        return memo[1].rule;
    memo[1] = memo[0];
    memo[0].key = key;
    memo[0].rule = oom_frame_rule_find(classifier->set, function, length, file, file_length);
    return memo[0].rule;
}

/* memmem for a short needle that is mostly not there: memchr is several times faster. */
static const char *find_file(const char *at, const char *end)
{
    while (end - at >= 8 && (at = memchr(at, 'F', (size_t)(end - at) - 4)) != NULL) {
        if (memcmp(at, "File ", 5) == 0)
            return at;
        at++;
    }
    return NULL;
}

/* The function's name behind the file's: `", line 12, in f`. */
static const char *find_function(const char *file_end, const char *end)
{
    static const char line[] = "\", line ";
    const char *at = file_end;

    if ((size_t)(end - at) > sizeof(line) && memcmp(at, line, sizeof(line) - 1) == 0) {
        at += sizeof(line) - 1;
        while (at < end && *at >= '0' && *at <= '9')
            at++;
        if (end - at > 5 && memcmp(at, ", in ", 5) == 0)
            return at + 5;
    }
    size_t rest = (size_t)(end - file_end);
    const char *in = memmem(file_end, rest < 64 ? rest : 64, " in ", 4);
    return in ? in + 4 : file_end;
}

const char *oom_frame_parse(struct oom_classifier *classifier, const char *text, size_t length,
                            uint16_t *rule)
{
    const char *end = text + length;
    const char *file = find_file(text, end);

    if (!file || end - file < 8)
        return NULL;
    file += 5;
    file += *file == '\\'; /* JSON in a log escapes the quotes: File \"a.py\" */
    if (*file++ != '"')
        return NULL;
    const char *file_end = memchr(file, '"', (size_t)(end - file));
    if (!file_end)
        return NULL;
    const char *function = find_function(file_end, end);
    const char *stop = function;
    while (stop < end && *stop != ' ' && *stop != '(' && *stop != '\\' && *stop != ',' &&
           *stop != '\r' && *stop != '"')
        stop++;
    *rule = find_cached(classifier, function, (size_t)(stop - function), file,
                        (size_t)(file_end - file));
    return stop > file_end ? stop : file_end + 1;
}

static bool is_name(char c)
{
    return c == '_' || c == '.' || c == '<' || c == '>' || (c >= '0' && c <= '9') ||
           (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool oom_frame_parse_bare(struct oom_classifier *classifier, const char *text, size_t length,
                          uint16_t *rule)
{
    const char *end = text + length;
    const char *file_end = memmem(text, length, ".py", 3);

    if (!file_end)
        return false;
    const char *file = file_end;
    while (file > text && file[-1] > ' ' && file[-1] <= '~')
        file--;
    file_end += 3;
    const char *at = file_end;
    if (at < end && *at == ':')
        at++;
    while (at < end && ((*at >= '0' && *at <= '9') || *at == ','))
        at++;
    if (end - at < 5 || memcmp(at, " in ", 4) != 0)
        return false;
    const char *function = at + 4;
    const char *stop = function;
    if (!is_name(*function)) /* folded behind "in" */
        return false;
    for (; stop < end && is_name(*stop); stop++)
        if (*stop == '.') /* Trainer.training_step */
            function = stop + 1;
    *rule = find_cached(classifier, function, (size_t)(stop - function), file,
                        (size_t)(file_end - file));
    return true;
}

struct phase_guess oom_traceback_phase(const struct oom_signatures *set,
                                       const struct traceback *traceback)
{
    const struct phase_guess none = {OOM_PHASE_UNKNOWN, STRENGTH_NONE, OOM_DIRECTION_NONE,
                                     OOM_DOMAIN_NONE};
    struct phase_guess best = none;
    enum oom_domain domain = OOM_DOMAIN_NONE;
    bool covered = false;

    for (uint8_t i = 0; i < traceback->count; i++) {
        const struct frame_rule *rule = &set->rules[traceback->rule[i] - 1];
        if (rule->domain != OOM_DOMAIN_NONE)
            domain = rule->domain;
        if (rule->reset && best.strength <= rule->strength) {
            best = none;
        } else if (rule->phase != OOM_PHASE_UNKNOWN && rule->strength >= best.strength + covered) {
            best = (struct phase_guess){rule->phase, rule->strength, rule->direction, domain};
            covered = rule->covers;
        }
    }
    best.domain = domain;
    return best;
}
