/* SPDX-License-Identifier: Apache-2.0
 *
 * The instructions, read once when the library is loaded. */
#include <string.h>

#include "agent/preload/argv.h"

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

/* Copies a field up to '|', ';' or the end; NULL when the text is full. */
static const char *take_field(struct argv_plan *plan, const char **at)
{
    char *start = plan->text + plan->used;

    while (**at && **at != '|' && **at != ';') {
        char c = *(*at)++;
        if (c == '%' && hex((*at)[0]) >= 0 && hex((*at)[1]) >= 0) {
            c = (char)(hex((*at)[0]) * 16 + hex((*at)[1]));
            *at += 2;
        }
        if (plan->used + 2 > sizeof(plan->text))
            return NULL;
        plan->text[plan->used++] = c;
    }
    plan->text[plan->used++] = '\0';
    if (**at == '|')
        (*at)++;
    return start;
}

static const char *join(struct argv_plan *plan, const char *a, const char *b, const char *c,
                        const char *d)
{
    const char *parts[] = {a, b, c, d};
    char *start = plan->text + plan->used;

    for (size_t i = 0; i < 4; i++) {
        size_t n = strlen(parts[i]);
        if (plan->used + n + 1 > sizeof(plan->text))
            return NULL;
        memcpy(plan->text + plan->used, parts[i], n);
        plan->used += n;
    }
    plan->text[plan->used++] = '\0';
    return start;
}

static bool read_set(struct argv_plan *plan, struct argv_record *record, const char **at)
{
    const char *form = take_field(plan, at);
    const char *dashes;

    record->name = form ? take_field(plan, at) : NULL;
    record->value = record->name ? take_field(plan, at) : NULL;
    if (!record->value)
        return false;
    dashes = strncmp(record->name, "--", 2) == 0 ? "" : "--";
    if (strcmp(form, "flag") == 0) {
        record->kind = ARGV_SET_FLAG;
        record->joined = join(plan, dashes, record->name, "=", record->value);
    } else if (strcmp(form, "key") == 0) {
        record->kind = ARGV_SET_KEY;
        record->joined = join(plan, "++", record->name, "=", record->value);
    } else if (strcmp(form, "plain") == 0) {
        record->kind = ARGV_SET_PLAIN;
        record->joined = join(plan, "", record->name, "=", record->value);
    } else {
        return false;
    }
    return record->joined != NULL;
}

static bool read_record(struct argv_plan *plan, const char **at)
{
    static const struct {
        const char *word;
        enum argv_kind kind;
    } kinds[] = {{"match", ARGV_MATCH},     {"reject", ARGV_REJECT}, {"with", ARGV_WITH},
                 {"without", ARGV_WITHOUT}, {"switch", ARGV_SWITCH}, {"drop", ARGV_DROP},
                 {"env", ARGV_ENV}};
    const char *word = take_field(plan, at);

    if (!word)
        return false;
    if (strcmp(word, "alike") == 0) {
        plan->alike = true;
        return true;
    }
    if (strcmp(word, "report") == 0) {
        plan->report = take_field(plan, at);
        return plan->report != NULL;
    }
    if (plan->count == ARGV_MAX_RECORDS)
        return false;
    struct argv_record *record = &plan->records[plan->count];
    if (strcmp(word, "set") == 0) {
        plan->count++;
        return read_set(plan, record, at);
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].word, word) != 0)
            continue;
        plan->count++;
        record->kind = kinds[i].kind;
        record->name = take_field(plan, at);
        record->value = record->name ? take_field(plan, at) : NULL;
        record->takes_value = record->value && strcmp(record->value, "1") == 0;
        if (record->value && record->kind == ARGV_ENV)
            record->joined = join(plan, record->name, "=", record->value, "");
        return record->value && *record->name &&
               (record->kind != ARGV_ENV || record->joined != NULL);
    }
    return false;
}

void argv_plan_read(struct argv_plan *plan, const char *instructions)
{
    const char *at = instructions;

    memset(plan, 0, sizeof(*plan));
    if (!at || at[0] != '1' || at[1] != ';')
        return;
    at += 2;
    bool matches = false;
    while (*at) {
        if (!read_record(plan, &at) || (*at && *at != ';'))
            return;
        if (*at)
            at++;
    }
    for (size_t i = 0; i < plan->count; i++)
        matches |= plan->records[i].kind == ARGV_MATCH;
    plan->active = matches;
}
