/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lib/policy_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lib/jsonget.h"
#include "policies/near.h"

/* Those that know a framework are asked before the general ones. */
static int by_order(const void *left, const void *right)
{
    const struct oom_policy *a = *(const struct oom_policy *const *)left;
    const struct oom_policy *b = *(const struct oom_policy *const *)right;
    int difference = oom_policy_order(a) - oom_policy_order(b);

    return difference ? difference : strcmp(oom_policy_name(a), oom_policy_name(b));
}

int policy_set_fetch(struct api *api, const char *path, struct policy_set *set,
                     struct oom_error *err)
{
    json_t *reply = NULL, *item;
    size_t i;
    int rc = 0;

    *set = (struct policy_set){NULL, 0};
    if (api_call(api, "GET", path, NULL, &reply, err) != 200) {
        json_decref(reply);
        return -1;
    }
    const json_t *list = json_object_get(reply, "policies");
    set->items = calloc(json_array_size(list) + 1, sizeof(*set->items));
    if (!set->items)
        rc = oom_errorf(err, "out of memory");
    json_array_foreach(list, i, item)
    {
        struct oom_policy *policy =
            rc == 0 ? oom_policy_from_json(json_object_get(item, "document"),
                                           json_get_string(item, "name", ""), err)
                    : NULL;
        if (!policy) {
            rc = -1;
            break;
        }
        oom_policy_set_version(policy, (int)json_get_int(item, "version", 0));
        set->items[set->count++] = policy;
    }
    json_decref(reply);
    if (rc < 0)
        policy_set_free(set);
    else if (set->count > 1)
        qsort(set->items, set->count, sizeof(*set->items), by_order);
    return rc;
}

void policy_set_free(struct policy_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        oom_policy_free(set->items[i]);
    free(set->items);
    *set = (struct policy_set){NULL, 0};
}

static int find(const struct policy_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(oom_policy_name(set->items[i]), name) == 0)
            return (int)i;
    return -1;
}

int policy_set_choose(const struct policy_set *set, const struct oom_script *script,
                      const char *named, const char *log_framework)
{
    int logged = find(set, log_framework);

    if (find(set, named) >= 0)
        return find(set, named);
    if (script && logged >= 0 &&
        oom_script_recognise(script, (const struct oom_policy *const *)&set->items[logged], 1) == 0)
        return logged;
    int best = script ? oom_script_recognise(script, (const struct oom_policy *const *)set->items,
                                             set->count)
                      : -1;
    if (best < 0)
        best = logged;
    return best >= 0 ? best : find(set, "pytorch");
}

const char *policy_set_misses(const struct policy_set *set, const char *named, char *text,
                              size_t size)
{
    struct near near;

    if (strcmp(named, "auto") == 0 || find(set, named) >= 0)
        return NULL;
    near_init(&near, named);
    for (size_t i = 0; i < set->count; i++)
        near_offer(&near, oom_policy_name(set->items[i]));
    snprintf(text, size, "%s%s%s", near.best ? "; did you mean " : "", near.best ? near.best : "",
             near.best ? "?" : "");
    return text;
}
