/* SPDX-License-Identifier: Apache-2.0
 *
 * Do signatures keep what they promise? Their examples must match, their look-alikes must not
 * (or a look-alike signature must take the line away). */
#include <stdio.h>
#include <string.h>

#include "policies/classify_private.h"

static bool contains(const char *line, const char *piece, bool nocase)
{
    return nocase ? strcasestr(line, piece) != NULL : strstr(line, piece) != NULL;
}

static bool matches(const struct oom_signatures *set, const struct signature *sig,
                    pcre2_match_data *scratch, const char *line)
{
    const json_t *find = json_object_get(sig->json, "find");
    bool nocase = json_is_true(json_object_get(sig->json, "nocase"));
    bool found = false;

    for (size_t i = 0; i < json_array_size(find) && !found; i++)
        found = contains(line, json_string_value(json_array_get(find, i)), nocase);
    return found && oom_signature_confirms(set, sig, scratch, line, strlen(line));
}

/* What takes the line from signatures of memory; NULL: nothing. */
static const char *taken_by(const struct oom_signatures *set, const struct signature *sig,
                            pcre2_match_data *scratch, const char *line)
{
    struct line_view view = {.text = line, .length = strlen(line)};

    oom_line_speaker(&view);
    if (view.shell && !sig->comment)
        return "it reads like a command or a comment";
    for (size_t i = 0; i < set->count; i++)
        if (set->items[i].kind == SIG_LOOK_ALIKE && matches(set, &set->items[i], scratch, line))
            return set->items[i].id;
    return NULL;
}

static int complain(json_t *list, const struct signature *sig, const char *line, const char *what)
{
    return json_array_append_new(
        list, json_pack("{s:s, s:s, s:s}", "signature", sig->id, "line", line, "what", what));
}

static int check_one(const struct oom_signatures *set, const struct signature *sig,
                     pcre2_match_data *scratch, json_t *list)
{
    const json_t *examples = json_object_get(sig->json, "examples");
    const json_t *look_alikes = json_object_get(sig->json, "look_alikes");
    bool memory = sig->kind == SIG_OOM || sig->kind == SIG_WRAPPER || sig->kind == SIG_SUSPECT;
    int rc = 0;

    if (json_array_size(examples) == 0)
        rc |= complain(list, sig, "", "has no example");
    if (json_array_size(look_alikes) == 0)
        rc |= complain(list, sig, "", "has no look-alike");
    for (size_t i = 0; i < json_array_size(examples); i++) {
        const char *line = json_string_value(json_array_get(examples, i));
        const char *taker = memory ? taken_by(set, sig, scratch, line) : NULL;
        char what[160];
        snprintf(what, sizeof(what), "an example that a look-alike takes away (%s)",
                 taker ? taker : "");
        if (!matches(set, sig, scratch, line))
            rc |= complain(list, sig, line, "an example that does not match");
        else if (taker)
            rc |= complain(list, sig, line, what);
    }
    for (size_t i = 0; i < json_array_size(look_alikes); i++) {
        const char *line = json_string_value(json_array_get(look_alikes, i));
        if (matches(set, sig, scratch, line) && !(memory && taken_by(set, sig, scratch, line)))
            rc |= complain(list, sig, line, "a look-alike that matches");
    }
    return rc;
}

json_t *oom_signatures_check(const struct oom_signatures *set)
{
    json_t *list = json_array();
    pcre2_match_data *scratch = pcre2_match_data_create(16, NULL);
    int rc = list && scratch ? 0 : -1;

    for (size_t i = 0; rc == 0 && i < set->count; i++)
        rc = check_one(set, &set->items[i], scratch, list);
    pcre2_match_data_free(scratch);
    if (rc) {
        json_decref(list);
        return NULL;
    }
    return list;
}
