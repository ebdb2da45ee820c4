/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a set of signatures: made, filled, compiled, shown, freed. */
#include <stdlib.h>
#include <string.h>

#include "policies/classify_private.h"

struct oom_signatures *oom_signatures_new(void)
{
    struct oom_signatures *set = calloc(1, sizeof(*set));

    if (!set)
        return NULL;
    set->documents = json_array();
    set->match_context = pcre2_match_context_create(NULL);
    if (!set->documents || !set->match_context) {
        oom_signatures_free(set);
        return NULL;
    }
    /* A line cannot make an expression run away: expressions see bounded lines, and each try is
     * bounded too. */
    pcre2_set_match_limit(set->match_context, 20000);
    pcre2_set_depth_limit(set->match_context, 1000);
    return set;
}

static void signature_clear(struct signature *sig)
{
    free((char *)(uintptr_t)sig->id);
    pcre2_code_free(sig->match);
    pcre2_code_free(sig->unless);
    for (size_t i = 0; i < SIG_NUMBERS_MAX; i++)
        pcre2_code_free(sig->numbers[i]);
    memset(sig, 0, sizeof(*sig));
}

/* Back to an earlier size: what a document that is refused had added goes away. */
static void shrink(struct oom_signatures *set, size_t count, size_t rules, size_t literals)
{
    while (set->count > count)
        signature_clear(&set->items[--set->count]);
    set->rule_count = rules;
    while (set->literal_count > literals)
        free(set->literals[--set->literal_count].text);
}

void oom_signatures_free(struct oom_signatures *set)
{
    if (!set)
        return;
    shrink(set, 0, 0, 0);
    hs_free_database(set->database);
    hs_free_database(set->calm);
    hs_free_database(set->frameworks);
    hs_free_database(set->look_alikes);
    pcre2_match_context_free(set->match_context);
    json_decref(set->documents);
    free(set->items);
    free(set->rules);
    free(set->literals);
    free(set->literal_sigs);
    free(set->fragments);
    free(set);
}

int oom_signatures_add(struct oom_signatures *set, const json_t *document, const char *name,
                       struct oom_error *err)
{
    size_t count = set->count;
    size_t rules = set->rule_count;
    size_t literals = set->literal_count;

    if (set->compiled)
        return oom_errorf(err, "%s: the set is compiled already", name);
    json_t *copy = json_deep_copy(document);
    json_t *entry = copy ? json_pack("{s:s, s:O}", "name", name, "document", copy) : NULL;
    if (!entry || json_array_append_new(set->documents, entry)) {
        json_decref(copy);
        return oom_errorf(err, "%s: out of memory, or a name that is not UTF-8", name);
    }
    int rc = oom_schema_add(set, copy, name, err);
    if (rc) {
        shrink(set, count, rules, literals);
        json_array_remove(set->documents, json_array_size(set->documents) - 1);
    }
    json_decref(copy);
    return rc;
}

int oom_signatures_compile(struct oom_signatures *set, struct oom_error *err)
{
    if (set->compiled)
        return 0;
    if (set->count == 0)
        return oom_errorf(err, "no signatures: nothing could be recognised");
    if (oom_signatures_compile_literals(set, err))
        return -1;
    set->compiled = true;
    return 0;
}

json_t *oom_signatures_to_json(const struct oom_signatures *set)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < set->count; i++) {
        const struct signature *sig = &set->items[i];
        json_t *entry = json_deep_copy(sig->json);
        if (!entry || json_object_set_new(entry, "id", json_string(sig->id)) ||
            json_object_set_new(entry, "family", json_string(sig->family)) ||
            json_array_append_new(list, entry)) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}
