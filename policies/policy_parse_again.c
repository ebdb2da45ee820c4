/* SPDX-License-Identifier: Apache-2.0
 *
 * How a framework runs once more: from its checkpoint ("resume"), and by itself ("own_restarts").
 * Both are read by the agent; here they are only held to their form. */
#include <string.h>

#include "policies/policy_read.h"

static int known_knob(const struct oom_policy *policy, const struct place *place, const char *name)
{
    struct near near;

    if (policy_knob(policy, name))
        return 0;
    near_init(&near, name);
    for (size_t i = 0; i < oom_policy_knob_count(policy); i++)
        near_offer(&near, oom_policy_knob_at(policy, i)->name);
    return read_wrong_name(place, "knob", name, &near);
}

/* A path that stays inside the directory. */
static bool is_inside(const char *path)
{
    if (!*path || *path == '/')
        return false;
    for (const char *p = path; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || !p[2]))
            return false;
    return true;
}

/* "checkpoints/{trial_name}/done": each name between braces is a knob. */
static int check_pattern(const struct oom_policy *policy, const struct place *place,
                         const char *pattern)
{
    char name[96];

    if (!is_inside(pattern))
        return read_wrong(place, "complete: must be a path inside the directory");
    for (const char *open = strchr(pattern, '{'); open; open = strchr(open + 1, '{')) {
        size_t length = strcspn(open + 1, "}");
        if (open[1 + length] != '}' || length >= sizeof(name))
            return read_wrong(place, "complete: \"{\" begins a knob's name, \"}\" ends it");
        memcpy(name, open + 1, length);
        name[length] = '\0';
        if (known_knob(policy, place, name) != 0)
            return -1;
    }
    return 0;
}

static int check_set(const struct oom_policy *policy, const struct place *place, const json_t *set)
{
    const char *knob;
    json_t *value;

    if (!set)
        return 0;
    if (!json_is_object(set))
        return read_wrong(place, "set: must hold knobs and their values");
    json_object_foreach((json_t *)set, knob, value)
    {
        if (known_knob(policy, place, knob) != 0)
            return -1;
        if (!json_is_string(value))
            return read_wrong(place, "set: values are texts");
    }
    return 0;
}

/* Which knob names the directory, what a complete checkpoint has in it, what makes the next attempt
 * load it, and what must not change meanwhile. */
static int parse_resume(const struct oom_policy *policy, const struct place *place)
{
    const json_t *resume = json_object_get(policy->document, "resume");
    struct place here = read_inside(place, "resume");
    const char *directory, *complete, *load;
    json_t *item;
    size_t i;

    if (!resume)
        return 0;
    if (read_check_keys(&here, resume, "directory complete load set frozen") != 0 ||
        read_string(&here, resume, "directory", true, &directory) != 0 ||
        read_string(&here, resume, "complete", true, &complete) != 0 ||
        read_string(&here, resume, "load", false, &load) != 0 ||
        read_strings(&here, resume, "frozen") != 0)
        return -1;
    if (check_pattern(policy, &here, complete) != 0 || known_knob(policy, &here, directory) != 0 ||
        (load && known_knob(policy, &here, load) != 0) ||
        check_set(policy, &here, json_object_get(resume, "set")) != 0)
        return -1;
    json_array_foreach(json_object_get(resume, "frozen"), i, item)
    {
        if (known_knob(policy, &here, json_string_value(item)) != 0)
            return -1;
    }
    return 0;
}

/* At which of its own restarts after running out an attempt is ended; which knob turns them off,
 * and whether to do so. */
static int parse_own_restarts(const struct oom_policy *policy, const struct place *place)
{
    const json_t *own = json_object_get(policy->document, "own_restarts");
    struct place here = read_inside(place, "own_restarts");
    const json_t *end_at = json_object_get(own, "end_at");
    const char *knob, *off;
    bool turn_off = false;

    if (!own)
        return 0;
    if (read_check_keys(&here, own, "end_at knob off turn_off") != 0 ||
        read_string(&here, own, "knob", false, &knob) != 0 ||
        read_string(&here, own, "off", false, &off) != 0 ||
        read_bool(&here, own, "turn_off", &turn_off) != 0)
        return -1;
    if (end_at && (!json_is_integer(end_at) || json_integer_value(end_at) < 0 ||
                   json_integer_value(end_at) > 1000))
        return read_wrong(&here, "end_at: must be a whole number from 0 (never) to 1000");
    if ((knob != NULL) != (off != NULL))
        return read_wrong(&here, "knob and off belong together");
    if (turn_off && !knob)
        return read_wrong(&here, "turn_off: needs the knob that does it");
    return knob ? known_knob(policy, &here, knob) : 0;
}

int policy_parse_again(struct oom_policy *policy, const struct place *place)
{
    return parse_resume(policy, place) != 0 || parse_own_restarts(policy, place) != 0 ? -1 : 0;
}
