/* SPDX-License-Identifier: Apache-2.0
 *
 * A framework's dump of its settings in terms of its policy's knobs. */
#include "oomretry/dump.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "policies/dump_text.h"
#include "policies/rewrite/plan.h"

#define MAX_WHOLE 9007199254740992.0 /* beyond it a double is not exact */

/* "--max-tokens-per-gpu" is max_tokens_per_gpu in a dump. */
static bool same_name(const char *knob, const char *shown)
{
    while (*knob == '-')
        knob++;
    for (; *knob && *shown; knob++, shown++)
        if ((*knob == '-' ? '_' : *knob) != (*shown == '-' ? '_' : *shown))
            return false;
    return !*knob && !*shown;
}

static bool names(const struct oom_knob *knob, const char *shown)
{
    if (same_name(knob->name, shown))
        return true;
    for (const char *const *alias = knob->aliases; alias && *alias; alias++)
        if (same_name(*alias, shown))
            return true;
    return false;
}

static bool absent(const char *value)
{
    return strcasecmp(value, "none") == 0 || strcasecmp(value, "null") == 0;
}

/* 1, 0, or -1 when it is neither. */
static int truth(const char *value)
{
    if (strcasecmp(value, "true") == 0 || strcmp(value, "1") == 0)
        return 1;
    return strcasecmp(value, "false") == 0 || strcmp(value, "0") == 0 ? 0 : -1;
}

/* The value as a setting of the knob in *out (NULL: a switch that is off); false: it is none. */
static bool accept(const struct oom_policy *policy, const struct oom_knob *knob, const char *value,
                   const char **out)
{
    const json_t *about =
        json_object_get(json_object_get(oom_policy_json(policy), "knobs"), knob->name);
    const json_t *floor = json_object_get(about, "floor"), *choice;
    char *end;
    size_t i;

    *out = value;
    if (strcmp(knob->type, "int") == 0 || strcmp(knob->type, "float") == 0) {
        double number = strtod(value, &end);
        bool whole = strcmp(knob->type, "float") == 0 || !strpbrk(value, ".eExXnN");
        return end != value && !*end && isfinite(number) && fabs(number) <= MAX_WHOLE && whole &&
               !(json_is_number(floor) && number < json_number_value(floor));
    }
    if (strcmp(knob->type, "bool") == 0 || strcmp(knob->type, "switch") == 0) {
        int on = truth(value);
        bool is_switch = knob->type[0] == 's';
        if (knob->negative || (on < 0 && !(is_switch && absent(value))))
            return false;
        *out = on > 0 ? "true" : is_switch ? NULL : "false";
        return true;
    }
    json_array_foreach((json_t *)json_object_get(about, "choices"), i, choice)
    {
        if (json_is_string(choice) && strcmp(json_string_value(choice), value) == 0)
            return true;
    }
    return false;
}

/* Reads every dump that the policy describes. Returns how many complete tables there were, or -1
 * when out of memory; *unlisted gets the names that such a table never has. */
static int read_all(const struct oom_policy *policy, const char *log, size_t length,
                    dump_found_f *found, void *arg, const json_t **unlisted)
{
    const json_t *dumps = json_object_get(oom_policy_json(policy), "dump"), *dump;
    int complete = 0;
    size_t i;

    if (!json_array_size(dumps))
        return 0;
    char *text = dump_clean(log, length < OOM_DUMP_BYTES ? length : OOM_DUMP_BYTES);
    if (!text)
        return -1;
    json_array_foreach((json_t *)dumps, i, dump)
    {
        const char *mark = json_string_value(json_object_get(dump, "mark"));
        if (mark) {
            if (dump_literal(text, mark, found, arg) != 0)
                complete = -1;
            continue;
        }
        int whole = dump_table(text, json_string_value(json_object_get(dump, "begin")),
                               json_string_value(json_object_get(dump, "end")), found, arg);
        if (complete >= 0 && json_is_true(json_object_get(dump, "complete"))) {
            complete += whole;
            *unlisted = json_object_get(dump, "unlisted");
        }
    }
    free(text);
    return complete;
}

/* ---- present values */

struct reading {
    const struct oom_policy *policy;
    struct oom_values *out;
    bool *conflict; /* a flag for each knob of the policy */
    int rc;
};

static void keep(void *arg, const char *name, const char *shown)
{
    struct reading *r = arg;
    const char *value;

    for (size_t i = 0; i < oom_policy_knob_count(r->policy); i++) {
        const struct oom_knob *knob = oom_policy_knob_at(r->policy, i);
        if (!names(knob, name) || !accept(r->policy, knob, shown, &value))
            continue;
        const struct oom_value *have = oom_values_find(r->out, knob->name);
        if (have && (!have->value || !value ? have->value != value && (have->value || value)
                                            : !rw_same_value(have->value, value)))
            r->conflict[i] = true;
        else if (!have &&
                 oom_values_set(r->out, knob->name, value, OOM_SOURCE_LOG, "dump in the log") != 0)
            r->rc = -1;
        return;
    }
}

int oom_dump_values(const struct oom_policy *policy, const char *log, size_t length,
                    struct oom_values *out)
{
    size_t count = oom_policy_knob_count(policy);
    struct oom_values found = {NULL, 0};
    struct reading reading = {policy, &found, calloc(count + 1, sizeof(bool)), 0};
    const json_t *unlisted = NULL;

    memset(out, 0, sizeof(*out));
    if (!reading.conflict)
        return -1;
    if (read_all(policy, log, length, keep, &reading, &unlisted) < 0)
        reading.rc = -1;
    for (size_t i = 0; i < count && reading.rc == 0; i++) {
        const struct oom_value *v = oom_values_find(&found, oom_policy_knob_at(policy, i)->name);
        if (v && !reading.conflict[i])
            reading.rc = oom_values_set(out, v->knob, v->value, v->source, v->where);
    }
    free(reading.conflict);
    oom_values_free(&found);
    if (reading.rc != 0)
        oom_values_free(out);
    return reading.rc;
}

/* ---- proof */

struct sight {
    bool listed, as_wanted, as_before;
    char shown[64];
};

struct proof {
    const struct oom_policy *policy;
    const struct oom_edits *edits;
    struct sight *sights; /* one for each edit */
};

/* Whether a dump shows what the edit says; NULL is a setting that is not there. */
static bool shows(const char *shown, const char *value)
{
    if (!value)
        return absent(shown) || truth(shown) == 0;
    if (truth(value) >= 0 && truth(shown) >= 0)
        return truth(value) == truth(shown);
    return rw_same_value(shown, value);
}

static void compare(void *arg, const char *name, const char *shown)
{
    struct proof *p = arg;

    for (size_t i = 0; i < p->edits->count; i++) {
        const struct oom_edit *edit = &p->edits->items[i];
        const struct oom_knob *knob = oom_policy_knob(p->policy, edit->knob);
        struct sight *sight = &p->sights[i];
        if (knob ? !names(knob, name) : !same_name(edit->knob, name))
            continue;
        sight->listed = true;
        if (shows(shown, edit->new_value))
            sight->as_wanted = true;
        else if (shows(shown, edit->old_value))
            sight->as_before = true;
        snprintf(sight->shown, sizeof(sight->shown), "%.63s", shown);
    }
}

static bool in_list(const json_t *list, const char *knob)
{
    size_t i;
    const json_t *item;

    json_array_foreach((json_t *)list, i, item)
    {
        if (strcmp(json_string_value(item), knob) == 0)
            return true;
    }
    return false;
}

static bool is_setting(const char *knob)
{
    return strncmp(knob, "env:", 4) != 0 && strncmp(knob, "slurm:", 6) != 0 &&
           strncmp(knob, "ray:", 4) != 0;
}

int oom_dump_verify(const struct oom_policy *policy, const char *log, size_t length,
                    const struct oom_edits *edits, struct oom_error *err)
{
    struct proof proof = {policy, edits, calloc(edits->count + 1, sizeof(struct sight))};
    const json_t *unlisted = NULL;
    size_t settings = 0, arrived = 0;
    int verdict = -1;

    if (!proof.sights)
        return -1;
    int complete = read_all(policy, log, length, compare, &proof, &unlisted);
    for (size_t i = 0; i < edits->count && complete >= 0; i++) {
        const struct oom_edit *edit = &edits->items[i];
        const struct sight *sight = &proof.sights[i];
        if (!is_setting(edit->knob))
            continue;
        settings++;
        arrived += sight->as_wanted;
        bool ignored =
            !sight->listed && complete > 0 && edit->new_value && !in_list(unlisted, edit->knob);
        if (sight->as_wanted || (!sight->as_before && !ignored))
            continue;
        if (ignored)
            oom_errorf(err,
                       "%s was to be %s, but the program's own table of its arguments in the log "
                       "does not have it: the program ignores it",
                       edit->knob, edit->new_value);
        else
            oom_errorf(err, "%s was to be %s, but the program's own dump in the log shows %s",
                       edit->knob, edit->new_value ? edit->new_value : "absent", sight->shown);
        verdict = 0;
        break;
    }
    if (verdict < 0 && settings && arrived == settings)
        verdict = 1;
    free(proof.sights);
    return verdict;
}
