/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "policies/policy_read.h"

static int parse_entry(const struct oom_policy *policy, const struct place *place,
                       const json_t *item, int group, struct ladder_entry *entry)
{
    const char *name = json_string_value(item);
    struct rung_params params = {0};

    entry->group = group;
    if (json_is_object(item)) {
        if (read_check_keys(place, item,
                            "rung scale factor target least share cost repeat enabled") != 0 ||
            read_string(place, item, "rung", true, &name) != 0 ||
            policy_parse_params(place, item, &params) != 0)
            return -1;
        entry->overrides = item;
    }
    if (!name)
        return read_wrong(place, "must be the name of a rung, or an object with \"rung\"");
    const char *colon = strchr(name, ':');
    if (colon) {
        /* Another policy's rung, "host:more-memory": known only when it is used. */
        entry->policy = name;
        entry->rung = colon + 1;
        return colon == name || !colon[1] ? read_wrong(place, "must be POLICY:RUNG") : 0;
    }
    entry->rung = name;
    if (policy_rung(policy, name))
        return 0;
    struct near near;
    near_init(&near, name);
    for (size_t i = 0; i < policy->rung_count; i++)
        near_offer(&near, policy->rungs[i].name);
    return read_wrong_name(place, "rung", name, &near);
}

static size_t entries_in(const json_t *array)
{
    size_t total = 0;
    size_t index;
    const json_t *item;

    json_array_foreach((json_t *)array, index, item) total +=
        json_is_array(item) ? json_array_size(item) : 1;
    return total;
}

static int parse_ladder(const struct oom_policy *policy, const struct place *place,
                        const json_t *array, struct ladder *ladder)
{
    size_t index, inner;
    const json_t *item, *member;

    if (!json_is_array(array))
        return read_wrong(place, "must be an array of rungs, or the name of another phase");
    if (read_room(place, entries_in(array), sizeof(*ladder->entries), &ladder->entries) != 0)
        return -1;
    json_array_foreach((json_t *)array, index, item)
    {
        struct place there = read_at(place, index);
        if (!json_is_array(item)) {
            if (parse_entry(policy, &there, item, (int)index,
                            &ladder->entries[ladder->entry_count++]) != 0)
                return -1;
            continue;
        }
        json_array_foreach((json_t *)item, inner,
                           member) if (parse_entry(policy, &there, member, (int)index,
                                                   &ladder->entries[ladder->entry_count++]) !=
                                       0) return -1;
    }
    return 0;
}

/* "backward": "forward" means the same ladder. */
static int parse_phases(struct oom_policy *policy, const struct place *place,
                        enum oom_domain domain, const json_t *phases)
{
    const char *name;
    json_t *value;

    if (!json_is_object(phases))
        return read_wrong(place, "must be an object of phases");
    json_object_foreach((json_t *)phases, name, value)
    {
        struct place there = read_inside(place, name);
        struct ladder *ladder = &policy->ladders[policy->ladder_count++];
        const json_t *array = value;
        ladder->domain = domain;
        ladder->any_phase = strcmp(name, "any") == 0;
        ladder->before = strcmp(name, "before") == 0;
        if (!ladder->any_phase && !ladder->before && oom_phase_parse(name, &ladder->phase) != 0)
            return read_wrong(&there, "is not a phase");
        if (json_is_string(value)) {
            array = json_object_get(phases, json_string_value(value));
            if (!json_is_array(array))
                return read_wrong(&there, "names a phase that has no ladder here");
        }
        if (parse_ladder(policy, &there, array, ladder) != 0)
            return -1;
    }
    return 0;
}

int policy_parse_ladders(struct oom_policy *policy, const struct place *place)
{
    const json_t *ladders = json_object_get(policy->document, "ladders");
    struct place here = read_inside(place, "ladders");
    size_t total = 0;
    const char *name;
    json_t *phases;

    if (!json_is_object(ladders))
        return read_wrong(&here, "must be an object of domains");
    json_object_foreach((json_t *)ladders, name, phases) total += json_object_size(phases);
    if (read_room(&here, total, sizeof(*policy->ladders), &policy->ladders) != 0)
        return -1;
    json_object_foreach((json_t *)ladders, name, phases)
    {
        struct place there = read_inside(&here, name);
        enum oom_domain domain;
        if (oom_domain_parse(name, &domain) != 0 || domain == OOM_DOMAIN_NONE)
            return read_wrong(&there, "is not a domain (gpu, host, shm, kv_cache)");
        if (parse_phases(policy, &there, domain, phases) != 0)
            return -1;
    }
    return 0;
}
