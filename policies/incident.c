/* SPDX-License-Identifier: Apache-2.0 */
#include "oomretry/incident.h"

#include <stdlib.h>
#include <string.h>

#include "policies/jsontext.h"

static const char *const domain_names[] = {
    [OOM_DOMAIN_NONE] = "none", [OOM_DOMAIN_GPU] = "gpu",           [OOM_DOMAIN_HOST] = "host",
    [OOM_DOMAIN_SHM] = "shm",   [OOM_DOMAIN_KV_CACHE] = "kv_cache",
};

static const char *const phase_names[] = {
    [OOM_PHASE_UNKNOWN] = "unknown",
    [OOM_PHASE_INIT] = "init",
    [OOM_PHASE_GENERATION] = "generation",
    [OOM_PHASE_FORWARD] = "forward",
    [OOM_PHASE_BACKWARD] = "backward",
    [OOM_PHASE_OPTIMIZER] = "optimizer",
    [OOM_PHASE_LOG_PROBS] = "log_probs",
    [OOM_PHASE_WEIGHT_SYNC] = "weight_sync",
    [OOM_PHASE_COLLECTIVE] = "collective",
    [OOM_PHASE_CHECKPOINT] = "checkpoint",
    [OOM_PHASE_DATA] = "data",
    [OOM_PHASE_EVAL] = "eval",
};

static const char *const direction_names[] = {
    [OOM_DIRECTION_LOWER] = "lower",
    [OOM_DIRECTION_RAISE] = "raise",
};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const char *name_of(const char *const *names, size_t count, unsigned int value)
{
    return value < count ? names[value] : NULL;
}

static int value_of(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; name && i < count; i++)
        if (names[i] && strcmp(names[i], name) == 0)
            return (int)i;
    return -1;
}

const char *oom_domain_name(enum oom_domain domain)
{
    return name_of(domain_names, COUNT(domain_names), (unsigned int)domain);
}

const char *oom_phase_name(enum oom_phase phase)
{
    return name_of(phase_names, COUNT(phase_names), (unsigned int)phase);
}

const char *oom_direction_name(enum oom_direction direction)
{
    return name_of(direction_names, COUNT(direction_names), (unsigned int)direction);
}

int oom_domain_parse(const char *name, enum oom_domain *out)
{
    int value = value_of(domain_names, COUNT(domain_names), name);

    if (value < 0)
        return -1;
    *out = (enum oom_domain)value;
    return 0;
}

int oom_phase_parse(const char *name, enum oom_phase *out)
{
    int value = value_of(phase_names, COUNT(phase_names), name);

    if (value < 0)
        return -1;
    *out = (enum oom_phase)value;
    return 0;
}

int oom_direction_parse(const char *name, enum oom_direction *out)
{
    if (!name || !*name) {
        *out = OOM_DIRECTION_NONE;
        return 0;
    }
    int value = value_of(direction_names, COUNT(direction_names), name);
    if (value < 0)
        return -1;
    *out = (enum oom_direction)value;
    return 0;
}

void oom_numbers_init(struct oom_numbers *numbers)
{
    *numbers = (struct oom_numbers){OOM_UNSTATED, OOM_UNSTATED, OOM_UNSTATED,
                                    OOM_UNSTATED, OOM_UNSTATED, OOM_UNSTATED};
}

int64_t oom_numbers_short_bytes(const struct oom_numbers *numbers)
{
    if (numbers->tried_bytes == OOM_UNSTATED || numbers->free_bytes == OOM_UNSTATED)
        return OOM_UNSTATED;
    return numbers->tried_bytes > numbers->free_bytes ? numbers->tried_bytes - numbers->free_bytes
                                                      : 0;
}

bool oom_numbers_fragmented(const struct oom_numbers *numbers)
{
    return numbers->tried_bytes > 0 && numbers->reserved_unallocated_bytes >= numbers->tried_bytes;
}

void oom_incident_init(struct oom_incident *incident)
{
    memset(incident, 0, sizeof(*incident));
    oom_numbers_init(&incident->numbers);
    incident->cause.rank = -1;
}

static void line_free(struct oom_line *line)
{
    free(line->file);
    free(line->text);
    free(line->node);
    free(line->signature);
    free(line->why);
}

void oom_incident_free(struct oom_incident *incident)
{
    if (!incident)
        return;
    line_free(&incident->cause);
    for (size_t i = 0; i < incident->secondary_count; i++)
        line_free(&incident->secondary[i]);
    free(incident->secondary);
    oom_incident_init(incident);
}

/* --- JSON ---------------------------------------------------------------------------------- */

static const struct {
    const char *key;
    size_t offset;
} number_keys[] = {
    {"tried", offsetof(struct oom_numbers, tried_bytes)},
    {"total", offsetof(struct oom_numbers, total_bytes)},
    {"free", offsetof(struct oom_numbers, free_bytes)},
    {"in_use", offsetof(struct oom_numbers, in_use_bytes)},
    {"allocated", offsetof(struct oom_numbers, allocated_bytes)},
    {"reserved_unallocated", offsetof(struct oom_numbers, reserved_unallocated_bytes)},
};

static int64_t *number_at(struct oom_numbers *numbers, size_t i)
{
    return (int64_t *)(void *)((char *)numbers + number_keys[i].offset);
}

/* Logs hold any bytes; JSON holds only UTF-8. */
static json_t *text_or_null(const char *text)
{
    return text ? oom_json_text(text) : json_null();
}

static json_t *line_to_json(const struct oom_line *line, bool secondary)
{
    json_t *json = json_object();

    if (!json)
        return NULL;
    int failed = json_object_set_new(json, "file", text_or_null(line->file));
    failed |=
        json_object_set_new(json, "line", line->line > 0 ? json_integer(line->line) : json_null());
    failed |= json_object_set_new(json, "text", text_or_null(line->text));
    failed |=
        json_object_set_new(json, "rank", line->rank >= 0 ? json_integer(line->rank) : json_null());
    failed |= json_object_set_new(json, "node", text_or_null(line->node));
    if (line->signature)
        failed |= json_object_set_new(json, "signature", text_or_null(line->signature));
    if (secondary || line->why)
        failed |= json_object_set_new(json, "why", text_or_null(line->why));
    if (failed) {
        json_decref(json);
        return NULL;
    }
    return json;
}

static json_t *numbers_to_json(const struct oom_numbers *numbers)
{
    json_t *json = json_object();
    struct oom_numbers copy = *numbers;

    for (size_t i = 0; json && i < COUNT(number_keys); i++) {
        int64_t value = *number_at(&copy, i);
        if (value != OOM_UNSTATED &&
            json_object_set_new(json, number_keys[i].key, json_integer(value))) {
            json_decref(json);
            return NULL;
        }
    }
    return json;
}

json_t *oom_incident_to_json(const struct oom_incident *incident)
{
    const char *direction = oom_direction_name(incident->direction);
    json_t *json = json_object();
    json_t *secondary = json_array();
    int failed = !json || !secondary;

    for (size_t i = 0; !failed && i < incident->secondary_count; i++)
        failed |= json_array_append_new(secondary, line_to_json(&incident->secondary[i], true));
    if (failed) {
        json_decref(json);
        json_decref(secondary);
        return NULL;
    }
    failed |= json_object_set_new(json, "oom", json_boolean(incident->oom));
    failed |= json_object_set_new(json, "domain", json_string(oom_domain_name(incident->domain)));
    failed |= json_object_set_new(json, "phase", json_string(oom_phase_name(incident->phase)));
    failed |= json_object_set_new(
        json, "framework", text_or_null(incident->framework[0] ? incident->framework : NULL));
    failed |= json_object_set_new(json, "direction", text_or_null(direction));
    failed |= json_object_set_new(json, "confidence", json_real(incident->confidence));
    failed |= json_object_set_new(json, "numbers", numbers_to_json(&incident->numbers));
    failed |= json_object_set_new(
        json, "cause", incident->cause.text ? line_to_json(&incident->cause, false) : json_null());
    failed |= json_object_set_new(json, "secondary", secondary);
    if (incident->own_restarts > 0)
        failed |= json_object_set_new(json, "own_restarts", json_integer(incident->own_restarts));
    if (incident->program[0])
        failed |= json_object_set_new(json, "program", oom_json_text(incident->program));
    failed |= json_object_set_new(json, "summary", text_or_null(incident->summary));
    failed |= json_object_set_new(json, "evidence", text_or_null(incident->evidence));
    if (failed) {
        json_decref(json);
        return NULL;
    }
    return json;
}

static int take_text(const json_t *json, const char *key, char **out, struct oom_error *err)
{
    const json_t *value = json_object_get(json, key);

    if (!value || json_is_null(value))
        return 0;
    if (!json_is_string(value))
        return oom_errorf(err, "incident: \"%s\" must be a string or null", key);
    *out = strdup(json_string_value(value));
    return *out ? 0 : oom_errorf(err, "incident: out of memory");
}

static int take_fixed(const json_t *json, const char *key, char *out, size_t size,
                      struct oom_error *err)
{
    char *text = NULL;

    if (take_text(json, key, &text, err))
        return -1;
    if (text) {
        strncpy(out, text, size - 1);
        out[size - 1] = '\0';
    }
    free(text);
    return 0;
}

static int take_integer(const json_t *json, const char *key, int64_t *out, struct oom_error *err)
{
    const json_t *value = json_object_get(json, key);

    if (!value || json_is_null(value))
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return oom_errorf(err, "incident: \"%s\" must be a number of at least 0", key);
    *out = json_integer_value(value);
    return 0;
}

static int line_from_json(const json_t *json, struct oom_line *line, struct oom_error *err)
{
    int64_t rank = -1;

    line->rank = -1;
    if (!json_is_object(json))
        return oom_errorf(err, "incident: a line must be an object");
    if (take_text(json, "file", &line->file, err) || take_integer(json, "line", &line->line, err) ||
        take_text(json, "text", &line->text, err) || take_integer(json, "rank", &rank, err) ||
        take_text(json, "node", &line->node, err) ||
        take_text(json, "signature", &line->signature, err) ||
        take_text(json, "why", &line->why, err))
        return -1;
    line->rank = rank > INT32_MAX ? -1 : (int)rank;
    return 0;
}

static int secondary_from_json(const json_t *list, struct oom_incident *out, struct oom_error *err)
{
    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list))
        return oom_errorf(err, "incident: \"secondary\" must be an array");
    size_t count = json_array_size(list);
    if (count == 0)
        return 0;
    out->secondary = calloc(count, sizeof(*out->secondary));
    if (!out->secondary)
        return oom_errorf(err, "incident: out of memory");
    out->secondary_count = count;
    for (size_t i = 0; i < count; i++)
        if (line_from_json(json_array_get(list, i), &out->secondary[i], err))
            return -1;
    return 0;
}

static int words_from_json(const json_t *json, struct oom_incident *out, struct oom_error *err)
{
    const json_t *oom = json_object_get(json, "oom");
    char word[32] = "none";

    if (!json_is_boolean(oom))
        return oom_errorf(err, "incident: \"oom\" must be true or false");
    out->oom = json_is_true(oom);
    if (take_fixed(json, "domain", word, sizeof(word), err))
        return -1;
    if (oom_domain_parse(word, &out->domain))
        return oom_errorf(err, "incident: unknown domain \"%s\"", word);
    strcpy(word, "unknown");
    if (take_fixed(json, "phase", word, sizeof(word), err))
        return -1;
    if (oom_phase_parse(word, &out->phase))
        return oom_errorf(err, "incident: unknown phase \"%s\"", word);
    word[0] = '\0';
    if (take_fixed(json, "direction", word, sizeof(word), err))
        return -1;
    if (oom_direction_parse(word, &out->direction))
        return oom_errorf(err, "incident: unknown direction \"%s\"", word);
    return 0;
}

static int incident_fill(const json_t *json, struct oom_incident *out, struct oom_error *err)
{
    const json_t *confidence = json_object_get(json, "confidence");
    const json_t *numbers = json_object_get(json, "numbers");
    const json_t *cause = json_object_get(json, "cause");

    if (words_from_json(json, out, err) ||
        take_fixed(json, "framework", out->framework, sizeof(out->framework), err) ||
        take_fixed(json, "program", out->program, sizeof(out->program), err) ||
        take_fixed(json, "summary", out->summary, sizeof(out->summary), err) ||
        take_fixed(json, "evidence", out->evidence, sizeof(out->evidence), err))
        return -1;
    if (confidence && !json_is_number(confidence))
        return oom_errorf(err, "incident: \"confidence\" must be a number");
    out->confidence = confidence ? json_number_value(confidence) : 0.0;
    json_int_t restarts = json_integer_value(json_object_get(json, "own_restarts"));
    out->own_restarts = restarts > 0 && restarts < 1000000 ? (int)restarts : 0;
    if (numbers && !json_is_object(numbers) && !json_is_null(numbers))
        return oom_errorf(err, "incident: \"numbers\" must be an object");
    for (size_t i = 0; i < COUNT(number_keys); i++)
        if (take_integer(numbers, number_keys[i].key, number_at(&out->numbers, i), err))
            return -1;
    if (cause && !json_is_null(cause) && line_from_json(cause, &out->cause, err))
        return -1;
    return secondary_from_json(json_object_get(json, "secondary"), out, err);
}

int oom_incident_from_json(const json_t *json, struct oom_incident *out, struct oom_error *err)
{
    oom_incident_init(out);
    if (!json_is_object(json))
        return oom_errorf(err, "incident: must be an object");
    if (incident_fill(json, out, err)) {
        oom_incident_free(out);
        return -1;
    }
    return 0;
}
