/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of a signature document: one key of an object each, refused with its name. */
#include <stdio.h>
#include <string.h>

#include "policies/classify_schema.h"
#include "policies/near.h"

#define REGEX_MAX 1024

int oom_schema_refuse(const struct reading *r, const char *key, const char *reason)
{
    return oom_errorf(r->err, "%s: %s: \"%s\": %s", r->document, r->id, key, reason);
}

/* --- unknown keys --------------------------------------------------------------------------- */

int oom_schema_check_keys(const struct reading *r, json_t *object, const char *const *known)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        struct near near;
        bool found = false;
        near_init(&near, key);
        for (const char *const *k = known; *k && !found; k++) {
            found = strcmp(key, *k) == 0;
            near_offer(&near, *k);
        }
        if (found)
            continue;
        if (near.best)
            return oom_errorf(r->err, "%s: %s: unknown key \"%s\" (did you mean \"%s\"?)",
                              r->document, r->id, key, near.best);
        return oom_errorf(r->err, "%s: %s: unknown key \"%s\"", r->document, r->id, key);
    }
    return 0;
}

int oom_schema_refuse_word(const struct reading *r, const char *key, const char *word,
                           const char *const *known)
{
    char list[256] = "";
    struct near near;
    size_t have = 0;

    near_init(&near, word);
    for (const char *const *k = known; *k; k++) {
        near_offer(&near, *k);
        have += (size_t)snprintf(list + have, sizeof(list) - have, "%s%s", have ? ", " : "", *k);
        if (have >= sizeof(list))
            break;
    }
    return oom_errorf(r->err, "%s: %s: \"%s\": is \"%s\"%s%s%s; it may be %s", r->document, r->id,
                      key, word, near.best ? " (did you mean \"" : "", near.best ? near.best : "",
                      near.best ? "\"?)" : "", list);
}

/* --- values --------------------------------------------------------------------------------- */

int oom_schema_take_string(const struct reading *r, json_t *object, const char *key,
                           const char **out)
{
    json_t *value = json_object_get(object, key);

    if (!value)
        return 0;
    if (!json_is_string(value))
        return oom_schema_refuse(r, key, "must be a string");
    *out = json_string_value(value);
    return 0;
}

int oom_schema_take_bool(const struct reading *r, json_t *object, const char *key, bool *out)
{
    json_t *value = json_object_get(object, key);

    if (!value)
        return 0;
    if (!json_is_boolean(value))
        return oom_schema_refuse(r, key, "must be true or false");
    *out = json_is_true(value);
    return 0;
}

int oom_schema_take_int(const struct reading *r, json_t *object, const char *key, int low, int high,
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

int oom_schema_take_regex(const struct reading *r, const char *key, const char *pattern,
                          bool nocase, pcre2_code **out)
{
    char expanded[REGEX_MAX * 2];
    int code;
    PCRE2_SIZE offset;

    if (strlen(pattern) > REGEX_MAX || expand(pattern, expanded, sizeof(expanded)))
        return oom_errorf(r->err, "%s: %s: \"%s\": is longer than %d bytes: make it two signatures",
                          r->document, r->id, key, REGEX_MAX);
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

int oom_schema_take_regex_key(const struct reading *r, json_t *object, const char *key, bool nocase,
                              pcre2_code **out)
{
    const char *pattern = NULL;

    if (oom_schema_take_string(r, object, key, &pattern))
        return -1;
    return pattern ? oom_schema_take_regex(r, key, pattern, nocase, out) : 0;
}
