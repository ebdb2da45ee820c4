/* SPDX-License-Identifier: Apache-2.0
 *
 * How each parser family reads an argument vector, and how an override is written for it. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "policies/rewrite/plan.h"

static const char *word(const struct rw_cmd *cmd, size_t index)
{
    return cmd->fields.items[index].string;
}

static bool is_flag(const char *text)
{
    return (text[0] == '-' && text[1] == '-' && text[2]) ||
           (text[0] == '-' && isalpha((unsigned char)text[1]));
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

size_t rw_args_end(const struct rw_cmd *cmd)
{
    for (size_t i = cmd->arg0; i < cmd->fields.count; i++)
        if (strcmp(word(cmd, i), "--") == 0)
            return i;
    return cmd->fields.count;
}

/* True when the program reads `key=value` words. */
static bool reads_keys(const struct oom_policy *policy, const struct rw_cmd *cmd)
{
    enum oom_family family = oom_policy_family(policy);

    if (family == OOM_FAMILY_HYDRA)
        return true;
    if (family != OOM_FAMILY_OMEGACONF || cmd->arg0 >= cmd->fields.count)
        return false;
    const char *first = word(cmd, cmd->arg0);
    if (ends_with(first, ".yaml") || ends_with(first, ".yml") || ends_with(first, ".json"))
        return true;
    /* "$CONFIG": what the other words look like tells. */
    bool opaque = !rw_text_known(&cmd->fields.items[cmd->arg0].text) && !is_flag(first);
    for (size_t i = cmd->arg0 + 1; opaque && i < cmd->fields.count; i++)
        opaque = !is_flag(word(cmd, i));
    return opaque;
}

static bool alike(const struct oom_policy *policy)
{
    enum oom_family family = oom_policy_family(policy);

    return family == OOM_FAMILY_HF || family == OOM_FAMILY_AXOLOTL || family == OOM_FAMILY_TYRO ||
           json_is_true(json_object_get(oom_policy_json(policy), "dash_alike"));
}

/* Whether b begins with these. */
static bool same_start(const char *a, size_t length, const char *b, bool dashes)
{
    for (size_t i = 0; i < length; i++) {
        char x = dashes && a[i] == '-' ? '_' : a[i];
        char y = dashes && b[i] == '-' ? '_' : b[i];
        if (x != y)
            return false;
    }
    return true;
}

static bool same_text(const char *a, size_t length, const char *b, bool dashes)
{
    return strlen(b) == length && same_start(a, length, b, dashes);
}

static const char *bare(const char *name)
{
    while (*name == '-')
        name++;
    return name;
}

bool rw_same_name(const struct oom_policy *policy, const struct rw_knob *knob, const char *name,
                  size_t length)
{
    bool dashes = alike(policy);
    size_t skip = 0;

    while (skip < length && name[skip] == '-')
        skip++;
    if (same_text(name + skip, length - skip, bare(knob->name), dashes))
        return true;
    if (!knob->known)
        return false;
    if (same_text(name + skip, length - skip, bare(knob->known->name), dashes))
        return true;
    for (const char *const *alias = knob->known->aliases; alias && *alias; alias++)
        if (same_text(name + skip, length - skip, bare(*alias), dashes))
            return true;
    return false;
}

static bool begins(const char *start, size_t length, const char *name, bool dashes)
{
    name = bare(name);
    return strlen(name) > length && !strchr("-_.", name[length]) &&
           same_start(start, length, name, dashes);
}

/* argparse takes the beginning of a flag's name for it. One that ends with a word of the name
 * ("--fsdp" of "--fsdp_config") may be a flag of its own, and is not taken for it. */
static bool abbreviates(const struct oom_policy *policy, const struct rw_knob *knob,
                        const char *text, size_t length)
{
    bool dashes = alike(policy);
    char flag[128];

    if (!knob->known || length < 6 || length >= sizeof(flag) || memcmp(text, "--", 2) != 0)
        return false;
    if (oom_policy_family(policy) != OOM_FAMILY_HF &&
        !json_is_true(json_object_get(oom_policy_json(policy), "abbreviates")))
        return false;
    memcpy(flag, text, length);
    flag[length] = '\0';
    if (oom_policy_knob(policy, flag))
        return false;
    if (begins(flag + 2, length - 2, knob->known->name, dashes))
        return true;
    for (const char *const *alias = knob->known->aliases; alias && *alias; alias++)
        if (begins(flag + 2, length - 2, *alias, dashes))
            return true;
    return false;
}

/* tyro's "--x.no-y" for "--x.y"; argparse's BooleanOptionalAction and click have "--no-x.y". */
static bool negated_name(const struct oom_policy *policy, const struct rw_knob *knob,
                         const char *name, size_t length)
{
    char plain[256];
    size_t skip = 0, dot = 0;

    while (skip < length && name[skip] == '-')
        skip++;
    for (size_t i = skip; i < length; i++)
        if (name[i] == '.' && oom_policy_family(policy) == OOM_FAMILY_TYRO)
            dot = i + 1;
    size_t at = dot ? dot : skip;
    if (length < at + 4 || length >= sizeof(plain) || memcmp(name + at, "no", 2) != 0 ||
        (name[at + 2] != '-' && name[at + 2] != '_'))
        return false;
    memcpy(plain, name, at);
    memcpy(plain + at, name + at + 3, length - at - 3);
    return rw_same_name(policy, knob, plain, length - 3);
}

static bool boolean_word(const char *text)
{
    return strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0;
}

/* "$@", "${ARGS[@]}": arguments by themselves, whatever stands before them. */
static bool is_list(const struct rw_text *text)
{
    return text->count == 1 && text->frags[0].kind == RW_UNKNOWN && text->wild &&
           (memchr(text->frags[0].bytes, '@', text->frags[0].length) ||
            memchr(text->frags[0].bytes, '*', text->frags[0].length));
}

/* Whether the word behind a flag is its value. */
static bool takes_value(const struct oom_policy *policy, const struct rw_knob *knob,
                        const struct rw_cmd *cmd, size_t next, size_t end)
{
    if (next >= end || is_flag(word(cmd, next)) || is_list(&cmd->fields.items[next].text))
        return false;
    const char *text = word(cmd, next);
    bool is_switch = knob->known && strcmp(knob->known->type, "switch") == 0;
    bool wants_boolean = knob->value && boolean_word(knob->value);
    if (oom_policy_family(policy) == OOM_FAMILY_HYDRA && strchr(text, '='))
        return false;
    if (is_switch || (!knob->known && wants_boolean))
        return boolean_word(text) && oom_policy_family(policy) != OOM_FAMILY_TYRO &&
               oom_policy_family(policy) != OOM_FAMILY_AXOLOTL;
    return true;
}

static bool flag_hit(const struct oom_policy *policy, const struct rw_cmd *cmd,
                     const struct rw_knob *knob, size_t i, size_t end, struct rw_hit *hit)
{
    const char *text = word(cmd, i);
    size_t length = strcspn(text, "=");

    memset(hit, 0, sizeof(*hit));
    hit->field = hit->value_field = i;
    if (rw_same_name(policy, knob, text, length) || abbreviates(policy, knob, text, length)) {
        if (text[length] == '=') {
            hit->form = RW_FORM_EQUALS;
            hit->from = (uint32_t)length + 1;
            hit->to = (uint32_t)strlen(text);
        } else if (takes_value(policy, knob, cmd, i + 1, end)) {
            hit->form = RW_FORM_SEPARATE;
            hit->value_field = i + 1;
            hit->to = cmd->fields.items[i + 1].text.length;
        } else {
            hit->form = RW_FORM_SWITCH;
        }
        return true;
    }
    if (text[length] != '=' && negated_name(policy, knob, text, length)) {
        hit->form = RW_FORM_NEGATED;
        return true;
    }
    return false;
}

static bool key_hit(const struct oom_policy *policy, const struct rw_cmd *cmd,
                    const struct rw_knob *knob, size_t i, struct rw_hit *hit)
{
    const char *text = word(cmd, i);
    const char *key = text;

    while (*key == '+')
        key++;
    size_t length = strcspn(key, "=");
    if (key[length] != '=' || !rw_same_name(policy, knob, key, length))
        return false;
    memset(hit, 0, sizeof(*hit));
    hit->form = RW_FORM_KEY;
    hit->field = hit->value_field = i;
    hit->from = (uint32_t)(key - text) + (uint32_t)length + 1;
    hit->to = (uint32_t)strlen(text);
    return true;
}

bool rw_find_hit(struct rw *rw, const struct oom_policy *policy, const struct rw_cmd *cmd,
                 const struct rw_knob *knob, struct rw_hit *last, struct rw_hit *all, size_t *count)
{
    size_t end = rw_args_end(cmd);
    bool keys = reads_keys(policy, cmd), found = false;
    struct rw_hit hit;

    (void)rw;
    if (count)
        *count = 0;
    for (size_t i = cmd->arg0; i < end; i++) {
        bool here = is_flag(word(cmd, i)) ? flag_hit(policy, cmd, knob, i, end, &hit)
                                          : keys && key_hit(policy, cmd, knob, i, &hit);
        if (!here)
            continue;
        found = true;
        *last = hit;
        if (count && *count < RW_MAX_HITS)
            all[(*count)++] = hit;
        i = hit.value_field;
    }
    return found;
}

/* Names that people give to a bunch of arguments. */
static bool names_arguments(const char *text)
{
    static const char *const parts[] = {"ARG", "OPT",     "EXTRA", "FLAG", "PARAM",
                                        "CMD", "OVERRID", "@",     "*",    NULL};

    for (size_t i = 0; parts[i]; i++)
        if (strcasestr(text, parts[i]))
            return true;
    return false;
}

/* "$1": whatever the script was called with. */
static bool names_position(const char *text)
{
    return text[0] == '$' &&
           (isdigit((unsigned char)text[1]) || (text[1] == '{' && isdigit((unsigned char)text[2])));
}

bool rw_outrun(const struct oom_policy *policy, const struct rw_cmd *cmd, size_t after)
{
    size_t end = rw_args_end(cmd);

    (void)policy;
    for (size_t i = after; i < end; i++) {
        const struct rw_text *text = &cmd->fields.items[i].text;
        if (!text->count || text->frags[0].kind != RW_UNKNOWN ||
            !(text->wild || names_position(word(cmd, i))))
            continue;
        bool value = i > cmd->arg0 && is_flag(word(cmd, i - 1)) && !strchr(word(cmd, i - 1), '=');
        if (!value || names_arguments(word(cmd, i)))
            return true;
    }
    return false;
}

const char *rw_hit_value(struct rw *rw, const struct rw_cmd *cmd, const struct rw_hit *hit)
{
    if (hit->form == RW_FORM_SWITCH)
        return "true";
    if (hit->form == RW_FORM_NEGATED)
        return "false";
    const char *text = word(cmd, hit->value_field) + hit->from;
    size_t length = hit->to - hit->from;
    if (hit->form == RW_FORM_KEY && length >= 2 && (*text == '\'' || *text == '"') &&
        text[length - 1] == *text) {
        text++;
        length -= 2;
    }
    return rw_strndup(&rw->arena, text, length);
}

bool rw_same_value(const char *a, const char *b)
{
    char *end_a, *end_b;

    if (strcmp(a, b) == 0 || (boolean_word(a) && strcasecmp(a, b) == 0))
        return true;
    if (!*a || !*b)
        return false;
    double x = strtod(a, &end_a), y = strtod(b, &end_b);
    return !*end_a && !*end_b && !(x < y) && !(x > y) && end_a != a && end_b != b;
}

/* A switch of argparse that is wanted off is simply not there. */
static bool wanted_off(const struct oom_policy *policy, const struct rw_knob *knob)
{
    enum oom_family family = oom_policy_family(policy);

    if (!knob->value)
        return true;
    return strcasecmp(knob->value, "false") == 0 && family == OOM_FAMILY_ARGPARSE &&
           (!knob->known || strcmp(knob->known->type, "switch") == 0);
}

bool rw_satisfied(struct rw *rw, const struct oom_policy *policy, const struct rw_cmd *cmd,
                  const struct rw_knob *knob)
{
    struct rw_hit hit;

    if (!rw_find_hit(rw, policy, cmd, knob, &hit, NULL, NULL))
        return wanted_off(policy, knob);
    if (!knob->value)
        return false;
    /* argparse has no word that takes a switch back. */
    if (hit.form == RW_FORM_SWITCH && oom_policy_family(policy) == OOM_FAMILY_ARGPARSE)
        return strcasecmp(knob->value, "true") == 0;
    return rw_same_value(rw_hit_value(rw, cmd, &hit), knob->value) &&
           !rw_outrun(policy, cmd, hit.value_field + 1);
}

static const char *negate(struct rw *rw, enum oom_family family, const char *name)
{
    const char *dot = family == OOM_FAMILY_TYRO ? strrchr(name, '.') : NULL;
    size_t at = dot ? (size_t)(dot - name) + 1 : (size_t)(bare(name) - name);

    return rw_printf(&rw->arena, "%.*sno-%s", (int)at, name, name + at);
}

const char *rw_override(struct rw *rw, const struct oom_policy *policy, const struct rw_cmd *cmd,
                        const struct rw_knob *knob)
{
    enum oom_family family = oom_policy_family(policy);
    bool flag = strncmp(knob->name, "--", 2) == 0;

    if (wanted_off(policy, knob))
        return NULL;
    if (reads_keys(policy, cmd) && !(flag && family == OOM_FAMILY_HYDRA)) {
        const char *pair = rw_printf(&rw->arena, "%s%s=%s", family == OOM_FAMILY_HYDRA ? "++" : "",
                                     bare(knob->name), knob->value);
        return rw_shell_word(rw, pair);
    }
    const char *name = flag ? knob->name : rw_printf(&rw->arena, "--%s", bare(knob->name));
    bool text_type = knob->known && (strcmp(knob->known->type, "string") == 0 ||
                                     strcmp(knob->known->type, "enum") == 0 ||
                                     (strcmp(knob->known->type, "bool") == 0 &&
                                      family != OOM_FAMILY_TYRO && family != OOM_FAMILY_HF));
    if (strcasecmp(knob->value, "true") == 0 && !text_type && family != OOM_FAMILY_OMEGACONF)
        return name;
    bool is_switch = knob->known && strcmp(knob->known->type, "switch") == 0;
    if (strcasecmp(knob->value, "false") == 0 &&
        (family == OOM_FAMILY_TYRO || (family == OOM_FAMILY_AXOLOTL && is_switch)))
        return negate(rw, family, name);
    return rw_printf(&rw->arena, "%s %s", name, rw_shell_word(rw, knob->value));
}
